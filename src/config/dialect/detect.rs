//! Which family an environment is written for, when no path has told it.
//!
//! Names that only one family has decide; then the places that a volume is mounted at; where
//! nothing does, the families agree or the words are those of apache/kafka.

use super::Dialect;
use super::families::FAMILIES;

/// A name, or with `*` the start of one, that only this family has; the first match counts.
const NAMES: &[(&str, Dialect)] = &[
    ("KAFKA_CFG_*", Dialect::Bitnami),
    ("KAFKA_KRAFT_CLUSTER_ID", Dialect::Bitnami),
    ("KAFKA_ENABLE_KRAFT", Dialect::Bitnami),
    ("KAFKA_CREATE_TOPICS*", Dialect::Wurstmeister),
    ("HOSTNAME_COMMAND", Dialect::Wurstmeister),
    ("PORT_COMMAND", Dialect::Wurstmeister),
    ("BROKER_ID_COMMAND", Dialect::Wurstmeister),
    ("RACK_COMMAND", Dialect::Wurstmeister),
    ("CUSTOM_INIT_SCRIPT", Dialect::Wurstmeister),
    ("LOG4J_LOGGER_*", Dialect::Wurstmeister),
    ("KAFKA_ADVERTISED_HOST_NAME", Dialect::Wurstmeister),
    ("ADV_HOST", Dialect::FastDataDev),
    ("RUNTESTS", Dialect::FastDataDev),
    ("SAMPLEDATA", Dialect::FastDataDev),
    ("FORWARDLOGS", Dialect::FastDataDev),
    ("ADVERTISED_HOST", Dialect::Spotify),
    ("ZK_CHROOT", Dialect::Spotify),
    ("AUTO_CREATE_TOPICS", Dialect::Spotify),
    ("ZOOKEEPER_CONNECT", Dialect::Debezium),
    ("CREATE_TOPICS", Dialect::Debezium),
    ("NODE_ROLE", Dialect::Debezium),
    ("CONFLUENT_METRICS_*", Dialect::CpServer),
    ("KAFKA_CONFLUENT_LICENSE*", Dialect::CpServer),
    ("KAFKA_REST_*", Dialect::ConfluentLocal),
];

/// Where a family keeps its data, as a place that a volume is mounted at.
const MOUNTS: &[(&str, Dialect)] = &[
    ("/bitnami", Dialect::Bitnami),
    ("/bitnami/kafka", Dialect::Bitnami),
    ("/bitnami/kafka/data", Dialect::Bitnami),
    ("/bitnami/kafka/config/server.properties", Dialect::Bitnami),
    ("/bitnami/kafka/config", Dialect::Bitnami),
    ("/mnt/shared/config", Dialect::Apache),
    ("/mnt/shared/config/server.properties", Dialect::Apache),
    ("/kafka/data", Dialect::Debezium),
    ("/kafka", Dialect::Wurstmeister),
    ("/data", Dialect::FastDataDev),
];

pub fn detect(variables: &[(String, String)], mounts: &[String]) -> Dialect {
    let has = |name: &str| variables.iter().any(|(variable, _)| variable == name);
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => variables
            .iter()
            .any(|(variable, _)| variable.starts_with(start)),
        None => has(pattern),
    };
    if let Some((_, dialect)) = NAMES.iter().find(|(pattern, _)| matches(pattern)) {
        return *dialect;
    }
    if has("ALLOW_PLAINTEXT_LISTENER") && only_bitnami_names(variables) {
        return Dialect::Bitnami;
    }
    if let Some((_, dialect)) = MOUNTS.iter().find(|(at, _)| mounts.iter().any(|m| m == at)) {
        return *dialect;
    }
    if is_confluent_local(variables) {
        return Dialect::ConfluentLocal;
    }
    match has("KAFKA_ZOOKEEPER_CONNECT") || has("KAFKA_BROKER_ID") {
        true => Dialect::CpKafka,
        false => Dialect::Apache,
    }
}

/// People leave ALLOW_PLAINTEXT_LISTENER behind when they change to another image.
fn only_bitnami_names(variables: &[(String, String)]) -> bool {
    let bitnami = FAMILIES.iter().find(|f| f.dialect == Dialect::Bitnami);
    variables
        .iter()
        .filter(|(variable, _)| variable.starts_with("KAFKA_"))
        .all(|(variable, _)| bitnami.is_some_and(|family| family.own(variable).is_some()))
}

/// Its listener PLAINTEXT_HOST, in a file that leaves the role of the node to the image.
fn is_confluent_local(variables: &[(String, String)]) -> bool {
    let get = |name: &str| variables.iter().find(|(variable, _)| variable == name);
    let says_who = [
        "KAFKA_PROCESS_ROLES",
        "KAFKA_NODE_ID",
        "KAFKA_BROKER_ID",
        "KAFKA_ZOOKEEPER_CONNECT",
    ];
    let names_it = ["KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"];
    says_who.iter().all(|name| get(name).is_none())
        && names_it
            .iter()
            .any(|name| get(name).is_some_and(|(_, value)| value.contains("PLAINTEXT_HOST://")))
}
