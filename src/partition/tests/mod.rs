//! Leaders and followers together: single situations, and a small world from seeds.

mod moves;
mod scenarios;
mod simulation;
