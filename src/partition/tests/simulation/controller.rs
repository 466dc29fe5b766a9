//! The controller of the simulation: one topic, its partitions, the brokers' registrations.

use std::sync::Arc;

use uuid::Uuid;

use crate::machine::replica_set::{Decided, NO_BROKER_EPOCH};
use crate::metadata::{
    BrokerEpoch, BrokerRegistrationChangeRecord, ImageDelta, MetadataImage, MetadataRecord,
    PartitionChangeRecord, PartitionRecord, PartitionRegistration, RegisterBrokerRecord,
    TopicRecord,
};
use crate::partition::IsrChange;
use crate::types::{BrokerId, ErrorCode, LeaderEpoch, Offset, TopicId};

pub const PARTITIONS: i32 = 2;

pub fn topic_id() -> TopicId {
    TopicId(Uuid::from_u128(77))
}

pub struct Controller {
    /// The images after each entry, with what changed.
    pub history: Vec<(Arc<MetadataImage>, ImageDelta)>,
}

impl Controller {
    pub fn new(brokers: i32) -> Controller {
        let mut controller = Controller {
            history: vec![(Arc::new(MetadataImage::empty()), ImageDelta::default())],
        };
        let all: Arc<[BrokerId]> = (0..brokers).map(BrokerId).collect();
        let mut records: Vec<MetadataRecord> = vec![
            TopicRecord {
                name: "t".into(),
                topic_id: topic_id(),
            }
            .into(),
        ];
        records.extend((0..PARTITIONS).map(|partition_id| {
            let record = PartitionRecord {
                partition_id,
                topic_id: topic_id(),
                replicas: all.clone(),
                isr: all.clone(),
                removing_replicas: Arc::new([]),
                adding_replicas: Arc::new([]),
                leader: BrokerId::NONE,
                leader_recovery_state: 0,
                leader_epoch: LeaderEpoch(0),
                partition_epoch: 0,
                directories: Arc::new([]),
                eligible_leader_replicas: Arc::new([]),
                last_known_elr: Arc::new([]),
            };
            record.into()
        }));
        controller.write(records);
        controller
    }

    pub fn image(&self) -> &Arc<MetadataImage> {
        &self.history.last().expect("never empty").0
    }

    pub fn partition(&self, index: i32) -> PartitionRegistration {
        let topic = self.image().topic_by_id(topic_id()).expect("the topic");
        topic.partitions.get(index).expect("the partition").clone()
    }

    fn write(&mut self, records: Vec<MetadataRecord>) {
        let mut image = (**self.image()).clone();
        let mut delta = ImageDelta::default();
        image.begin_entry(Offset(image.offset().0 + 1), 1);
        for record in records {
            image.apply(&record, &mut delta).expect("it fits");
        }
        self.history.push((Arc::new(image), delta));
    }

    fn change(&mut self, index: i32, isr: Vec<BrokerId>, leader: Option<BrokerId>) {
        let mut record = PartitionChangeRecord::of(topic_id(), index);
        record.isr = Some(isr.into());
        record.leader = leader;
        self.write(vec![record.into()]);
    }

    pub fn is_active(&self, broker: BrokerId) -> bool {
        self.image().is_active(broker)
    }

    fn elect(&self, isr: &[BrokerId], wanted: i32) -> Option<BrokerId> {
        let mut by_preference: Vec<BrokerId> = isr.to_vec();
        by_preference.sort_by_key(|broker| (broker.0 != wanted, broker.0));
        by_preference
            .into_iter()
            .find(|broker| self.is_active(*broker))
    }

    pub fn move_leader(&mut self, index: i32, wanted: i32) {
        let partition = self.partition(index);
        if let Some(leader) = self.elect(&partition.isr, wanted)
            && leader != partition.leader
        {
            self.change(index, partition.isr.to_vec(), Some(leader));
        }
    }

