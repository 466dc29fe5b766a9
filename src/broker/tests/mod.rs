//! Tests of whole nodes.

mod simulation;
