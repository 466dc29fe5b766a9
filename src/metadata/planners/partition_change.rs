//! What happens to one partition when its replicas, its ISR or the brokers they live on change: one
//! place decides who leads, who is in sync and who is eligible, for every request that brings it
//! about.
//!
//! 1. A leader is taken from the ISR, in the order of the replicas; else from the eligible leader
//!    replicas (KIP-966); else, where an unclean election is allowed, from any live replica, which
//!    then is the whole ISR and recovers.
//! 2. The ISR never becomes empty: the last replica in sync is the one to wait for. (Kafka moves it
//!    to the ELR, which says the same.)
//! 3. The ELR holds those that left the ISR while it was below `min.insync.replicas`: nothing was
//!    committed since that they lack. It is empty once the ISR is large enough again.
//!    A crashed replica is not in it.
//! 4. What a crashed process had not synced may be gone. So who crashes leaves the ISR, and is
//!    remembered (`last_known_elr`) until it is in sync again. When the last replica in sync
//!    crashes, too, nobody knows which of them has everything: the partition is contested, and has
//!    no leader until their logs have been compared (`recovery`).
//! 5. A reassignment is complete when every replica that is added is in sync and one is left of
//!    those that stay.
//! 6. A replica whose directory its broker does not have is not live (`may_lead`): its records may
//!    be there, and nobody can read them.
//! 7. The leader epoch goes up when the leader changes and when a replica is taken away.

use std::sync::Arc;

use crate::metadata::{DirectoryId, PartitionChangeRecord, PartitionRegistration};
use crate::types::{BrokerId, TopicId};

/// A replica that may lack records leads, and is to recover them.
pub(super) const RECOVERING: i8 = 1;
pub(super) const RECOVERED: i8 = 0;

/// Which leader is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Election {
    /// The first replica if it may lead, else as `Online`.
    Preferred,
    /// The present one if it may lead, else the first that may.
    Online,
    /// As `Online`; where none may, any live replica.
    Unclean,
}

/// What is set for the topic of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicRules {
    /// `unclean.leader.election.enable`
    pub unclean: bool,
    /// `min.insync.replicas`
    pub min_isr: usize,
}

impl TopicRules {
    /// Kafka's defaults.
    pub const DEFAULT: TopicRules = TopicRules {
        unclean: false,
        min_isr: 1,
    };
}

/// Finds the rules of a topic by its name (the tables of configurations are not known here).
pub type RulesOf<'a> = &'a dyn Fn(&str) -> TopicRules;

/// A change in the making. It begins as "everything as before".
pub(super) struct PartitionChange<'a> {
    partition: &'a PartitionRegistration,
    record: PartitionChangeRecord,
    may_lead: &'a dyn Fn(BrokerId) -> bool,
    min_isr: usize,
    elr_is_on: bool,
    pub election: Election,
    pub replicas: Vec<BrokerId>,
    pub isr: Vec<BrokerId>,
    pub adding: Vec<BrokerId>,
    pub removing: Vec<BrokerId>,
    pub recovery_state: i8,
    /// The replica of a broker is in this directory now.
    pub directory: Option<(BrokerId, DirectoryId)>,
    /// What it had not synced may be gone, so it is not eligible.
    pub crashed: Option<BrokerId>,
    /// Those that were in sync until they crashed.
    known: Vec<BrokerId>,
}

impl<'a> PartitionChange<'a> {
    pub fn of(
        (topic_id, partition_id): (TopicId, i32),
        partition: &'a PartitionRegistration,
        rules: TopicRules,
        elr_is_on: bool,
        may_lead: &'a dyn Fn(BrokerId) -> bool,
    ) -> Self {
        PartitionChange {
            partition,
            record: PartitionChangeRecord::of(topic_id, partition_id),
            may_lead,
            min_isr: rules.min_isr,
            elr_is_on,
            election: match rules.unclean {
                true => Election::Unclean,
                false => Election::Online,
            },
            replicas: partition.replicas.to_vec(),
            isr: partition.isr.to_vec(),
            adding: partition.adding_replicas().to_vec(),
            removing: partition.removing_replicas().to_vec(),
            recovery_state: partition.leader_recovery_state(),
            directory: None,
            crashed: None,
            known: partition.last_known_elr().to_vec(),
        }
    }

    /// The logs have been compared: `leader` has everything that is left.
    pub fn recovered_by(mut self, leader: BrokerId) -> Self {
        self.isr = vec![leader];
        self.known.clear();
        self
    }

    /// The record of the change; `None` when everything is as before.
    pub fn record(mut self) -> Option<PartitionChangeRecord> {
        let before = self.partition;
        self.complete_reassignment();
        if self.isr.is_empty() {
            self.isr = before.isr.to_vec();
        }
        match self.crashed {
            Some(broker) => self.remember_crashed(broker),
            None => self.forget_alone(before.eligible_leader_replicas()),
        }
        let (leader, isr_restarts) = self.elect();
        if isr_restarts {
            self.isr = vec![leader];
        }
        let takes_away = |replica: &BrokerId| !self.replicas.contains(replica);
        if leader != before.leader || before.replicas.iter().any(takes_away) {
            self.record.leader = Some(leader);
        }
        let elr = self.eligible();
        self.forget_crashed(leader, &elr);
        let set = |list: &[BrokerId], old: &[BrokerId]| (list != old).then(|| list.into());
        self.record.isr = set(&self.isr, &before.isr);
        self.record.replicas = set(&self.replicas, &before.replicas);
        self.record.adding_replicas = set(&self.adding, before.adding_replicas());
        self.record.removing_replicas = set(&self.removing, before.removing_replicas());
        self.record.eligible_leader_replicas = set(&elr, before.eligible_leader_replicas());
        self.record.last_known_elr = set(&self.known, before.last_known_elr());
        self.record.directories = self.changed_directories();
        if self.recovery_state != before.leader_recovery_state() {
            self.record.leader_recovery_state = Some(self.recovery_state);
        }
        let nothing = PartitionChangeRecord::of(self.record.topic_id, self.record.partition_id);
        (self.record != nothing).then_some(self.record)
    }

