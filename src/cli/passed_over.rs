//! Configurations of Kafka's clients that make no difference to what a command does or prints.

/// The client that a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientKind {
    Admin,
    Consumer,
    Producer,
}

impl ClientKind {
    /// What Kafka says when it cannot make one.
    pub fn failure(self) -> &'static str {
        match self {
            ClientKind::Admin => "Failed to create new KafkaAdminClient",
            ClientKind::Consumer => "Failed to construct kafka consumer",
            ClientKind::Producer => "Failed to construct kafka producer",
        }
    }
}

/// How connections and memory are looked after. Everything is plain text here (anything else is
/// refused), records are bytes, and no metrics are kept.
const OF_ALL: &[&str] = &[
    "bootstrap.controllers",
    "client.dns.lookup",
    "client.rack",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "auto.include.jmx.reporter",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "security.providers",
    "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms",
    "retry.backoff.max.ms",
    "default.api.timeout.ms",
];
const OF_ALL_PREFIXES: &[&str] = &["ssl.", "sasl.", "metric.", "metrics."];

const OF_PRODUCERS: &[&str] = &[
    "key.serializer",
    "metadata.max.idle.ms",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "transaction.timeout.ms",
    "value.serializer",
];

/// Those that would make a difference, but only to a producer.
const OF_PRODUCERS_ALONE: &[&str] = &[
    "acks",
    "batch.size",
    "buffer.memory",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delivery.timeout.ms",
    "enable.idempotence",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "partitioner.class",
    "partitioner.ignore.keys",
    "retries",
    "transaction.two.phase.commit.enable",
    "transactional.id",
];

const OF_CONSUMERS: &[&str] = &[
    "check.crcs",
    "group.id",
    "key.deserializer",
    "max.poll.records",
    "value.deserializer",
];

/// Those that would make a difference, but only to a consumer.
const OF_CONSUMERS_ALONE: &[&str] = &[
    "allow.auto.create.topics",
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "enable.auto.commit",
    "exclude.internal.topics",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "isolation.level",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "partition.assignment.strategy",
    "session.timeout.ms",
];

/// Whether a configuration may be left unread without a word. A file may serve several tools, so
/// those of other clients may be.
pub fn is_passed_over(kind: ClientKind, name: &str) -> bool {
    let everywhere = [OF_ALL, OF_PRODUCERS, OF_CONSUMERS];
    let elsewhere: &[&[&str]] = match kind {
        ClientKind::Admin => &[
            OF_PRODUCERS_ALONE,
            OF_CONSUMERS_ALONE,
            &["interceptor.classes"],
        ],
        ClientKind::Consumer => &[OF_PRODUCERS_ALONE],
        ClientKind::Producer => &[OF_CONSUMERS_ALONE],
    };
    let mut tables = everywhere.iter().chain(elsewhere);
    tables.any(|table| table.contains(&name))
        || OF_ALL_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}
