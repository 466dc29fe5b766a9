//! Listeners and connections: frames, order of replies, the pipeline every request passes.

mod budget;
mod congestion;
mod connection;
mod frames;
mod limits;
mod listener;
mod log_pace;
mod pipeline;
mod send;

pub use budget::FrameBudget;
pub use limits::ConnectionLimits;
pub use listener::{Bound, ListenerSettings, bind};
pub use pipeline::Pipeline;
