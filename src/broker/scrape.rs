//! The samples of every metric, from what was seen.

use std::fmt::Display;
use std::sync::Arc;

use super::seen::{Cluster, Coordination, Directory, Seen, Topic};
use crate::api::{APIS, ApiCounts, Node};
use crate::coordinator::runtime::Coordinators;
use crate::host::process::Usage;
use crate::log::Cleaner;
use crate::metrics::{Counter, Exposition, Family, METRICS, Metric};
use crate::partition::Traffic as RecordTraffic;
use crate::server::Traffic;
use crate::types::BrokerId;

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
        TopicAppendedRecords => seen.by_topic(family, |at| at.traffic.appended_records.get()),
        TopicAppendedBytes => seen.by_topic(family, |at| at.traffic.appended_bytes.get()),
        TopicFetchedBytes => seen.by_topic(family, |at| at.traffic.fetched_bytes.get()),
        TopicLogSize => seen.by_topic(family, |at| at.log_bytes),
        Partitions => family.put(&[], seen.replicas.all),
        Leaders => family.put(&[], seen.replicas.led),
        UnderReplicated => family.put(&[], seen.replicas.under_replicated),
        UnderMinIsr => family.put(&[], seen.replicas.under_min_isr),
        AtMinIsr => family.put(&[], seen.replicas.at_min_isr),
        OfflineReplicas => family.put(&[], seen.replicas.offline),
        WaitingReplicas => family.put(&[], seen.replicas.waiting),
        LostReplicas => family.put(&[], seen.replicas.lost),
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
        Groups => seen.coordination(family, |family, at| {
            for ((protocol, state), count) in &at.groups {
                family.put(&[protocol, state], count);
            }
        }),
        GroupCoordinators => seen.coordination(family, |family, at| {
            put_coordinators(family, &at.group_coordinators);
        }),
        Transactions => seen.coordination(family, |family, at| {
            for (state, count) in &at.transactions.counts {
                family.put(&[state.name()], count);
            }
        }),
        TransactionCoordinators => seen.coordination(family, |family, at| {
            put_coordinators(family, &at.transaction_coordinators);
        }),
        EldestTransaction => seen.coordination(family, |family, at| {
            family.put(&[], at.eldest_s());
        }),
        FetchSessions => seen.of_node(family, |node| Some(node.fetch_sessions.lock().len())),
        ActiveController => family.put(&[], u8::from(seen.cluster.is_some())),
        OfflinePartitions => seen.of_cluster(family, |at| at.without_leader),
        PreferredReplicaImbalance => seen.of_cluster(family, |at| at.not_preferred),
        Elections => seen.of_node(family, |node| Some(node.elections.all.get())),
        UncleanElections => seen.of_node(family, |node| Some(node.elections.unclean.get())),
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
    fn of_node<V: Display>(&self, family: &mut Family<'_>, value: impl Fn(&Node) -> Option<V>) {
        if let Some(value) = self.node.as_deref().and_then(value) {
            family.put(&[], value);
        }
    }

    fn of_cluster(&self, family: &mut Family<'_>, value: impl Fn(&Cluster) -> usize) {
        if let Some(cluster) = &self.cluster {
            family.put(&[], value(cluster));
        }
    }

    fn of_process<V: Display>(&self, family: &mut Family<'_>, value: impl Fn(&Usage) -> V) {
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
    fn by_api(&self, family: &mut Family<'_>, put: impl Fn(&mut Family<'_>, &str, &ApiCounts)) {
        let Some(node) = &self.node else {
            return;
        };
        for row in APIS {
            put(family, row.name, node.requests.of(row));
        }
    }

    fn by_topic(&self, family: &mut Family<'_>, value: impl Fn(&Topic) -> u64) {
        for (name, topic) in &self.topics {
            family.put(&[name], value(topic));
        }
    }

    fn coordination(&self, family: &mut Family<'_>, put: impl Fn(&mut Family<'_>, &Coordination)) {
        if let Some(coordination) = &self.coordinators {
            put(family, coordination);
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

    fn by_directory<V: Display>(
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

fn put_coordinators(family: &mut Family<'_>, coordinators: &Coordinators) {
    family.put(&["active"], coordinators.active);
    family.put(&["loading"], coordinators.loading);
    family.put(&["failed"], coordinators.failed);
}