    fn changed_directories(&self) -> Option<Arc<[DirectoryId]>> {
        let (broker, directory) = self.directory?;
        let known = |replica: &BrokerId| self.partition.directory(*replica);
        if known(&broker) == Some(directory) {
            return None;
        }
        let now = |replica: &BrokerId| match *replica == broker {
            true => directory,
            false => known(replica).unwrap_or(DirectoryId::UNASSIGNED),
        };
        Some(self.replicas.iter().map(now).collect())
    }

    fn complete_reassignment(&mut self) {
        if self.adding.is_empty() && self.removing.is_empty() {
            return;
        }
        let stays = |replica: &BrokerId| !self.removing.contains(replica);
        let replicas: Vec<BrokerId> = self.replicas.iter().copied().filter(stays).collect();
        let isr: Vec<BrokerId> = self.isr.iter().copied().filter(stays).collect();
        let caught_up = self.adding.iter().all(|added| isr.contains(added));
        if isr.is_empty() || replicas.is_empty() || !caught_up {
            return;
        }
        self.replicas = replicas;
        self.isr = isr;
        self.adding.clear();
        self.removing.clear();
    }

    /// Where it was the last one in sync, any other replica may have been in sync before and have
    /// crashed, though it was only seen to be away; but for those that are eligible and have not
    /// registered after a crash. Those come after it in the list: with an ELR they had left before
    /// the ISR was too small to take records.
    fn remember_crashed(&mut self, crashed: BrokerId) {
        let before = self.partition;
        let eligible = before.eligible_leader_replicas();
        let is_last = self.isr == [crashed];
        if before.isr.contains(&crashed) || eligible.contains(&crashed) {
            self.remember(crashed, is_last);
        }
        if is_last {
            let others = before.replicas.iter().copied();
            for broker in others.filter(|broker| !eligible.contains(broker)) {
                self.remember(broker, self.elr_is_on);
            }
        }
    }

    fn remember(&mut self, broker: BrokerId, as_last: bool) {
        if self.known.contains(&broker) {
            return;
        }
        let in_sync = |known: &BrokerId| self.isr.contains(known);
        let before_last = self.known.iter().position(in_sync);
        let at = before_last.filter(|_| !as_last);
        self.known.insert(at.unwrap_or(self.known.len()), broker);
    }

    /// Whoever is in sync with a leader has what it has.
    fn forget_crashed(&mut self, leader: BrokerId, elr: &[BrokerId]) {
        if leader != BrokerId::NONE {
            let isr = &self.isr;
            self.known.retain(|broker| !isr.contains(broker));
        }
        self.forget_alone(elr);
    }

    /// A replica in sync that is the only one left has nobody to compare its log with.
    fn forget_alone(&mut self, elr: &[BrokerId]) {
        let replicas = &self.replicas;
        self.known.retain(|broker| replicas.contains(broker));
        let waits = elr.iter().any(|broker| replicas.contains(broker));
        if !waits && self.known == self.isr {
            self.known.clear();
        }
    }

    /// The leader, and whether the ISR is to begin anew with it.
    fn elect(&mut self) -> (BrokerId, bool) {
        let live = |broker: &BrokerId| (self.may_lead)(*broker);
        let known = &self.known;
        let counts = |broker: &BrokerId| self.isr.contains(broker) && !known.contains(broker);
        let in_sync = |broker: &BrokerId| counts(broker) && live(broker);
        let preferred = self.replicas.first().copied().filter(in_sync);
        if self.election == Election::Preferred
            && let Some(preferred) = preferred
        {
            return (preferred, false);
        }
        let present = self.partition.leader;
        if self.replicas.contains(&present) && in_sync(&present) {
            return (present, false);
        }
        let mut replicas = self.replicas.iter().copied();
        if let Some(first) = replicas.clone().find(in_sync) {
            return (first, false);
        }
        let eligible = self.partition.eligible_leader_replicas();
        let mut from_elr = replicas.clone();
        if let Some(first) = from_elr.find(|broker| eligible.contains(broker) && live(broker)) {
            return (first, true);
        }
        match replicas.find(live) {
            Some(first) if self.election == Election::Unclean => {
                self.recovery_state = RECOVERING;
                self.known.clear();
                (first, true)
            }
            _ => (BrokerId::NONE, false),
        }
    }

    fn eligible(&self) -> Vec<BrokerId> {
        let before = self.partition;
        let enough = self.isr.len() >= self.min_isr.min(self.replicas.len());
        let lost = self.recovery_state == RECOVERING && before.leader_recovery_state() == RECOVERED;
        if !self.elr_is_on || enough || lost {
            return Vec::new();
        }
        let was = |broker: &BrokerId| {
            before.isr.contains(broker) || before.eligible_leader_replicas().contains(broker)
        };
        let may_lack = |broker: &BrokerId| {
            self.crashed == Some(*broker) || before.last_known_elr().contains(broker)
        };
        let eligible =
            |broker: &BrokerId| was(broker) && !self.isr.contains(broker) && !may_lack(broker);
        self.replicas.iter().copied().filter(eligible).collect()
    }
}
