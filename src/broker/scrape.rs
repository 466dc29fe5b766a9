//! The samples of every metric, from what there is when somebody asks.

use std::sync::Arc;

use super::monitor::{Monitor, Phase};
use crate::api::{APIS, Node, RequestCounts};
use crate::host::process::{self, Usage};
use crate::log::{Cleaner, LogDir};
use crate::metrics::{Counter, Exposition, Family, METRICS, Metric};
use crate::partition::{Partition, Traffic as RecordTraffic};
use crate::server::Traffic;
use crate::types::BrokerId;

/// What was found, each thing looked at once.
pub struct Seen {
    phase: Phase,
    node: Option<Arc<Node>>,
    replicas: Replicas,
    cluster: Option<Cluster>,
    directories: Vec<Directory>,
    open_files: usize,
    cleaner: Option<Arc<Cleaner>>,
    traffic: Vec<Arc<Traffic>>,
    budget_bytes: (usize, usize),
    process: Option<Usage>,
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
            node,
            directories: log_dirs.iter().map(|dir| Directory::of(dir)).collect(),
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
struct Replicas {
    all: usize,
    led: usize,
    under_replicated: usize,
    under_min_isr: usize,
    at_min_isr: usize,
    offline: usize,
    strays: usize,
}

impl Replicas {
    fn of(node: &Node) -> Replicas {
        let mut seen = Replicas {
            strays: node.partitions.strays().len(),
            ..Replicas::default()
        };
        for partition in node.partitions.all() {
            seen.note(&partition);
        }
        seen
    }

    fn note(&mut self, partition: &Partition) {
        self.all += 1;
        self.offline += usize::from(partition.log_dir().offline_reason().is_some());
        if !partition.is_leader() {
            return;
        }
        self.led += 1;
        let leadership = partition.leadership();
        let in_sync = leadership.isr.len();
        self.under_replicated += usize::from(in_sync < leadership.replicas.len());
        let wanted = partition.topic_config().min_insync_replicas.max(1) as usize;
        let wanted = wanted.min(leadership.replicas.len());
        self.under_min_isr += usize::from(in_sync < wanted);
        self.at_min_isr += usize::from(in_sync == wanted);
    }
}

/// The cluster, as the active controller knows it.
#[derive(Default)]
struct Cluster {
    topics: usize,
    partitions: usize,
    without_leader: usize,
    not_preferred: usize,
    active_brokers: usize,
    fenced_brokers: usize,
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

struct Directory {
    dir: Arc<LogDir>,
    name: String,
    log_bytes: u64,
    segments: usize,
    /// What is left, and the whole; `None` where the system does not tell.
    space: Option<(u64, u64)>,
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

/// The answer to a scrape.
pub fn text(seen: &Seen) -> String {
    let mut exposition = Exposition::default();
    for row in METRICS {
        put(row.metric, seen, &mut exposition.family(row));
    }
    exposition.into_text()
}

fn put(metric: Metric, seen: &Seen, family: &mut Family<'_>) {
    use Metric::*;
    match metric {
        BrokerState => family.put(&[], seen.phase.broker_state()),
        BuildInfo => family.put(&[env!("CARGO_PKG_VERSION")], 1),
        LogsToRecover => seen.by_directory(family, |at| Some(at.dir.unopened_count())),
        ClientsUnreached => seen.of_node(family, |node| Some(node.reach.not_reached())),
        Requests => seen.by_api(family, |family, name, counts| {
            family.put(&[name], counts.times.count());
        }),
        RequestErrors => seen.by_api(family, |family, name, counts| {
            for (error, count) in counts.errors() {
                family.put(&[name, error.name()], count);
            }
        }),
        RequestDuration => seen.by_api(family, |family, name, counts| {
            if counts.times.count() > 0 {
                family.put_times(&[name], &counts.times);
            }
        }),
        RequestMemory => family.put(&[], seen.budget_bytes.0),
        RequestMemoryLimit => family.put(&[], seen.budget_bytes.1),
        Connections => seen.by_listener(family, Traffic::open),
        ConnectionsAccepted => seen.by_listener(family, |at| at.accepted.get()),
        ConnectionsTurnedAway => seen.by_listener(family, |at| at.turned_away.get()),
        ReceivedBytes => seen.by_listener(family, |at| at.received_bytes.get()),
        SentBytes => seen.by_listener(family, |at| at.sent_bytes.get()),
        AppendedRecords => seen.records(family, |at| &at.appended_records),
        AppendedBytes => seen.records(family, |at| &at.appended_bytes),
        FetchedBytes => seen.records(family, |at| &at.fetched_bytes),
        ReplicatedBytesIn => seen.records(family, |at| &at.replicated_in_bytes),
        ReplicatedBytesOut => seen.records(family, |at| &at.replicated_out_bytes),
        IsrShrinks => seen.records(family, |at| &at.isr_shrinks),
        IsrExpands => seen.records(family, |at| &at.isr_expands),
        Partitions => family.put(&[], seen.replicas.all),
        Leaders => family.put(&[], seen.replicas.led),
        UnderReplicated => family.put(&[], seen.replicas.under_replicated),
        UnderMinIsr => family.put(&[], seen.replicas.under_min_isr),
        AtMinIsr => family.put(&[], seen.replicas.at_min_isr),
        OfflineReplicas => family.put(&[], seen.replicas.offline),
        StrayLogs => family.put(&[], seen.replicas.strays),
        LogSize => seen.by_directory(family, |at| Some(at.log_bytes)),
        Segments => seen.by_directory(family, |at| Some(at.segments)),
        FileSystemFree => seen.by_directory(family, |at| Some(at.space?.0)),
        FileSystemSize => seen.by_directory(family, |at| Some(at.space?.1)),
        LogDirectoryOffline => seen.by_directory(family, |at| {
            Some(u8::from(at.dir.offline_reason().is_some()))
        }),
        FlushDuration => {
            for at in &seen.directories {
                family.put_times(&[&at.name], at.dir.flush_times());
            }
        }
        OpenFiles => family.put(&[], seen.open_files),
        CleanerRuns => seen.cleaner(family, |at| at.runs.get()),
        CleanerFailures => seen.cleaner(family, |at| at.failures.get()),
        UncleanableLogs => seen.cleaner(family, |at| at.failed_count() as u64),
        CleanerReadBytes => seen.cleaner(family, |at| at.read_bytes.get()),
        CleanerWrittenBytes => seen.cleaner(family, |at| at.written_bytes.get()),
        ActiveController => family.put(&[], u8::from(seen.cluster.is_some())),
        OfflinePartitions => seen.of_cluster(family, |at| at.without_leader),
        PreferredReplicaImbalance => seen.of_cluster(family, |at| at.not_preferred),
        ClusterTopics => seen.of_cluster(family, |at| at.topics),
        ClusterPartitions => seen.of_cluster(family, |at| at.partitions),
        ActiveBrokers => seen.of_cluster(family, |at| at.active_brokers),
        FencedBrokers => seen.of_cluster(family, |at| at.fenced_brokers),
        MetadataOffset => seen.of_node(family, |node| Some(node.partitions.applied().0)),
        MetadataLag => seen.of_node(family, |node| {
            let applied = node.partitions.applied();
            Some((node.image().offset().0 - applied.0).max(0))
        }),
        QuorumEpoch => seen.of_node(family, |node| Some(node.quorum.leader_and_term().1)),
        QuorumLeader => seen.of_node(family, |node| {
            Some(node.quorum.leader().unwrap_or(BrokerId::NONE).0)
        }),
        ResidentMemory => seen.of_process(family, |usage| usage.resident_bytes),
        CpuSeconds => seen.of_process(family, |usage| usage.cpu_s),
        OpenFds => seen.of_process(family, |usage| usage.open_files),
        MaxFds => seen.of_process(family, |usage| usage.open_files_max),
        StartTime => seen.of_process(family, |usage| usage.start_s),
    }
}

impl Seen {
    fn of_node<V: std::fmt::Display>(
        &self,
        family: &mut Family<'_>,
        value: impl Fn(&Node) -> Option<V>,
    ) {
        if let Some(value) = self.node.as_deref().and_then(value) {
            family.put(&[], value);
        }
    }

