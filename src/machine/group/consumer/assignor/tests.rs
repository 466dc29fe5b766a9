//! Both assignors, by example and against their invariants on random groups.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn topic(n: u8) -> TopicId {
    TopicId(Uuid::from_u128(u128::from(n) + 1))
}

/// A member with all that it consists of.
#[derive(Debug, Clone)]
struct Member {
    member_id: MemberId,
    instance_id: Option<String>,
    topics: BTreeSet<TopicId>,
    previous: TopicPartitions,
}

/// The whole assignment: what the assignor says has changed, and what members had otherwise.
fn assign(assignor: Assignor, members: &[Member], topics: &BTreeMap<TopicId, i32>) -> Assignment {
    let subscribed: BTreeMap<TopicId, i32> = topics
        .iter()
        .filter(|(topic, _)| members.iter().any(|m| m.topics.contains(topic)))
        .map(|(topic, count)| (*topic, *count))
        .collect();
    let views: Vec<AssignorMember<'_>> = members
        .iter()
        .map(|m| AssignorMember {
            member_id: &m.member_id,
            instance_id: m.instance_id.as_deref(),
            topics: &m.topics,
            previous: Some(&m.previous),
        })
        .collect();
    let changed = assignor.assign(&views, &subscribed);
    let kept = |m: &Member| (m.member_id.clone(), m.previous.clone());
    let mut all: Assignment = members.iter().map(kept).collect();
    for (member, partitions) in changed {
        assert_ne!(all[&member], partitions, "nothing has changed for {member}");
        all.insert(member, partitions);
    }
    all
}

fn member(id: &str, topics: &[u8], previous: &[(u8, &[i32])]) -> Member {
    Member {
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
    let assignment = assign(Assignor::Range, &members, &topics(&[4, 3]));
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
    let assignment = assign(Assignor::Uniform, &members, &topics(&[6]));
    assert_eq!(of(&assignment, "a"), [(0, vec![0, 1])]);
    assert_eq!(of(&assignment, "b"), [(0, vec![3, 4])]);
    assert_eq!(of(&assignment, "c"), [(0, vec![2, 5])]);
}

#[test]
fn uniform_moves_nothing_to_give_another_member_the_odd_one() {
    let members = [
        member("a", &[0], &[(0, &[0])]),
        member("b", &[0], &[(0, &[1, 2])]),
        member("c", &[0], &[(0, &[3])]),
    ];
    let assignment = assign(Assignor::Uniform, &members, &topics(&[4]));
    assert_eq!(of(&assignment, "b"), [(0, vec![1, 2])]);
}

#[test]
fn a_member_without_a_target_gets_one_even_if_it_is_empty() {
    let (id, topics) = (MemberId::from("a"), BTreeSet::new());
    let member = AssignorMember {
        member_id: &id,
        instance_id: None,
        topics: &topics,
        previous: None,
    };
    for assignor in [Assignor::Uniform, Assignor::Range] {
        let assignment = assignor.assign(&[member], &BTreeMap::new());
        assert_eq!(assignment[&id], TopicPartitions::new());
    }
}

#[test]
fn uniform_balances_over_different_subscriptions() {
    let members = [
        member("a", &[0, 1], &[(0, &[0, 1]), (1, &[0, 1])]),
        member("b", &[1], &[]),
    ];
    let assignment = assign(Assignor::Uniform, &members, &topics(&[2, 2]));
    assert_eq!(of(&assignment, "a"), [(0, vec![0, 1])]);
    assert_eq!(of(&assignment, "b"), [(1, vec![0, 1])]);
}

fn group() -> impl Strategy<Value = (Vec<Member>, BTreeMap<TopicId, i32>)> {
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
            .map(|(i, (subscribed, previous))| Member {
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

fn check_owners(members: &[Member], topics: &BTreeMap<TopicId, i32>, assignment: &Assignment) {
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
            let assignment = assign(assignor, &members, &topics);
            check_owners(&members, &topics, &assignment);
        }
    }

    #[test]
    fn uniform_is_balanced_and_keeps_still((mut members, topics) in group()) {
        let assignment = assign(Assignor::Uniform, &members, &topics);
        let load = |m: &Member| -> usize {
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
        assert_eq!(assign(Assignor::Uniform, &members, &topics), assignment);
    }
}
