//! Leaders and followers together: single situations, and a small world from seeds.

mod scenarios;
mod simulation;
