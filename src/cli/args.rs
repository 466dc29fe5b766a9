//! The arguments of `klamm` as a broker.

use std::path::PathBuf;

use clap::Parser;

/// What `kafka-server-start` adds to its words.
pub const AS_KAFKA: &str = "--as-kafka";

/// A broker that speaks Kafka's protocol. Without a file it starts a single node on
/// localhost:9092 and keeps its data in ./klamm-data.
#[derive(Debug, Parser)]
#[command(name = "klamm", version, after_help = super::tools::listing())]
pub struct BrokerArgs {
    /// A server.properties file, as Kafka reads it.
    pub file: Option<PathBuf>,

    /// Sets one configuration, over the file and over KAFKA_* variables.
    #[arg(long = "override", value_name = "NAME=VALUE")]
    pub overrides: Vec<String>,

    /// Log lines as JSON.
    #[arg(long)]
    pub log_json: bool,

    /// The level of the log: trace, debug, info, warn, error.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: String,

    /// The file counts and not the environment, and the lines that scripts wait for are printed.
    #[arg(long, hide = true)]
    pub as_kafka: bool,
}
