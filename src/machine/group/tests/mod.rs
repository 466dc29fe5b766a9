//! Tests of the whole machine: scenarios as text, and a simulation from seeds.

mod parse;
mod scenario;
mod show;
mod simulation;
