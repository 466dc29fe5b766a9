//! The command line: the arguments of the broker, and the client-side commands: Kafka's tools with
//! the same flags, output and exit codes.
//!
//! 1. What a script can see is Kafka's: options, columns, messages, exit codes. Stack traces are
//!    left out and help texts are Klamm's own words.
//! 2. A command knows its options and its output; what it asks of a cluster is in `admin/`.

mod admin;
mod api_listing;
mod argparse;
mod args;
mod common;
mod connect;
mod consume;
mod exceptions;
mod exit;
mod formatter;
mod internal_records;
mod io;
mod java_order;
mod line_reader;
mod options;
mod passed_over;
mod pattern;
mod produce;
mod rate;
mod settings;
mod tools;
mod unreachable;
mod usage;
mod when;

mod broker_api_versions;
mod cluster;
mod configs;
mod console_consumer;
mod console_producer;
mod consumer_groups;
mod consumer_perf_test;
mod create_topics;
mod cub;
mod delete_records;
mod dump_batch;
mod dump_index;
mod dump_log;
mod effective_config;
mod features;
mod get_offsets;
mod groups;
mod hanging;
mod leader_election;
mod log_dirs;
mod metadata_quorum;
mod producer_perf_test;
mod reassign_partitions;
mod server;
mod storage;
mod topics;
mod transactions;
mod verifiable_consumer;
mod verifiable_producer;
mod zookeeper;

pub use args::BrokerArgs;
pub use tools::{Dispatched, TOOLS, Tool, dispatch};
