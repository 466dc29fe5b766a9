//! Who leads and who is in sync, case by case, and in clusters that live by chance.

use super::planners::*;
use super::*;
use crate::types::{ErrorCode, LeaderEpoch};

pub(super) const MIN_ISR_2: RulesOf<'static> = &|_| TopicRules {
    unclean: false,
    min_isr: 2,
};
pub(super) const UNCLEAN: RulesOf<'static> = &|_| TopicRules {
    unclean: true,
    min_isr: 1,
};

/// Brokers 1 to `count`, registered in epoch 0, with the features of a new cluster.
fn running(count: i32) -> MetadataImage {
    let brokers = (1..=count).map(|id| {
        let mut broker = broker(id, None);
        broker.broker_epoch = BrokerEpoch(id.into());
        broker.into()
    });
    image_of(bootstrap_records("id".into(), 1).into_iter().chain(brokers))
}

fn epoch(image: &MetadataImage, id: i32) -> BrokerEpoch {
    image.broker(BrokerId(id)).unwrap().broker_epoch
}

fn fence(image: &mut MetadataImage, id: i32, rules: RulesOf<'_>) {
    let plan = plan_fence_broker(image, BrokerId(id), epoch(image, id), rules);
    plan.answer.unwrap();
    add(image, plan.records);
}

fn unfence(image: &mut MetadataImage, id: i32, rules: RulesOf<'_>) {
    let plan = plan_unfence_broker(image, BrokerId(id), epoch(image, id), rules);
    plan.answer.unwrap();
    add(image, plan.records);
}

/// One topic `t` with one partition on 1, 2, 3.
fn one_partition() -> MetadataImage {
    let mut topic = new_topic("t", -1, -1);
    topic.assignments = vec![(0, [1, 2, 3].map(BrokerId).to_vec())];
    with_topics(running(3), &[topic])
}

fn partition(image: &MetadataImage) -> &PartitionRegistration {
    image.partition("t", 0).unwrap()
}

/// Leader, ISR, ELR.
fn state(image: &MetadataImage) -> (i32, Vec<i32>, Vec<i32>) {
    let ids = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect();
    let partition = partition(image);
    let elr = ids(partition.eligible_leader_replicas());
    (partition.leader.0, ids(&partition.isr), elr)
}

fn alter(image: &MetadataImage, new_isr: &[i32]) -> AlterPartition {
    let known = partition(image);
    AlterPartition {
        topic_id: image.topic("t").unwrap().id,
        partition: 0,
        leader_epoch: known.leader_epoch,
        partition_epoch: known.partition_epoch,
        new_isr: new_isr
            .iter()
            .map(|id| (BrokerId(*id), BrokerEpoch::NONE))
            .collect(),
        leader_recovery_state: known.leader_recovery_state(),
    }
}

fn run_alter(
    image: &mut MetadataImage,
    leader: i32,
    change: AlterPartition,
    rules: RulesOf<'_>,
) -> Result<AlteredPartition, ErrorCode> {
    let epoch = epoch(image, leader);
    let plan = plan_alter_partitions(image, BrokerId(leader), epoch, &[change], rules);
    add(image, plan.records);
    plan.answer.unwrap().remove(0)
}

#[test]
fn those_that_leave_below_min_isr_stay_eligible() {
    let mut image = one_partition();
    fence(&mut image, 1, MIN_ISR_2);
    assert_eq!(state(&image), (2, vec![2, 3], vec![]));
    fence(&mut image, 2, MIN_ISR_2);
    assert_eq!(state(&image), (3, vec![3], vec![2]));
    fence(&mut image, 3, MIN_ISR_2);
    assert_eq!(state(&image), (-1, vec![3], vec![2]));
    // 1 may lack records, 2 does not.
    unfence(&mut image, 1, MIN_ISR_2);
    assert_eq!(state(&image).0, -1);
    unfence(&mut image, 2, MIN_ISR_2);
    assert_eq!(state(&image), (2, vec![2], vec![3]));
    let change = alter(&image, &[2, 1]);
    run_alter(&mut image, 2, change, MIN_ISR_2).unwrap();
    assert_eq!(state(&image), (2, vec![1, 2], vec![]));
}

