//! The table of families.

use super::family::Own::{Host, Port, Property};
use super::family::{Dialect, Family, FileWins};

const BASE: Family = Family {
    dialect: Dialect::Apache,
    name: "apache/kafka",
    word: "apache",
    prefixes: &[("KAFKA_", "")],
    escapes: true,
    left_out: &[],
    own: &[
        ("KAFKA_ADVERTISED_HOST_NAME", Host),
        ("KAFKA_ADVERTISED_PORT", Port),
    ],
    files: &[],
    cluster_id: &["CLUSTER_ID"],
    cluster_id_default: None,
    defaults: &[],
    defaults_alone: &[],
    log_dirs: "/tmp/kraft-combined-logs",
    listeners: "PLAINTEXT://:9092",
    advertised: None,
    mounted_file: None,
    file_wins: FileWins::BelowEnvironment,
};

/// What the file of apache/kafka sets, which counts only without any variable.
const APACHE_ALONE: &[(&str, &str)] = &[
    ("process.roles", "broker,controller"),
    ("node.id", "1"),
    ("controller.quorum.voters", "1@localhost:9093"),
    ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093"),
    ("advertised.listeners", "PLAINTEXT://localhost:9092"),
    ("inter.broker.listener.name", "PLAINTEXT"),
    ("controller.listener.names", "CONTROLLER"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("share.coordinator.state.topic.replication.factor", "1"),
    ("share.coordinator.state.topic.min.isr", "1"),
    ("log.dirs", "/tmp/kraft-combined-logs"),
];

const APACHE: Family = Family {
    cluster_id_default: Some("5L6g3nShT-eMCtK--X86sw"),
    defaults_alone: APACHE_ALONE,
    mounted_file: Some("/mnt/shared/config/server.properties"),
    ..BASE
};

const CP_KAFKA: Family = Family {
    dialect: Dialect::CpKafka,
    name: "confluentinc/cp-kafka",
    word: "cp-kafka",
    prefixes: &[("KAFKA_", ""), ("CONFLUENT_SUPPORT_", "confluent.support.")],
    log_dirs: "/var/lib/kafka/data",
    ..BASE
};

const CP_SERVER: Family = Family {
    dialect: Dialect::CpServer,
    name: "confluentinc/cp-server",
    word: "cp-server",
    prefixes: &[
        ("KAFKA_", ""),
        ("CONFLUENT_SUPPORT_", "confluent.support."),
        ("CONFLUENT_METRICS_", "confluent.metrics."),
    ],
    ..CP_KAFKA
};

const CONFLUENT_LOCAL: Family = Family {
    dialect: Dialect::ConfluentLocal,
    name: "confluentinc/confluent-local",
    word: "confluent-local",
    prefixes: &[("KAFKA_", ""), ("CONFLUENT_", "confluent.")],
    left_out: &["KAFKA_REST_*"],
    cluster_id_default: Some("4L6g3nShT-eMCtK--X86sw"),
    defaults: &[
        ("node.id", "1"),
        ("process.roles", "broker,controller"),
        ("controller.quorum.voters", "1@localhost:29093"),
        ("controller.listener.names", "CONTROLLER"),
        (
            "listener.security.protocol.map",
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        ),
        (
            "listeners",
            "PLAINTEXT://localhost:29092,CONTROLLER://localhost:29093,\
             PLAINTEXT_HOST://0.0.0.0:9092",
        ),
        (
            "advertised.listeners",
            "PLAINTEXT://localhost:29092,PLAINTEXT_HOST://localhost:9092",
        ),
        ("inter.broker.listener.name", "PLAINTEXT"),
        ("offsets.topic.replication.factor", "1"),
        ("transaction.state.log.replication.factor", "1"),
        ("transaction.state.log.min.isr", "1"),
        ("group.initial.rebalance.delay.ms", "0"),
        ("log.dirs", "/tmp/kraft-combined-logs"),
    ],
    log_dirs: "/tmp/kraft-combined-logs",
    ..BASE
};

const BITNAMI: Family = Family {
    dialect: Dialect::Bitnami,
    name: "bitnami/kafka",
    word: "bitnami",
    prefixes: &[("KAFKA_CFG_", "")],
    escapes: false,
    own: BITNAMI_NAMES,
    files: &[
        "KAFKA_INTER_BROKER_USER",
        "KAFKA_INTER_BROKER_PASSWORD",
        "KAFKA_CONTROLLER_USER",
        "KAFKA_CONTROLLER_PASSWORD",
        "KAFKA_CERTIFICATE_PASSWORD",
        "KAFKA_CLIENT_USERS",
        "KAFKA_CLIENT_PASSWORDS",
        "KAFKA_KRAFT_CLUSTER_ID",
        "KAFKA_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_CFG_LISTENERS",
        "KAFKA_CFG_ADVERTISED_LISTENERS",
        "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS",
        "KAFKA_CFG_SASL_ENABLED_MECHANISMS",
    ],
    cluster_id: &["KAFKA_KRAFT_CLUSTER_ID", "KAFKA_CLUSTER_ID"],
    log_dirs: "/bitnami/kafka/data",
    advertised: Some("PLAINTEXT://:9092"),
    mounted_file: Some("/bitnami/kafka/config/server.properties"),
    file_wins: FileWins::OverEverything,
    ..BASE
};

/// Names that this family takes without CFG.
const BITNAMI_NAMES: &[(&str, super::family::Own)] = &[
    (
        "KAFKA_ADVERTISED_LISTENERS",
        Property("advertised.listeners"),
    ),
    (
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE",
        Property("auto.create.topics.enable"),
    ),
    ("KAFKA_BROKER_ID", Property("broker.id")),
    ("KAFKA_NODE_ID", Property("node.id")),
    (
        "KAFKA_CONTROLLER_QUORUM_VOTERS",
        Property("controller.quorum.voters"),
    ),
    ("KAFKA_PROCESS_ROLES", Property("process.roles")),
    (
        "KAFKA_DEFAULT_REPLICATION_FACTOR",
        Property("default.replication.factor"),
    ),
    ("KAFKA_DELETE_TOPIC_ENABLE", Property("delete.topic.enable")),
    (
        "KAFKA_INTER_BROKER_LISTENER_NAME",
        Property("inter.broker.listener.name"),
    ),
    ("KAFKA_LISTENERS", Property("listeners")),
    (
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
        Property("listener.security.protocol.map"),
    ),
    ("KAFKA_LOGS_DIRS", Property("log.dirs")),
    ("KAFKA_LOG_DIRS", Property("log.dirs")),
    (
        "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES",
        Property("log.flush.interval.messages"),
    ),
    (
        "KAFKA_LOG_FLUSH_INTERVAL_MS",
        Property("log.flush.interval.ms"),
    ),
    ("KAFKA_LOG_RETENTION_BYTES", Property("log.retention.bytes")),
    (
        "KAFKA_LOG_RETENTION_CHECK_INTERVALS_MS",
        Property("log.retention.check.interval.ms"),
    ),
    (
        "KAFKA_LOG_RETENTION_CHECK_INTERVAL_MS",
        Property("log.retention.check.interval.ms"),
    ),
    ("KAFKA_LOG_RETENTION_HOURS", Property("log.retention.hours")),
    ("KAFKA_LOG_RETENTION_MS", Property("log.retention.ms")),
    (
        "KAFKA_LOG_RETENTION_MINUTES",
        Property("log.retention.minutes"),
    ),
    ("KAFKA_LOG_SEGMENT_BYTES", Property("log.segment.bytes")),
    ("KAFKA_SEGMENT_BYTES", Property("log.segment.bytes")),
    ("KAFKA_MESSAGE_MAX_BYTES", Property("message.max.bytes")),
    ("KAFKA_MAX_MESSAGE_BYTES", Property("message.max.bytes")),
    (
        "KAFKA_LOG_MESSAGE_FORMAT_VERSION",
        Property("log.message.format.version"),
    ),
    ("KAFKA_NUM_IO_THREADS", Property("num.io.threads")),
    ("KAFKA_NUM_NETWORK_THREADS", Property("num.network.threads")),
    ("KAFKA_NUM_PARTITIONS", Property("num.partitions")),
    (
        "KAFKA_NUM_RECOVERY_THREADS_PER_DATA_DIR",
        Property("num.recovery.threads.per.data.dir"),
    ),
    (
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR",
        Property("offsets.topic.replication.factor"),
    ),
    (
        "KAFKA_SOCKET_RECEIVE_BUFFER_BYTES",
        Property("socket.receive.buffer.bytes"),
    ),
    (
        "KAFKA_SOCKET_REQUEST_MAX_BYTES",
        Property("socket.request.max.bytes"),
    ),
    (
        "KAFKA_SOCKET_SEND_BUFFER_BYTES",
        Property("socket.send.buffer.bytes"),
    ),
    (
        "KAFKA_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM",
        Property("ssl.endpoint.identification.algorithm"),
    ),
    (
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR",
        Property("transaction.state.log.replication.factor"),
    ),
    (
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR",
        Property("transaction.state.log.min.isr"),
    ),
    ("KAFKA_ZOOKEEPER_CONNECT", Property("zookeeper.connect")),
    (
        "KAFKA_ZOOKEEPER_CONNECTION_TIMEOUT_MS",
        Property("zookeeper.connection.timeout.ms"),
    ),
];

const WURSTMEISTER: Family = Family {
    dialect: Dialect::Wurstmeister,
    name: "wurstmeister/kafka",
    word: "wurstmeister",
    escapes: false,
    left_out: &[
        "KAFKA_HOME",
        "KAFKA_DEBUG",
        "KAFKA_LOG",
        "KAFKA_CREATE_TOPICS*",
    ],
    own: &[
        ("KAFKA_ADVERTISED_HOST_NAME", Host),
        ("KAFKA_ADVERTISED_PORT", Port),
        ("KAFKA_PORT", Port),
    ],
    log_dirs: "/kafka/kafka-logs-$HOST",
    ..BASE
};

const SPOTIFY: Family = Family {
    dialect: Dialect::Spotify,
    name: "spotify/kafka",
    word: "spotify",
    prefixes: &[],
    own: &[
        ("ADVERTISED_HOST", Host),
        ("ADVERTISED_PORT", Port),
        ("LOG_RETENTION_HOURS", Property("log.retention.hours")),
        ("LOG_RETENTION_BYTES", Property("log.retention.bytes")),
        ("NUM_PARTITIONS", Property("num.partitions")),
        ("AUTO_CREATE_TOPICS", Property("auto.create.topics.enable")),
    ],
    log_dirs: "/tmp/kafka-logs",
    ..BASE
};

const FAST_DATA_DEV: Family = Family {
    dialect: Dialect::FastDataDev,
    name: "lensesio/fast-data-dev",
    word: "fast-data-dev",
    left_out: &["KAFKA_REST_*"],
    own: &[("ADV_HOST", Host), ("BROKER_PORT", Port)],
    log_dirs: "/data/kafka/logdir",
    ..BASE
};

const DEBEZIUM: Family = Family {
    dialect: Dialect::Debezium,
    name: "debezium/kafka",
    word: "debezium",
    escapes: false,
    left_out: &["KAFKA_HOME", "KAFKA_DATA"],
    own: &[
        ("BROKER_ID", Property("broker.id")),
        ("NODE_ID", Property("node.id")),
        ("NODE_ROLE", Property("process.roles")),
        ("ADVERTISED_HOST_NAME", Host),
        ("ADVERTISED_PORT", Port),
        ("PORT", Port),
    ],
    log_dirs: "/kafka/data/$ID",
    ..BASE
};

/// Every family.
pub const FAMILIES: &[Family] = &[
    APACHE,
    CP_KAFKA,
    CP_SERVER,
    CONFLUENT_LOCAL,
    BITNAMI,
    WURSTMEISTER,
    SPOTIFY,
    FAST_DATA_DEV,
    DEBEZIUM,
];

impl Dialect {
    pub fn family(self) -> &'static Family {
        let found = FAMILIES.iter().find(|family| family.dialect == self);
        found.expect("every dialect has a family")
    }

    /// By the word of `--dialect`, or by the name of an image.
    pub fn from_word(word: &str) -> Option<Dialect> {
        let found = FAMILIES
            .iter()
            .find(|family| family.word == word || family.name == word);
        found.map(|family| family.dialect)
    }
}
