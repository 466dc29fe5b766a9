//! The command line: arguments of the broker itself, and (later) the client-side commands.

mod args;

pub use args::BrokerArgs;
