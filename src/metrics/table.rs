//! The table of all metrics: what a scrape gives, docs/metrics.md and the tests that walk every
//! metric follow from it.
//!
//! A row is
//!
//! ```text
//! Variant Kind "name" ["label", ...] = "Kafka's counterpart",
//!     "What it is.";
//! ```
//!
//! 1. Names begin with `klamm_` and end with their unit; those of counters end with `_total`. What
//!    every process has is named as by everybody else: `process_`.
//! 2. Whoever writes the samples matches on [`Metric`], so a row without samples does not compile.

/// What a value may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It grows, and is 0 after a start.
    Counter,
    Gauge,
    /// Times, by buckets.
    Histogram,
}

impl MetricKind {
    pub const fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Debug)]
pub struct MetricRow {
    pub metric: Metric,
    pub area: Area,
    pub kind: MetricKind,
    pub name: &'static str,
    pub labels: &'static [&'static str],
    /// The MBean of Kafka that says about the same, and behind a blank the attribute where it has
    /// several; empty where there is none.
    pub kafka: &'static str,
    pub help: &'static str,
}

macro_rules! metrics {
    ($(
        $area:ident $title:literal {
            $($metric:ident $kind:ident $name:literal [$($label:literal),*] = $kafka:literal,
                $help:literal;)*
        }
    )*) => {
        /// A part of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Area { $($area,)* }

        impl Area {
            pub const ALL: &'static [Area] = &[$(Area::$area,)*];

            pub const fn title(self) -> &'static str {
                match self { $(Area::$area => $title,)* }
            }
        }

        /// A row of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Metric { $($($metric,)*)* }

        impl Metric {
            pub fn row(self) -> &'static MetricRow {
                &METRICS[self as usize]
            }
        }

        /// Every metric, in the order of a scrape.
        pub const METRICS: &[MetricRow] = &[$($(MetricRow {
            metric: Metric::$metric,
            area: Area::$area,
            kind: MetricKind::$kind,
            name: $name,
            labels: &[$($label),*],
            kafka: $kafka,
            help: $help,
        },)*)*];
    };
}

