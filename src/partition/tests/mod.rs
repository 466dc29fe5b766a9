//! Leaders and followers together: single situations, and a small world from seeds.

mod flushes;
mod moves;
mod scenarios;
mod simulation;