#[test]
fn an_unclean_election_begins_the_isr_anew_and_recovers() {
    let mut image = one_partition();
    fence(&mut image, 1, UNCLEAN);
    fence(&mut image, 2, UNCLEAN);
    fence(&mut image, 3, UNCLEAN);
    assert_eq!(state(&image), (-1, vec![3], vec![]));
    unfence(&mut image, 1, UNCLEAN);
    assert_eq!(state(&image), (1, vec![1], vec![]));
    assert_eq!(partition(&image).leader_recovery_state(), 1);
    unfence(&mut image, 3, UNCLEAN);
    let refused = run_alter(&mut image.clone(), 1, alter(&image, &[1, 3]), UNCLEAN);
    assert_eq!(refused, Err(ErrorCode::InvalidRequest), "it recovers first");
    let mut change = alter(&image, &[1, 3]);
    change.leader_recovery_state = 0;
    run_alter(&mut image, 1, change, UNCLEAN).unwrap();
    assert_eq!(state(&image), (1, vec![1, 3], vec![]));
}

#[test]
fn an_isr_change_is_refused_as_kafka_refuses_it() {
    let mut image = one_partition();
    fence(&mut image, 3, MIN_ISR_2);
    let good = alter(&image, &[1]);
    let cases: Vec<(AlterPartition, i32, ErrorCode)> = vec![
        (
            AlterPartition {
                topic_id: topic_id(9),
                ..good.clone()
            },
            1,
            ErrorCode::UnknownTopicId,
        ),
        (
            AlterPartition {
                partition: 7,
                ..good.clone()
            },
            1,
            ErrorCode::UnknownTopicOrPartition,
        ),
        (
            AlterPartition {
                leader_epoch: LeaderEpoch(9),
                ..good.clone()
            },
            1,
            ErrorCode::NotController,
        ),
        (
            AlterPartition {
                partition_epoch: 9,
                ..good.clone()
            },
            1,
            ErrorCode::NotController,
        ),
        (
            AlterPartition {
                leader_epoch: LeaderEpoch(-1),
                ..good.clone()
            },
            1,
            ErrorCode::FencedLeaderEpoch,
        ),
        (good.clone(), 2, ErrorCode::InvalidRequest),
        (
            AlterPartition {
                partition_epoch: 0,
                ..good.clone()
            },
            1,
            ErrorCode::InvalidUpdateVersion,
        ),
        (alter(&image, &[2]), 1, ErrorCode::InvalidRequest),
        (alter(&image, &[1, 1]), 1, ErrorCode::InvalidRequest),
        (alter(&image, &[1, 4]), 1, ErrorCode::InvalidRequest),
        (alter(&image, &[1, 2, 3]), 1, ErrorCode::IneligibleReplica),
        (
            AlterPartition {
                new_isr: vec![
                    (BrokerId(1), BrokerEpoch::NONE),
                    (BrokerId(2), BrokerEpoch(77)),
                ],
                ..good.clone()
            },
            1,
            ErrorCode::IneligibleReplica,
        ),
        (
            AlterPartition {
                leader_recovery_state: 1,
                ..good.clone()
            },
            1,
            ErrorCode::InvalidRequest,
        ),
    ];
    for (change, leader, expected) in cases {
        let shown = format!("{change:?}");
        let result = run_alter(&mut image.clone(), leader, change, MIN_ISR_2);
        assert_eq!(result, Err(expected), "{shown}");
    }
    let altered = run_alter(&mut image, 1, good, MIN_ISR_2).unwrap();
    let expected = (BrokerId(1), vec![BrokerId(1)]);
    assert_eq!((altered.leader, altered.isr), expected);
    assert_eq!(altered.partition_epoch, partition(&image).partition_epoch);
    let stale = plan_alter_partitions(&image, BrokerId(1), BrokerEpoch(99), &[], MIN_ISR_2);
    assert_eq!(stale.answer.unwrap_err().code, ErrorCode::StaleBrokerEpoch);
}

