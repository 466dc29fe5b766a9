//! Both assignors, by example and against their invariants on random groups.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn topic(n: u8) -> TopicId {
    TopicId(Uuid::from_u128(u128::from(n) + 1))
}

fn member(id: &str, topics: &[u8], previous: &[(u8, &[i32])]) -> AssignorMember {
    AssignorMember {
        member_id: id.into(),
        instance_id: None,
        topics: topics.iter().map(|t| topic(*t)).collect(),
        previous: previous
            .iter()
            .map(|(t, p)| (topic(*t), p.to_vec()))
            .collect(),
    }
}

fn topics(counts: &[i32]) -> BTreeMap<TopicId, i32> {
    (0..)
        .zip(counts)
        .map(|(i, count)| (topic(i), *count))
        .collect()
}

fn of(assignment: &Assignment, id: &str) -> Vec<(u8, Vec<i32>)> {
    let number = |t: &TopicId| (t.0.as_u128() - 1) as u8;
    let partitions = assignment[id].iter();
    partitions.map(|(t, p)| (number(t), p.clone())).collect()
}

#[test]
fn range_gives_neighbours_and_orders_by_instance() {
    let mut members = vec![
        member("a", &[0, 1], &[]),
        member("b", &[0, 1], &[]),
        member("c", &[0], &[]),
    ];
    members[2].instance_id = Some("first".into());
    let assignment = Assignor::Range.assign(&members, &topics(&[4, 3]));
    assert_eq!(of(&assignment, "c"), [(0, vec![0, 1])]);
    assert_eq!(of(&assignment, "a"), [(0, vec![2]), (1, vec![0, 1])]);
    assert_eq!(of(&assignment, "b"), [(0, vec![3]), (1, vec![2])]);
}

#[test]
fn uniform_moves_only_what_a_new_member_needs() {
    let members = [
        member("a", &[0], &[(0, &[0, 1, 2])]),
        member("b", &[0], &[(0, &[3, 4, 5])]),
        member("c", &[0], &[]),
    ];
    let assignment = Assignor::Uniform.assign(&members, &topics(&[6]));
    assert_eq!(of(&assignment, "a"), [(0, vec![0, 1])]);
    assert_eq!(of(&assignment, "b"), [(0, vec![3, 4])]);
    assert_eq!(of(&assignment, "c"), [(0, vec![2, 5])]);
}

#[test]
fn uniform_balances_over_different_subscriptions() {
    let members = [
        member("a", &[0, 1], &[(0, &[0, 1]), (1, &[0, 1])]),
        member("b", &[1], &[]),
    ];
    let assignment = Assignor::Uniform.assign(&members, &topics(&[2, 2]));
    assert_eq!(of(&assignment, "a"), [(0, vec![0, 1])]);
    assert_eq!(of(&assignment, "b"), [(1, vec![0, 1])]);
}

fn group() -> impl Strategy<Value = (Vec<AssignorMember>, BTreeMap<TopicId, i32>)> {
    let counts = proptest::collection::vec(0..7i32, 1..5);
    let one = (
        proptest::collection::btree_set(0..6u8, 0..5),
        proptest::collection::btree_map(
            0..6u8,
            proptest::collection::btree_set(0..9i32, 0..5),
            0..4,
        ),
    );
    let members = proptest::collection::vec(one, 0..7);
    (counts, members).prop_map(|(counts, members)| {
        let topics = topics(&counts);
        let members = (0..)
            .zip(members)
            .map(|(i, (subscribed, previous))| AssignorMember {
                member_id: format!("m{i}").into(),
                instance_id: None,
                topics: subscribed
                    .into_iter()
                    .map(topic)
                    .filter(|t| topics.contains_key(t))
                    .collect(),
                previous: previous
                    .into_iter()
                    .map(|(t, p)| (topic(t), p.into_iter().collect()))
                    .collect(),
            });
        (members.collect(), topics)
    })
}

fn check_owners(
    members: &[AssignorMember],
    topics: &BTreeMap<TopicId, i32>,
    assignment: &Assignment,
) {
    let mut owned = BTreeSet::new();
    for member in members {
        for (topic, partitions) in &assignment[&member.member_id] {
            assert!(member.topics.contains(topic));
            assert!(!partitions.is_empty() && partitions.is_sorted());
            for partition in partitions {
                assert!((0..topics[topic]).contains(partition));
                assert!(owned.insert((*topic, *partition)), "two owners");
            }
        }
    }
    for (topic, count) in topics {
        let wanted = members.iter().any(|m| m.topics.contains(topic));
        for partition in 0..*count {
            assert_eq!(owned.contains(&(*topic, partition)), wanted);
        }
    }
}

proptest! {
    #[test]
    fn every_partition_has_one_owner((members, topics) in group()) {
        for assignor in [Assignor::Uniform, Assignor::Range] {
            let assignment = assignor.assign(&members, &topics);
            check_owners(&members, &topics, &assignment);
        }
    }

    #[test]
    fn uniform_is_balanced_and_keeps_still((mut members, topics) in group()) {
        let assignment = Assignor::Uniform.assign(&members, &topics);
        let load = |m: &AssignorMember| -> usize {
            assignment[&m.member_id].values().map(Vec::len).sum()
        };
        for a in &members {
            for b in &members {
                let may_move = assignment[&a.member_id].keys().any(|t| b.topics.contains(t));
                assert!(!may_move || load(a) <= load(b) + 1);
            }
        }
        for member in &mut members {
            member.previous = assignment[&member.member_id].clone();
        }
        assert_eq!(Assignor::Uniform.assign(&members, &topics), assignment);
    }
}
