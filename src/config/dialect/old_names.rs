//! Names that are accepted and have no effect: those of ZooKeeper, of a vendor, of older releases.

use super::names::Read;
use crate::config::Origin;

/// Names of configurations; one that ends with `.` is a prefix.
const WITHOUT_EFFECT: &[&str] = &[
    "zookeeper.",
    "confluent.",
    "metric.reporters",
    "enable.zookeeper",
    "reserved.broker.max.id",
    "broker.id.generation.enable",
    "inter.broker.protocol.version",
    "log.message.format.version",
    "message.format.version",
    "control.plane.listener.name",
    "enable.kraft",
    "unstable.api.versions.enable",
    "unstable.feature.versions.enable",
    "jmx.",
];

/// Whether the variables are those of a broker with a ZooKeeper, and not of KRaft as well.
pub(super) fn is_of_zookeeper(read: &Read) -> bool {
    let has = |name: &str| {
        let mut given = read.properties.iter();
        given.any(|property| property.name == name && !property.value.trim().is_empty())
    };
    has("zookeeper.connect") && !has("process.roles")
}

/// Moves them from the properties to the list of what has no effect.
pub(super) fn take_out(read: &mut Read) {
    let is_old = |name: &str| {
        WITHOUT_EFFECT
            .iter()
            .any(|pattern| match pattern.ends_with('.') {
                true => name.starts_with(pattern),
                false => name == *pattern,
            })
    };
    let properties = std::mem::take(&mut read.properties);
    for property in properties {
        if !is_old(&property.name) {
            read.properties.push(property);
            continue;
        }
        if let Origin::Environment(variable) = &property.origin {
            read.without_effect.push(variable.clone());
        }
    }
    read.without_effect.sort();
    read.without_effect.dedup();
}