metrics! {
    Node "The node" {
        BrokerState Gauge "klamm_broker_state" []
            = "kafka.server:type=KafkaServer,name=BrokerState",
            "Kafka's number for what the node does: 1 starting, 2 recovering its logs, 3 running, 6 handing over what it leads, 7 shutting down.";
        BuildInfo Gauge "klamm_build_info" ["version"]
            = "kafka.server:type=app-info version",
            "Always 1; the label says which Klamm this is.";
        LogsToRecover Gauge "klamm_logs_to_recover" ["directory"]
            = "kafka.log:type=LogManager,name=remainingLogsToRecover",
            "Logs that the start has still to open; 0 once the node runs.";
        ClientsUnreached Counter "klamm_clients_unreached_total" [] = "",
            "Clients that were told an address and have not come there (advertised.listeners); counted by a broker that is alone.";
    }

    Requests "Requests" {
        Requests Counter "klamm_requests_total" ["api"]
            = "kafka.network:type=RequestMetrics,name=RequestsPerSec",
            "Requests that came in over connections and were answered.";
        RequestErrors Counter "klamm_request_errors_total" ["api", "error"]
            = "kafka.network:type=RequestMetrics,name=ErrorsPerSec",
            "Error codes in answers, one for each place: a Produce of three partitions may have three.";
        RequestDuration Histogram "klamm_request_duration_seconds" ["api"]
            = "kafka.network:type=RequestMetrics,name=TotalTimeMs",
            "From the arrival of a whole request to its turn to be answered; what it waits for is in it (data, replicas, other members).";
        RequestMemory Gauge "klamm_request_memory_bytes" []
            = "kafka.network:type=SocketServer,name=MemoryPoolUsed",
            "Memory that requests hold while they arrive and are worked on.";
        RequestMemoryLimit Gauge "klamm_request_memory_limit_bytes" []
            = "kafka.network:type=SocketServer,name=MemoryPoolAvailable",
            "What they may hold together (queued.max.request.bytes).";
    }

    Connections "Connections" {
        Connections Gauge "klamm_connections" ["listener"]
            = "kafka.server:type=socket-server-metrics connection-count",
            "Connections that are open.";
        ConnectionsAccepted Counter "klamm_connections_accepted_total" ["listener"]
            = "kafka.server:type=socket-server-metrics connection-creation-total",
            "Connections that were let in.";
        ConnectionsTurnedAway Counter "klamm_connections_turned_away_total" ["listener"] = "",
            "Connections that were closed at once, because of max.connections or max.connections.per.ip.";
        ReceivedBytes Counter "klamm_received_bytes_total" ["listener"]
            = "kafka.server:type=socket-server-metrics incoming-byte-total",
            "Bytes of requests.";
        SentBytes Counter "klamm_sent_bytes_total" ["listener"]
            = "kafka.server:type=socket-server-metrics outgoing-byte-total",
            "Bytes of answers.";
    }

    Records "Records" {
        AppendedRecords Counter "klamm_appended_records_total" []
            = "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec",
            "Records that were appended to partitions which this broker leads, its coordinators' own with them.";
        AppendedBytes Counter "klamm_appended_bytes_total" []
            = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec",
            "Bytes of those records, as they are stored.";
        FetchedBytes Counter "klamm_fetched_bytes_total" []
            = "kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec",
            "Bytes of records that consumers were given.";
        ReplicatedBytesIn Counter "klamm_replicated_in_bytes_total" []
            = "kafka.server:type=BrokerTopicMetrics,name=ReplicationBytesInPerSec",
            "Bytes of records that this broker has copied from leaders.";
        ReplicatedBytesOut Counter "klamm_replicated_out_bytes_total" []
            = "kafka.server:type=BrokerTopicMetrics,name=ReplicationBytesOutPerSec",
            "Bytes of records that followers were given.";
    }

    Topics "Topics" {
        TopicAppendedRecords Counter "klamm_topic_appended_records_total" ["topic"]
            = "kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,topic=*",
            "Records that were appended to the topic's partitions which this broker leads.";
        TopicAppendedBytes Counter "klamm_topic_appended_bytes_total" ["topic"]
            = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=*",
            "Bytes of those records.";
        TopicFetchedBytes Counter "klamm_topic_fetched_bytes_total" ["topic"]
            = "kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec,topic=*",
            "Bytes of the topic's records that consumers were given.";
        TopicLogSize Gauge "klamm_topic_log_size_bytes" ["topic"]
            = "kafka.log:type=Log,name=Size,topic=*",
            "Bytes of batches in the topic's logs on this broker.";
    }

    Replicas "Replicas" {
        Partitions Gauge "klamm_partitions" []
            = "kafka.server:type=ReplicaManager,name=PartitionCount",
            "Replicas on this broker.";
        Leaders Gauge "klamm_leader_partitions" []
            = "kafka.server:type=ReplicaManager,name=LeaderCount",
            "Partitions that this broker leads.";
        UnderReplicated Gauge "klamm_under_replicated_partitions" []
            = "kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions",
            "Partitions that this broker leads and that a replica is not in sync with.";
        UnderMinIsr Gauge "klamm_under_min_isr_partitions" []
            = "kafka.server:type=ReplicaManager,name=UnderMinIsrPartitionCount",
            "Partitions that this broker leads and that refuse acks=all, as too few replicas are in sync (min.insync.replicas).";
        AtMinIsr Gauge "klamm_at_min_isr_partitions" []
            = "kafka.server:type=ReplicaManager,name=AtMinIsrPartitionCount",
            "Partitions that this broker leads and that would refuse acks=all without one more replica.";
        OfflineReplicas Gauge "klamm_offline_replicas" []
            = "kafka.server:type=ReplicaManager,name=OfflineReplicaCount",
            "Replicas on this broker whose log directory has failed.";
        IsrShrinks Counter "klamm_isr_shrinks_total" []
            = "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec",
            "How often a replica fell out of sync with a partition that this broker leads.";
        IsrExpands Counter "klamm_isr_expands_total" []
            = "kafka.server:type=ReplicaManager,name=IsrExpandsPerSec",
            "How often a replica came into sync with a partition that this broker leads.";
        WaitingReplicas Gauge "klamm_waiting_replicas" [] = "",
            "Replicas of this broker whose log directory is not here; they serve when it is back.";
        LostReplicas Gauge "klamm_lost_replicas" [] = "",
            "Replicas of this broker whose log is lost or cannot be read. The log of the node says which, and how to go on.";
        StrayLogs Gauge "klamm_stray_logs" [] = "",
            "Logs on disk that no replica has taken and that were left where they are.";
    }

    Logs "Logs" {
        LogSize Gauge "klamm_log_size_bytes" ["directory"]
            = "kafka.log:type=Log,name=Size",
            "Bytes of batches in all logs of a directory.";
        Segments Gauge "klamm_log_segments" ["directory"]
            = "kafka.log:type=Log,name=NumLogSegments",
            "Segments of all logs of a directory.";
        FileSystemFree Gauge "klamm_log_directory_available_bytes" ["directory"] = "",
            "What the file system of the directory has left for this process.";
        FileSystemSize Gauge "klamm_log_directory_size_bytes" ["directory"] = "",
            "The size of the file system of the directory.";
        LogDirectoryOffline Gauge "klamm_log_directory_offline" ["directory"]
            = "kafka.log:type=LogManager,name=LogDirectoryOffline",
            "1 when the directory has failed.";
        FlushDuration Histogram "klamm_log_flush_duration_seconds" ["directory"]
            = "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
            "How long flushes have waited for the disk, each of one log or of many at once.";
        OpenFiles Gauge "klamm_log_open_files" [] = "",
            "Files of segments that are open; they are opened when they are used.";
    }

    Cleaner "Compaction" {
        CleanerRuns Counter "klamm_cleaner_runs_total" [] = "",
            "Compactions of a log that were done.";
        CleanerFailures Counter "klamm_cleaner_failures_total" [] = "",
            "Compactions that failed; each log is tried again, later each time up to an hour. The log of the node says why.";
        UncleanableLogs Gauge "klamm_cleaner_uncleanable_logs" []
            = "kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count",
            "Logs whose last compaction has failed. They grow until one succeeds.";
        CleanerReadBytes Counter "klamm_cleaner_read_bytes_total" [] = "",
            "Bytes that compactions have read.";
        CleanerWrittenBytes Counter "klamm_cleaner_written_bytes_total" []
            = "kafka.log:type=LogCleaner,name=cleaner-recopy-percent",
            "Bytes that were left of them and written anew.";
    }

    Coordinators "Groups and transactions" {
        Groups Gauge "klamm_groups" ["protocol", "state"]
            = "kafka.server:type=group-coordinator-metrics group-count",
            "Groups that this broker coordinates.";
        GroupCoordinators Gauge "klamm_group_coordinators" ["state"]
            = "kafka.server:type=group-coordinator-metrics num-partitions",
            "Partitions of __consumer_offsets that this broker leads: active, loading, or failed to load.";
        Transactions Gauge "klamm_transactions" ["state"] = "",
            "Transactional ids that this broker coordinates.";
        TransactionCoordinators Gauge "klamm_transaction_coordinators" ["state"]
            = "",
            "Partitions of __transaction_state that this broker leads: active, loading, or failed to load.";
        EldestTransaction Gauge "klamm_eldest_transaction_seconds" []
            = "kafka.server:type=ReplicaManager,name=PartitionsWithLateTransactionsCount",
            "The age of the eldest transaction that is open or whose markers are not all written; 0: there is none.";
        FetchSessions Gauge "klamm_fetch_sessions" []
            = "kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions",
            "Fetch sessions that are kept.";
    }

    Controller "Controller" {
        ActiveController Gauge "klamm_active_controller" []
            = "kafka.controller:type=KafkaController,name=ActiveControllerCount",
            "1 on the node that is the active controller.";
        OfflinePartitions Gauge "klamm_offline_partitions" []
            = "kafka.controller:type=KafkaController,name=OfflinePartitionsCount",
            "Partitions of the cluster without a leader. Only the active controller tells.";
        PreferredReplicaImbalance Gauge "klamm_preferred_replica_imbalance" []
            = "kafka.controller:type=KafkaController,name=PreferredReplicaImbalanceCount",
            "Partitions of the cluster that another than their first replica leads. Only the active controller tells.";
        Elections Counter "klamm_leader_elections_total" [] = "",
            "Partitions that got another leader while this node was the active controller.";
        UncleanElections Counter "klamm_unclean_leader_elections_total" []
            = "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
            "Those whose new leader was not in sync: acknowledged records may be gone.";
        ClusterTopics Gauge "klamm_cluster_topics" []
            = "kafka.controller:type=KafkaController,name=GlobalTopicCount",
            "Topics of the cluster. Only the active controller tells.";
        ClusterPartitions Gauge "klamm_cluster_partitions" []
            = "kafka.controller:type=KafkaController,name=GlobalPartitionCount",
            "Partitions of the cluster. Only the active controller tells.";
        ActiveBrokers Gauge "klamm_active_brokers" []
            = "kafka.controller:type=KafkaController,name=ActiveBrokerCount",
            "Brokers that serve. Only the active controller tells.";
        FencedBrokers Gauge "klamm_fenced_brokers" []
            = "kafka.controller:type=KafkaController,name=FencedBrokerCount",
            "Registered brokers that do not serve: not heard, or not caught up. Only the active controller tells.";
        MetadataOffset Gauge "klamm_metadata_offset" []
            = "kafka.server:type=broker-metadata-metrics last-applied-record-offset",
            "The last entry of the metadata that this node has applied.";
        MetadataLag Gauge "klamm_metadata_lag_entries" []
            = "kafka.server:type=broker-metadata-metrics last-applied-record-lag-ms",
            "Entries of the metadata that this node has and has not applied yet.";
        QuorumEpoch Gauge "klamm_quorum_epoch" []
            = "kafka.server:type=raft-metrics current-epoch",
            "The term of the metadata quorum, as this node knows it.";
        QuorumLeader Gauge "klamm_quorum_leader" []
            = "kafka.server:type=raft-metrics current-leader",
            "The id of the active controller as this node knows it; -1: none.";
    }

    Process "The process" {
        ResidentMemory Gauge "process_resident_memory_bytes" [] = "java.lang:type=Memory HeapMemoryUsage",
            "Memory of the process, shared files in it.";
        CpuSeconds Counter "process_cpu_seconds_total" [] = "java.lang:type=OperatingSystem ProcessCpuTime",
            "Processor time that the process has used.";
        OpenFds Gauge "process_open_fds" [] = "java.lang:type=OperatingSystem OpenFileDescriptorCount",
            "File handles of the process: files and connections.";
        MaxFds Gauge "process_max_fds" [] = "java.lang:type=OperatingSystem MaxFileDescriptorCount",
            "How many it may have.";
        StartTime Gauge "process_start_time_seconds" [] = "java.lang:type=Runtime StartTime",
            "When the process was started, in seconds since 1970.";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn is_name(text: &str) -> bool {
        let part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(part)
    }

    #[test]
    fn every_row_keeps_prometheus_conventions() {
        let mut names = BTreeSet::new();
        for (at, row) in METRICS.iter().enumerate() {
            let MetricRow { name, kind, .. } = row;
            assert_eq!(row.metric as usize, at);
            assert!(names.insert(*name), "{name} twice");
            assert!(is_name(name), "{name}");
            assert!(row.labels.iter().all(|label| is_name(label)), "{name}");
            let is_of_process = row.area == Area::Process;
            let prefix = if is_of_process { "process_" } else { "klamm_" };
            assert!(name.starts_with(prefix), "{name}");
            let is_total = name.ends_with("_total");
            assert_eq!(is_total, *kind == MetricKind::Counter, "{name}");
            let is_time = name.ends_with("_seconds");
            assert!(*kind != MetricKind::Histogram || is_time, "{name}");
            for unit in ["_ms", "_millis", "_kb", "_mb", "_percent"] {
                assert!(!name.contains(unit), "{name}: base units only");
            }
            for reserved in ["_bucket", "_count", "_sum"] {
                assert!(!name.ends_with(reserved), "{name}: of a histogram");
            }
            assert!(row.help.ends_with('.') && !row.help.contains('|'), "{name}");
            assert!(!row.kafka.contains('|'), "{name}");
            let bounded = [
                "api",
                "error",
                "listener",
                "directory",
                "version",
                "state",
                "topic",
                "protocol",
            ];
            let is_bounded = |label: &&str| bounded.contains(label);
            assert!(row.labels.iter().all(is_bounded), "{name}");
        }
    }
}