    fn of_cluster(&self, family: &mut Family<'_>, value: impl Fn(&Cluster) -> usize) {
        if let Some(cluster) = &self.cluster {
            family.put(&[], value(cluster));
        }
    }

    fn of_process<V: std::fmt::Display>(
        &self,
        family: &mut Family<'_>,
        value: impl Fn(&Usage) -> V,
    ) {
        if let Some(usage) = &self.process {
            family.put(&[], value(usage));
        }
    }

    fn records(&self, family: &mut Family<'_>, counter: impl Fn(&RecordTraffic) -> &Counter) {
        self.of_node(family, |node| {
            let traffic = &node.partitions.surroundings().traffic;
            Some(counter(traffic).get())
        });
    }

    fn cleaner(&self, family: &mut Family<'_>, value: impl Fn(&Cleaner) -> u64) {
        if let Some(cleaner) = &self.cleaner {
            family.put(&[], value(cleaner));
        }
    }

    /// Of all APIs that were asked for.
    fn by_api(
        &self,
        family: &mut Family<'_>,
        put: impl Fn(&mut Family<'_>, &str, &crate::api::ApiCounts),
    ) {
        let Some(node) = &self.node else {
            return;
        };
        let requests: &RequestCounts = &node.requests;
        for row in APIS {
            put(family, row.name, requests.of(row));
        }
    }

    fn by_listener(&self, family: &mut Family<'_>, value: impl Fn(&Traffic) -> u64) {
        for (at, first) in self.traffic.iter().enumerate() {
            let same = |other: &&Arc<Traffic>| other.listener == first.listener;
            if !self.traffic[..at].iter().any(|before| same(&before)) {
                let sockets = self.traffic.iter().filter(same);
                family.put(&[&first.listener], sockets.map(|at| value(at)).sum::<u64>());
            }
        }
    }

    fn by_directory<V: std::fmt::Display>(
        &self,
        family: &mut Family<'_>,
        value: impl Fn(&Directory) -> Option<V>,
    ) {
        for at in &self.directories {
            if let Some(value) = value(at) {
                family.put(&[&at.name], value);
            }
        }
    }
}
