//! What a scrape finds: the state of the node at one moment, added up.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::monitor::{Monitor, Phase};
use crate::api::Node;
use crate::coordinator::runtime::Coordinators;
use crate::host::process::{self, Usage};
use crate::log::{Cleaner, LogDir};
use crate::machine::group::GroupStates;
use crate::machine::transaction::TransactionStates;
use crate::partition::{Partition, TopicTraffic};
use crate::server::Traffic;
use crate::types::{TimestampMs, TopicName, TopicPartition};

/// What was found, each thing looked at once.
pub struct Seen {
    pub phase: Phase,
    pub node: Option<Arc<Node>>,
    pub replicas: Replicas,
    pub cluster: Option<Cluster>,
    pub topics: BTreeMap<TopicName, Topic>,
    pub coordinators: Option<Coordination>,
    pub directories: Vec<Directory>,
    pub open_files: usize,
    pub cleaner: Option<Arc<Cleaner>>,
    pub traffic: Vec<Arc<Traffic>>,
    pub budget_bytes: (usize, usize),
    pub process: Option<Usage>,
}

impl Seen {
    /// Blocks on the file systems.
    pub fn of(monitor: &Monitor) -> Seen {
        let node = monitor.node();
        let log_dirs = monitor.log_dirs.get().map_or(&[][..], Vec::as_slice);
        let budgets = monitor.budgets.lock();
        Seen {
            phase: monitor.phase(),
            replicas: node.as_deref().map(Replicas::of).unwrap_or_default(),
            cluster: node.as_deref().and_then(Cluster::of),
            topics: node.as_deref().map(topics).unwrap_or_default(),
            coordinators: node.as_deref().map(Coordination::of),
            node,
            directories: log_dirs.iter().map(Directory::of).collect(),
            open_files: log_dirs.first().map_or(0, |dir| dir.open_files()),
            cleaner: monitor.cleaner.get().cloned(),
            traffic: monitor.traffic.lock().clone(),
            budget_bytes: budgets.iter().fold((0, 0), |(held, all), budget| {
                (held + budget.held_bytes(), all + budget.bytes())
            }),
            process: process::usage(),
        }
    }
}

/// Replicas on this broker.
#[derive(Default)]
pub struct Replicas {
    pub all: usize,
    pub led: usize,
    pub under_replicated: usize,
    pub under_min_isr: usize,
    pub at_min_isr: usize,
    pub offline: usize,
    pub waiting: usize,
    pub lost: usize,
    pub strays: usize,
}

impl Replicas {
    fn of(node: &Node) -> Replicas {
        let (waiting, lost) = node.partitions.count_without_log();
        let mut seen = Replicas {
            waiting,
            lost,
            strays: node.partitions.strays().len(),
            ..Replicas::default()
        };
        for partition in node.partitions.all() {
            seen.note(node, &partition);
        }
        seen
    }

    fn note(&mut self, node: &Node, partition: &Partition) {
        self.all += 1;
        self.offline += usize::from(partition.log_dir().offline_reason().is_some());
        if !partition.is_leader() {
            return;
        }
        self.led += 1;
        let leadership = partition.leadership();
        let in_sync = leadership.isr.len();
        if in_sync < leadership.replicas.len() {
            // Those that a reassignment adds are not missed yet, as in Kafka.
            let image = node.image();
            let TopicPartition { topic, partition } = &partition.topic_partition;
            let registration = image.partition(topic, *partition);
            let adding = registration.map_or(0, |r| r.adding_replicas().len());
            self.under_replicated +=
                usize::from(in_sync < leadership.replicas.len().saturating_sub(adding));
        }
        let wanted = partition.topic_config().min_insync_replicas.max(1) as usize;
        let wanted = wanted.min(leadership.replicas.len());
        self.under_min_isr += usize::from(in_sync < wanted);
        self.at_min_isr += usize::from(in_sync == wanted);
    }
}

/// Of one topic.
pub struct Topic {
    pub traffic: Arc<TopicTraffic>,
    pub log_bytes: u64,
}

/// None when there are more than may be told apart.
fn topics(node: &Node) -> BTreeMap<TopicName, Topic> {
    let topics_max = node.config().broker.metrics.klamm_metrics_topics_max as usize;
    let mut topics = BTreeMap::new();
    for partition in node.partitions.all() {
        let name = &partition.topic_partition.topic;
        if !topics.contains_key(name) {
            if topics.len() == topics_max {
                return BTreeMap::new();
            }
            let traffic = partition.topic_traffic.clone();
            let log_bytes = 0;
            topics.insert(name.clone(), Topic { traffic, log_bytes });
        }
        if let Some(topic) = topics.get_mut(name) {
            topic.log_bytes += partition.log().size_bytes();
        }
    }
    topics
}

/// Groups and transactions.
pub struct Coordination {
    pub groups: GroupStates,
    pub group_coordinators: Coordinators,
    pub transactions: TransactionStates,
    pub transaction_coordinators: Coordinators,
    pub now: TimestampMs,
}

impl Coordination {
    fn of(node: &Node) -> Coordination {
        let (groups, group_coordinators) = node.groups.survey();
        let (transactions, transaction_coordinators) = node.transactions.survey();
        Coordination {
            groups,
            group_coordinators,
            transactions,
            transaction_coordinators,
            now: node.clock.now_ms(),
        }
    }

    pub fn eldest_s(&self) -> f64 {
        let age_ms = |began: TimestampMs| (self.now.0 - began.0).max(0) as f64;
        self.transactions.eldest.map_or(0.0, age_ms) / 1000.0
    }
}

/// The cluster, as the active controller knows it.
#[derive(Default)]
pub struct Cluster {
    pub topics: usize,
    pub partitions: usize,
    pub without_leader: usize,
    pub not_preferred: usize,
    pub active_brokers: usize,
    pub fenced_brokers: usize,
}

impl Cluster {
    /// `None`: this node is not the active controller.
    fn of(node: &Node) -> Option<Cluster> {
        if !node.quorum.is_leader() {
            return None;
        }
        let image = node.image();
        let mut seen = Cluster {
            topics: image.topic_count(),
            ..Cluster::default()
        };
        for broker in image.brokers() {
            seen.active_brokers += usize::from(broker.is_active());
            seen.fenced_brokers += usize::from(broker.fenced);
        }
        for (_, partition) in image.topics().flat_map(|topic| topic.partitions.iter()) {
            seen.partitions += 1;
            seen.without_leader += usize::from(!partition.has_leader());
            let preferred = partition.replicas.first();
            seen.not_preferred += usize::from(preferred != Some(&partition.leader));
        }
        Some(seen)
    }
}

pub struct Directory {
    pub dir: Arc<LogDir>,
    pub name: String,
    pub log_bytes: u64,
    pub segments: usize,
    /// What is left, and the whole; `None` where the system does not tell.
    pub space: Option<(u64, u64)>,
}

impl Directory {
    fn of(dir: &Arc<LogDir>) -> Directory {
        let logs = dir.logs();
        let space = dir.space().ok();
        Directory {
            dir: dir.clone(),
            name: dir.path().display().to_string(),
            log_bytes: logs.iter().map(|log| log.size_bytes()).sum(),
            segments: logs.iter().map(|log| log.segment_count()).sum(),
            space: space.map(|space| (space.available_bytes, space.total_bytes)),
        }
    }
}