#[test]
fn where_it_was_allowed_late_an_unclean_leader_is_found() {
    let mut image = one_partition();
    for id in [1, 2, 3] {
        fence(&mut image, id, MIN_ISR_2);
    }
    unfence(&mut image, 1, MIN_ISR_2);
    assert_eq!(state(&image).0, -1, "2 and 3 may have what 1 lacks");
    let plan = plan_unclean_leaders(&image, 10, MIN_ISR_2);
    assert!(plan.records.is_empty());
    let plan = plan_unclean_leaders(&image, 10, UNCLEAN);
    add(&mut image, plan.records);
    assert_eq!(state(&image).0, 1);
}

#[test]
fn elections_by_request() {
    let mut image = one_partition();
    let elect = |image: &MetadataImage, election, named: &[(&str, i32)]| {
        let named: Vec<(crate::types::TopicName, i32)> = named
            .iter()
            .map(|(topic, index)| ((*topic).into(), *index))
            .collect();
        let plan = plan_elect_leaders(image, election, Some(&named), UNCLEAN);
        let codes = plan.answer.iter().map(|(_, _, result)| match result {
            Ok(()) => ErrorCode::None,
            Err(error) => error.code,
        });
        (codes.collect::<Vec<_>>(), plan.records)
    };
    let preferred = Election::Preferred;
    let (codes, _) = elect(&image, preferred, &[("t", 0), ("t", 1), ("u", 0)]);
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(codes, [ErrorCode::ElectionNotNeeded, unknown, unknown]);
    fence(&mut image, 1, MIN_ISR_2);
    let (codes, _) = elect(&image, preferred, &[("t", 0)]);
    assert_eq!(codes, [ErrorCode::PreferredLeaderNotAvailable]);
    unfence(&mut image, 1, MIN_ISR_2);
    let change = alter(&image, &[2, 3, 1]);
    run_alter(&mut image, 2, change, MIN_ISR_2).unwrap();
    let (codes, records) = elect(&image, preferred, &[("t", 0), ("t", 0)]);
    assert_eq!(codes, [ErrorCode::None, ErrorCode::ElectionNotNeeded]);
    add(&mut image, records);
    assert_eq!(state(&image).0, 1);
    let (codes, _) = elect(&image, Election::Unclean, &[("t", 0)]);
    assert_eq!(codes, [ErrorCode::ElectionNotNeeded]);
}

/// Numbers from a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Brokers come, go and crash, leaders shrink and grow their ISRs. What holds after every step:
///
/// 1. a leader is registered, active, a replica and in sync;
/// 2. the ISR is never empty and of replicas, the ELR of replicas that are not in sync;
/// 3. without unclean elections a leader is taken from those that were in sync or eligible before;
/// 4. the leader epoch goes up when the leader changes or a replica is taken away, the partition
///    epoch with every change;
/// 5. a reassignment leaves replicas.
fn live(seed: u64, steps: u32, rules: RulesOf<'_>, unclean: bool) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut image = with_topics(running(5), &[new_topic("t", 4, 3), new_topic("u", 3, 2)]);
    for step in 0..steps {
        let before = image.clone();
        let id = 1 + dice.below(5) as i32;
        let active = image.is_active(BrokerId(id));
        match dice.below(7) {
            0 if active => fence(&mut image, id, rules),
            1 | 2 if !active => unfence(&mut image, id, rules),
            3 if active => {
                let own = epoch(&image, id);
                let plan = plan_controlled_shutdown(&image, BrokerId(id), own, rules);
                plan.answer.unwrap();
                add(&mut image, plan.records);
            }
            4 => reassign(&mut image, &mut dice, rules),
            _ => change_isr(&mut image, &mut dice, rules),
        }
        let told = format!("seed {seed}, step {step}");
        check(&before, &image, unclean, &told);
    }
}

