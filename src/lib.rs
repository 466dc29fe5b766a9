//! Klamm: a broker that speaks Kafka's binary protocol.
//!
//! Each module uses only modules listed below it (checked by `tests/tidy.rs`;
//! docs/architecture.md has the reasons):

pub mod broker;
pub mod cli;

pub mod server;

pub mod api;

pub mod coordinator;

pub mod partition;
pub mod quorum;

pub mod log;
pub mod machine;
pub mod peer;

pub mod metadata;
pub mod record;
pub mod wire;

pub mod config;
pub mod host;

pub mod metrics;
pub mod types;
