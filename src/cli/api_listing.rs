//! The versions of APIs that each broker serves, as `kafka-broker-api-versions` prints them.
//!
//! ```text
//! host:port (id: 1 rack: null isFenced: false) -> (
//!     Produce(0): 0 to 13 [usable: 13],
//!     ...
//! )
//! ```

use crate::peer::{Broker, Versions};
use crate::wire;

pub fn listing(broker: &Broker, versions: &Versions) -> String {
    let mut keys: Vec<i16> = wire::apis()
        .iter()
        .filter(|api| api.broker && !api.versions.is_empty())
        .map(|api| api.key)
        .collect();
    let unknown = versions
        .apis
        .keys()
        .filter(|key| wire::api(**key).is_none());
    keys.extend(unknown);
    keys.sort_unstable();
    keys.dedup();
    let rows: Vec<String> = keys.into_iter().map(|key| row(key, versions)).collect();
    format!("{broker} -> (\n{}\n)", rows.join(",\n"))
}

fn row(key: i16, versions: &Versions) -> String {
    let api = wire::api(key);
    let name = api.map_or_else(|| "UNKNOWN".to_owned(), |api| api.name.to_owned());
    let Some(range) = versions.apis.get(&key) else {
        return format!("\t{name}({key}): UNSUPPORTED");
    };
    let span = match range.min == range.max {
        true => range.min.to_string(),
        false => format!("{} to {}", range.min, range.max),
    };
    let Some(api) = api else {
        return format!("\t{name}({key}): {span}");
    };
    let newest = range.max.min(api.stable_max);
    let usable = match newest >= range.min.max(*api.versions.start()) {
        true => format!("usable: {newest}"),
        false => {
            "unusable: node too ".to_owned()
                + if range.max < *api.versions.start() {
                    "old"
                } else {
                    "new"
                }
        }
    };
    format!("\t{name}({key}): {span} [{usable}]")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::peer::{Address, Range};

    #[test]
    fn rows_as_kafka_prints_them() {
        let range = |min, max| Range { min, max };
        let apis = BTreeMap::from([(0, range(0, 99)), (46, range(0, 0)), (999, range(1, 2))]);
        let versions = Versions { apis, answer: None };
        let (id, rack) = (1, None);
        let address = Address::new("h", 1);
        let text = listing(&Broker { id, address, rack }, &versions);
        assert!(text.starts_with("h:1 (id: 1 rack: null isFenced: false) -> (\n\tProduce(0): "));
        assert!(text.contains("\tProduce(0): 0 to 99 [usable: 13],\n"));
        assert!(text.contains("\tFetch(1): UNSUPPORTED,\n"));
        assert!(text.contains("\tListPartitionReassignments(46): 0 [usable: 0],\n"));
        assert!(text.ends_with("\tUNKNOWN(999): 1 to 2\n)"));
    }
}