/// Other replicas for a partition of `t`, or the ones before.
fn reassign(image: &mut MetadataImage, dice: &mut Dice, rules: RulesOf<'_>) {
    let mut replicas: Vec<BrokerId> = (1..=5).map(BrokerId).collect();
    replicas.retain(|_| dice.below(2) == 0);
    let asked = Reassign {
        topic: "t".into(),
        partition: dice.below(4) as i32,
        replicas: (dice.below(4) > 0).then_some(replicas),
    };
    // Refused, too, where there is nothing to cancel or nobody is named.
    let plan = plan_reassign_partitions(image, &[asked], true, rules);
    add(image, plan.records);
}

fn change_isr(image: &mut MetadataImage, dice: &mut Dice, rules: RulesOf<'_>) {
    let topic = match dice.below(2) {
        0 => image.topic("t").unwrap().clone(),
        _ => image.topic("u").unwrap().clone(),
    };
    let index = dice.below(topic.partitions.len() as u64) as i32;
    let known = topic.partitions.get(index).unwrap();
    if !known.has_leader() {
        return;
    }
    let member = |id: &BrokerId| *id == known.leader || dice.below(2) == 0;
    let new_isr: Vec<BrokerId> = known.replicas.iter().copied().filter(member).collect();
    let change = AlterPartition {
        topic_id: topic.id,
        partition: index,
        leader_epoch: known.leader_epoch,
        partition_epoch: known.partition_epoch,
        new_isr: new_isr.iter().map(|id| (*id, BrokerEpoch::NONE)).collect(),
        leader_recovery_state: 0,
    };
    let own = epoch(image, known.leader.0);
    let plan = plan_alter_partitions(image, known.leader, own, &[change], rules);
    add(image, plan.records);
}

fn check(before: &MetadataImage, after: &MetadataImage, unclean: bool, told: &str) {
    for name in ["t", "u"] {
        let old = &before.topic(name).unwrap().partitions;
        let new = &after.topic(name).unwrap().partitions;
        for ((index, old), (_, new)) in old.iter().zip(new.iter()) {
            let told = format!("{told}: {name}-{index} {old:?} {new:?}");
            let elr = new.eligible_leader_replicas();
            assert!(!new.isr.is_empty(), "{told}");
            assert!(new.isr.iter().all(|id| new.replicas.contains(id)), "{told}");
            assert!(elr.iter().all(|id| new.replicas.contains(id)), "{told}");
            assert!(!elr.iter().any(|id| new.isr.contains(id)), "{told}");
            let keeps = new.leader == old.leader;
            let taken = old.replicas.iter().any(|id| !new.replicas.contains(id));
            if new.has_leader() {
                assert!(new.isr.contains(&new.leader), "{told}");
                assert!(keeps || after.is_active(new.leader), "{told}");
                let was = old.isr.contains(&new.leader)
                    || old.eligible_leader_replicas().contains(&new.leader);
                // The change of the ISR that completes a reassignment may bring its leader in.
                assert!(was || unclean || taken, "{told}");
            }
            let raised = new.leader_epoch.0 - old.leader_epoch.0;
            assert_eq!(raised, i32::from(!keeps || taken), "{told}");
            let stays = |id: &BrokerId| !new.removing_replicas().contains(id);
            assert!(new.replicas.iter().any(stays), "{told}");
            let changed = i32::from(new != old);
            assert_eq!(new.partition_epoch - old.partition_epoch, changed, "{told}");
        }
    }
}

#[test]
fn clusters_that_live_by_chance_keep_the_rules() {
    for seed in 0..300 {
        live(seed, 60, MIN_ISR_2, false);
        live(seed, 60, UNCLEAN, true);
    }
}
