//! `KAFKA_*` variables as properties, as the image apache/kafka reads them.
//!
//! The prefix goes, what is left is put in lower case, and underscores become dots; three in a row
//! become a dash and two an underscore. Names of the image itself are no properties.

use super::{Origin, Property};

const PREFIX: &str = "KAFKA_";

/// Variables that speak to the image's scripts or to the JVM.
const NOT_PROPERTIES: &[&str] = &[
    "KAFKA_VERSION",
    "KAFKA_HEAP_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_JMX_HOSTNAME",
];

/// What Kubernetes sets beside a service named `kafka`: `KAFKA_PORT=tcp://...`,
/// `KAFKA_SERVICE_HOST`, `KAFKA_PORT_9092_TCP_ADDR`.
const SERVICE_LINKS: &[&str] = &["KAFKA_PORT", "KAFKA_SERVICE_"];

/// The properties among `variables`, by the name of the variable.
pub fn environment_properties<'a>(
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<Property> {
    let mut found: Vec<Property> = variables
        .into_iter()
        .filter(|(variable, _)| !NOT_PROPERTIES.contains(variable))
        .filter(|(variable, _)| !SERVICE_LINKS.iter().any(|link| variable.starts_with(link)))
        .filter_map(|(variable, value)| {
            let name = property_name(variable.strip_prefix(PREFIX)?);
            let origin = Origin::Environment(variable.to_owned());
            Some(Property {
                name,
                value: value.to_owned(),
                origin,
            })
        })
        .collect();
    // Two variables may give one name; the environment has no order, so take one.
    found.sort_by_key(|property| property.origin.to_string());
    found
}

fn property_name(rest: &str) -> String {
    let dotted = rest.to_lowercase().replace('_', ".");
    dotted.replace("...", "-").replace("..", "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule_of_the_image() {
        let variables = [
            ("KAFKA_LOG_RETENTION_MS", "1"),
            ("KAFKA_LISTENER_NAME_A__B_SASL_JAAS_CONFIG", "2"),
            ("KAFKA_X___Y", "3"),
            ("KAFKA_AUTO.CREATE.TOPICS.ENABLE", "4"),
            ("KAFKA_HEAP_OPTS", "no"),
            ("KAFKA_VERSION", "no"),
            ("KAFKA_PORT", "tcp://10.0.0.1:9092"),
            ("KAFKA_PORT_9092_TCP_PORT", "no"),
            ("HOME", "no"),
            ("kafka_num_partitions", "no"),
        ];
        let found = environment_properties(variables);
        let names: Vec<_> = found
            .iter()
            .map(|p| (p.name.as_str(), p.value.as_str()))
            .collect();
        assert_eq!(
            names,
            [
                ("auto.create.topics.enable", "4"),
                ("listener.name.a_b.sasl.jaas.config", "2"),
                ("log.retention.ms", "1"),
                ("x-y", "3"),
            ]
        );
        assert_eq!(
            found[2].origin.to_string(),
            "environment KAFKA_LOG_RETENTION_MS"
        );
    }
}
