//! Listeners and connections: frames, order of replies, the pipeline every request passes.

mod budget;
mod congestion;
mod connection;
mod frames;
mod http;
mod limits;
mod listener;
mod log_pace;
mod pipeline;
mod send;
mod traffic;

pub use budget::FrameBudget;
pub use http::{HttpAnswer, HttpService, HttpSocket};
pub use limits::ConnectionLimits;
pub use listener::{Bound, ListenerSettings, bind};
pub use pipeline::Pipeline;
pub use traffic::Traffic;