    /// Takes a broker out. `crashed`: it may have lost what it had.
    pub fn fence(&mut self, broker: BrokerId, crashed: bool) {
        if let Some(known) = self.image().broker(broker)
            && !known.fenced
        {
            let record = BrokerRegistrationChangeRecord {
                broker_id: broker,
                broker_epoch: known.broker_epoch,
                fenced: Some(true),
                in_controlled_shutdown: None,
                log_dirs: None,
                cordoned_log_dirs: None,
            };
            self.write(vec![record.into()]);
        }
        for index in 0..PARTITIONS {
            let partition = self.partition(index);
            let rest: Vec<_> = partition
                .isr
                .iter()
                .copied()
                .filter(|b| *b != broker)
                .collect();
            let next = self.elect(&rest, -1);
            let in_isr = partition.isr.contains(&broker);
            let leaves = in_isr && (next.is_some() || crashed && !rest.is_empty());
            let led = partition.leader == broker;
            if !leaves && !led {
                continue;
            }
            let isr = if leaves { rest } else { partition.isr.to_vec() };
            self.change(index, isr, led.then(|| next.unwrap_or(BrokerId::NONE)));
        }
    }

    /// A new incarnation; its epoch.
    pub fn register(&mut self, broker: BrokerId) -> BrokerEpoch {
        if self.image().broker(broker).is_some() {
            self.fence(broker, true);
        }
        let record = RegisterBrokerRecord {
            broker_id: broker,
            incarnation_id: Uuid::from_u128(self.history.len() as u128),
            broker_epoch: BrokerEpoch::NONE,
            end_points: Vec::new(),
            features: Vec::new(),
            rack: None,
            fenced: false,
            in_controlled_shutdown: false,
            log_dirs: Vec::new(),
            cordoned_log_dirs: Vec::new(),
        };
        self.write(vec![record.into()]);
        let epoch = self
            .image()
            .broker(broker)
            .expect("registered")
            .broker_epoch;
        for index in 0..PARTITIONS {
            let partition = self.partition(index);
            if !partition.has_leader()
                && let Some(leader) = self.elect(&partition.isr, broker.0)
            {
                self.change(index, partition.isr.to_vec(), Some(leader));
            }
        }
        epoch
    }

    /// AlterPartition. The members that were added come with the answer.
    pub fn alter(
        &mut self,
        from: BrokerId,
        broker_epoch: i64,
        change: &IsrChange,
    ) -> Result<(Decided, Vec<BrokerId>), ErrorCode> {
        let epoch_of = |broker| {
            self.image()
                .broker(broker)
                .map(|known| known.broker_epoch.0)
        };
        if epoch_of(from) != Some(broker_epoch) || !self.is_active(from) {
            return Err(ErrorCode::StaleBrokerEpoch);
        }
        let partition = self.partition(change.partition);
        let proposal = &change.proposal;
        if proposal.leader_epoch != partition.leader_epoch || partition.leader != from {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        if proposal.partition_epoch != partition.partition_epoch {
            return Err(ErrorCode::InvalidUpdateVersion);
        }
        let fits = |(broker, epoch): &(BrokerId, i64)| {
            self.is_active(*broker)
                && (*epoch == NO_BROKER_EPOCH || epoch_of(*broker) == Some(*epoch))
        };
        if !proposal.new_isr.iter().all(fits) {
            return Err(ErrorCode::IneligibleReplica);
        }
        let isr: Vec<BrokerId> = proposal.new_isr.iter().map(|(broker, _)| *broker).collect();
        let mut added = isr.clone();
        added.retain(|broker| !partition.isr.contains(broker));
        self.change(change.partition, isr, None);
        let partition = self.partition(change.partition);
        let decided = Decided {
            leader_epoch: partition.leader_epoch,
            partition_epoch: partition.partition_epoch,
            replicas: partition.replicas.clone(),
            isr: partition.isr.clone(),
        };
        Ok((decided, added))
    }
}
