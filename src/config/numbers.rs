//! Rules between numbers: of this node at start, and of what a dynamic value would make of it.

use super::broker::broker_row;
use super::group_ranges::GROUP_RANGES;
use super::node::NodeConfig;
use super::table::Table;
use super::value::trim;
use super::{FromValue, GroupConfig};

/// What is wrong with the numbers, in Kafka's words.
pub(super) fn number_errors(node: &NodeConfig) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut require = |holds: bool, reason: &str| {
        if !holds {
            reasons.push(reason.to_owned());
        }
    };
    let topic = &node.topic_defaults;
    require(
        topic.segment_ms >= 1,
        "log.roll.ms must be greater than or equal to 1",
    );
    require(
        topic.segment_jitter_ms >= 0,
        "log.roll.jitter.ms must be greater than or equal to 0",
    );
    require(
        topic.retention_ms == -1 || topic.retention_ms >= 1,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    );
    let cleaner = &node.broker.cleaner;
    let threads = i64::from(cleaner.log_cleaner_threads);
    require(
        threads == 0 || cleaner.log_cleaner_dedupe_buffer_size / threads > 1024 * 1024,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    );
    let replication = &node.broker.replication;
    require(
        replication.replica_fetch_wait_max_ms <= replication.replica_socket_timeout_ms,
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent \
         unnecessary socket timeouts",
    );
    require(
        i64::from(replication.replica_fetch_wait_max_ms) <= replication.replica_lag_time_max_ms,
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms \
         to prevent frequent changes in ISR",
    );
    let network = &node.broker.network;
    require(
        network.queued_max_request_bytes <= 0
            || network.queued_max_request_bytes >= i64::from(network.socket_request_max_bytes),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    );
    require(
        network.max_connections_per_ip > 0 || !network.max_connections_per_ip_overrides.is_empty(),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides \
         property is set.",
    );
    for entry in &network
        .max_connections_per_ip_overrides
        .split(',')
        .collect::<Vec<_>>()
    {
        let count = entry
            .rsplit_once(':')
            .map(|(_, count)| trim(count).parse::<i32>());
        require(
            trim(entry).is_empty() || matches!(count, Some(Ok(_))),
            "max.connections.per.ip.overrides must be a list of host:count",
        );
    }
    let protocols = &node.broker.group.group_coordinator_rebalance_protocols;
    require(
        protocols.iter().any(|protocol| protocol == "classic"),
        "group.coordinator.rebalance.protocols: disabling the 'classic' protocol is not supported",
    );
    let assignors = &node.broker.group.group_consumer_assignors;
    require(
        assignors
            .iter()
            .all(|name| ["uniform", "range"].contains(&name.as_str())),
        "group.consumer.assignors: only uniform and range are there, no classes can be loaded",
    );
    reasons.extend(group_range_errors(node));
    reasons
}

/// What groups get by default must be what they may ask for.
fn group_range_errors(node: &NodeConfig) -> Vec<String> {
    let value_of = |name: &str| {
        i32::from_value(
            node.layers
                .value(broker_row(name).expect("a limit is a broker's row")),
        )
    };
    let mut reasons = Vec::new();
    for range in GROUP_RANGES {
        let row = GroupConfig::ROWS.iter().find(|row| row.name == range.name);
        let fallback = row.and_then(|row| row.fallbacks.first());
        let name = fallback
            .expect("a range is of a row with a broker's default")
            .name;
        if let Some(min) = range.min.filter(|min| value_of(name) < value_of(min)) {
            reasons.push(format!("{name} must be greater than or equal to {min}"));
        }
        if let Some(max) = range.max.filter(|max| value_of(name) > value_of(max)) {
            reasons.push(format!("{name} must be less than or equal to {max}"));
        }
    }
    reasons
}
