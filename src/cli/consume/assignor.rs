//! Who reads what in a group, decided by its leader: Kafka's range assignor.
//!
//! Per topic, the members that want it (by member id) get consecutive ranges; the first ones get
//! one partition more when it does not divide evenly.

use std::collections::BTreeMap;

use super::protocol::{Assignment, TopicPartitions};

pub fn range(
    members: &BTreeMap<String, Vec<String>>,
    partitions: &BTreeMap<String, usize>,
) -> BTreeMap<String, Assignment> {
    let mut given: BTreeMap<String, TopicPartitions> = BTreeMap::new();
    for member in members.keys() {
        given.insert(member.clone(), Vec::new());
    }
    for (topic, count) in partitions {
        let wanting: Vec<&String> = members
            .iter()
            .filter(|(_, topics)| topics.contains(topic))
            .map(|(member, _)| member)
            .collect();
        if wanting.is_empty() {
            continue;
        }
        let (each, more) = (count / wanting.len(), count % wanting.len());
        let mut next = 0;
        for (place, member) in wanting.into_iter().enumerate() {
            let taken = each + usize::from(place < more);
            let range: Vec<i32> = (next..next + taken).map(|p| p as i32).collect();
            next += taken;
            if let Some(rows) = given.get_mut(member).filter(|_| !range.is_empty()) {
                rows.push((topic.clone(), range));
            }
        }
    }
    let whole = given.into_iter();
    whole
        .map(|(member, partitions)| (member, Assignment { partitions }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_even_and_whole() {
        let texts = |all: &[&str]| all.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        let members = BTreeMap::from([
            ("m1".to_owned(), texts(&["a", "b"])),
            ("m2".to_owned(), texts(&["a"])),
        ]);
        let partitions = BTreeMap::from([("a".to_owned(), 3), ("b".to_owned(), 1)]);
        let given = range(&members, &partitions);
        let first = vec![("a".to_owned(), vec![0, 1]), ("b".to_owned(), vec![0])];
        assert_eq!(given["m1"].partitions, first);
        assert_eq!(given["m2"].partitions, [("a".to_owned(), vec![2])]);
    }
}
