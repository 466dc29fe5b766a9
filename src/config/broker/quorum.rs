//! Controllers, the metadata quorum and the life signs of brokers.

use crate::config::table::config_table;

config_table! {
    /// Controllers, the metadata quorum and the life signs of brokers.
    QuorumConfig;

    List "controller.quorum.voters" = "", [NonEmptyList], High, ReadOnly
        => controller_quorum_voters: Vec<String>,
        "The fixed voters of the quorum, each as id@host:port.";
    List "controller.quorum.bootstrap.servers" = "", [NonEmptyList], High, ReadOnly
        => controller_quorum_bootstrap_servers: Vec<String>,
        "Controllers to ask for the quorum, each as host:port.";
    Boolean "controller.quorum.auto.join.enable" = "false", [Any], Low, ReadOnly
        no_effect "voters are those of controller.quorum.voters",
        "Let a controller that is no voter become one by itself.";
    Int "controller.quorum.election.timeout.ms" = "1000", [AtLeast(0)], High, ReadOnly
        no_effect "time-outs of the quorum follow controller.quorum.fetch.timeout.ms",
        "How long a candidate waits for votes before it starts another election.";
    Int "controller.quorum.election.backoff.max.ms" = "1000", [AtLeast(0)], High, ReadOnly
        no_effect "time-outs of the quorum follow controller.quorum.fetch.timeout.ms",
        "How long a candidate that lost waits at most before it tries again.";
    Int "controller.quorum.fetch.timeout.ms" = "2000", [AtLeast(0)], High, ReadOnly
        => controller_quorum_fetch_timeout_ms: i32,
        "How long a quorum goes without its leader before an election.";
    Int "controller.quorum.fetch.max.bytes" = "1048576", [AtLeast(1)], Low, ReadOnly
        no_effect "what is sent at once is limited by the number of entries",
        "How much of the metadata log is sent to a follower at once.";
    Int "controller.quorum.fetch.snapshot.max.bytes" = "1048576", [AtLeast(1)], Low, ReadOnly
        no_effect "pieces of a snapshot have one size",
        "How much of a metadata snapshot is sent to a follower at once.";
    Int "controller.quorum.append.linger.ms" = "25", [AtLeast(0)], Medium, ReadOnly
        no_effect "records are written as soon as the last ones are",
        "How long the leader of the quorum gathers records before it writes them.";
    Int "controller.quorum.request.timeout.ms" = "2000", [AtLeast(0)], Medium, ReadOnly
        no_effect "time-outs of the quorum follow controller.quorum.fetch.timeout.ms",
        "How long a member of the quorum waits for an answer of another.";
    Int "controller.quorum.retry.backoff.ms" = "20", [AtLeast(0)], Low, ReadOnly
        no_effect "the quorum has its own pace of asking again",
        "How long a member of the quorum waits before it asks again.";
    Int "controller.socket.timeout.ms" = "30000", [Any], Medium, ReadOnly
        no_effect "each kind of request has its own time-out",
        "How long a broker waits for an answer of the controller.";
    Long "controller.performance.always.log.threshold.ms" = "2000", [AtLeast(0)],
        Medium internal, ReadOnly
        no_effect "slow events of the controller are not logged one by one",
        "A controller event slower than this is always logged.";
    Long "controller.performance.sample.period.ms" = "60000", [AtLeast(100)],
        Medium internal, ReadOnly
        no_effect "slow events of the controller are not logged one by one",
        "How often the slowest controller events are logged.";
    Int "broker.heartbeat.interval.ms" = "2000", [Any], Medium, ReadOnly
        => broker_heartbeat_interval_ms: i32,
        "How often a broker tells the controller that it lives; if unset, every 500 ms.";
    Int "broker.session.timeout.ms" = "9000", [Any], Medium, ReadOnly
        => broker_session_timeout_ms: i32,
        "A broker not heard for so long is fenced; if unset, also one that is silent for 2 s.";
    Int "initial.broker.registration.timeout.ms" = "60000", [Any], Medium, ReadOnly
        => initial_broker_registration_timeout_ms: i32,
        "How long a starting broker tries to register before it gives up.";
    Long "metadata.log.max.record.bytes.between.snapshots" = "20971520", [AtLeast(1)],
        High, ReadOnly
        no_effect "a snapshot is written every 1000 entries or 4 MiB",
        "After how many bytes of metadata records a snapshot is written.";
    Long "metadata.log.max.snapshot.interval.ms" = "3600000", [AtLeast(0)], High, ReadOnly
        no_effect "a snapshot is written every 1000 entries or 4 MiB",
        "After how long a snapshot is written when there is anything new; 0 never by time.";
    Int "metadata.log.segment.bytes" = "1073741824", [AtLeast(8_388_608)], High, ReadOnly
        no_effect "the metadata log is a key-value store, not segments",
        "The size at which a segment of the metadata log is closed.";
    Long "metadata.log.segment.ms" = "604800000", [Any], High, ReadOnly
        no_effect "the metadata log is a key-value store, not segments",
        "The age at which a segment of the metadata log is closed.";
    Int "metadata.max.idle.interval.ms" = "500", [AtLeast(0)], Low, ReadOnly
        no_effect "the quorum needs no records to keep its leader",
        "How often an empty record is written to an idle metadata log.";
    Long "metadata.max.retention.bytes" = "104857600", [Any], High, ReadOnly
        no_effect "what a snapshot covers is removed at once",
        "How large the metadata log and its snapshots may grow before old ones go.";
    Long "metadata.max.retention.ms" = "604800000", [Any], High, ReadOnly
        no_effect "what a snapshot covers is removed at once",
        "How long old parts of the metadata log and old snapshots are kept.";
    Long "internal.metadata.delete.delay.millis" = "60000", [Any], Low internal, ReadOnly
        no_effect "the metadata log is a key-value store, not segments",
        "How long the files of a deleted metadata segment stay.";
    Int "internal.metadata.log.segment.bytes" = null, [Any], Low internal, ReadOnly
        no_effect "the metadata log is a key-value store, not segments",
        "The segment size of the metadata log, for tests.";
    Int "internal.metadata.max.batch.size.in.bytes" = "8388608", [Any], Low internal, ReadOnly
        no_effect "metadata records are batched per change",
        "The largest batch of metadata records.";
}
