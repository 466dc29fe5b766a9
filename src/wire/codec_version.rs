//! Which version of the `kafka-protocol` crate reads and writes a version of Kafka 4.4.
//!
//! The crate carries the layouts of Kafka 4.1. A newer version whose request and response are laid
//! out like those of a version the crate has differs in meaning only, and is read as that one.

use super::layout::api;

/// The newest version the crate has, of the APIs of which it lacks the newest. conform_tests.rs
/// holds this against the crate.
const NEWEST_IN_CRATE: &[(i16, i16)] = &[
    (2, 10),  // ListOffsets
    (8, 9),   // OffsetCommit
    (9, 9),   // OffsetFetch
    (18, 4),  // ApiVersions
    (22, 5),  // InitProducerId
    (27, 1),  // WriteTxnMarkers
    (28, 5),  // TxnOffsetCommit
    (35, 4),  // DescribeLogDirs
    (42, 2),  // DeleteGroups
    (63, 1),  // BrokerHeartbeat
    (78, 1),  // ShareFetch
    (79, 1),  // ShareAcknowledge
    (80, 0),  // AddRaftVoter
    (85, 0),  // WriteShareGroupState
    (87, 0),  // ReadShareGroupStateSummary
    (90, 0),  // DescribeShareGroupOffsets
    (88, -1), // StreamsGroupHeartbeat
    (89, -1), // StreamsGroupDescribe
    (93, -1), // StreamsGroupTopologyDescriptionUpdate
    (94, -1), // UnregisterController
];

/// The version to name to the crate for this version of Kafka's; `None` when the crate has no
/// version of that layout.
pub fn codec_version(api_key: i16, version: i16) -> Option<i16> {
    let api = api(api_key)?;
    let newest = NEWEST_IN_CRATE
        .iter()
        .find(|(key, _)| *key == api_key)
        .map_or(*api.versions.end(), |(_, newest)| *newest);
    if !api.versions.contains(&version) {
        return None;
    }
    if version <= newest {
        return Some(version);
    }
    let same = |lower: &i16| {
        api.request(*lower) == api.request(version) && api.response(*lower) == api.response(version)
    };
    (*api.versions.start()..=newest).rev().find(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::apis;

    #[test]
    fn missing_versions_are_served_by_their_twins() {
        let mut twins = Vec::new();
        let mut missing = Vec::new();
        for api in apis() {
            for version in api.versions.clone() {
                match codec_version(api.key, version) {
                    Some(codec) if codec == version => {}
                    Some(codec) => twins.push(format!("{} v{version} as v{codec}", api.name)),
                    None => missing.push(format!("{} v{version}", api.name)),
                }
            }
        }
        println!(
            "read by the crate under a lower version: {}",
            twins.join(", ")
        );
        println!("not read by the crate: {}", missing.join(", "));
        assert!(twins.contains(&"ListOffsets v11 as v10".to_owned()));
        assert!(missing.contains(&"ApiVersions v5".to_owned()));
    }
}
