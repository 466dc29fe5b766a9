//! Who this node is: its id, its roles, its directories.

use crate::config::table::config_table;

config_table! {
    /// Who this node is: its id, its roles, its directories.
    IdentityConfig;

    List "process.roles" = required, [ListOf(&["broker", "controller"])], High, ReadOnly
        => process_roles: Vec<String>,
        "What this node does: serve clients (broker), keep the metadata (controller), or both.";
    Int "node.id" = required, [AtLeast(0)], High, ReadOnly
        => node_id: i32,
        "The number of this node; no other node of the cluster may have it.";
    Int "broker.id" = "-1", [Any], High, ReadOnly
        => broker_id: i32,
        "The older name of node.id; where both are set they must agree.";
    String "klamm.cluster.id" = null, [Any], Medium internal, ReadOnly
        => klamm_cluster_id: Option<String>,
        "Klamm's own, also as the variable CLUSTER_ID: the id of the cluster that the directories have to belong to; new ones take it.";
    String "broker.rack" = null, [Any], Medium, ReadOnly
        => broker_rack: Option<String>,
        "The rack or zone this broker stands in; replicas are spread over racks.";
    List "log.dirs" = null, [Any], High, ReadOnly
        => log_dirs: Option<Vec<String>>,
        "Directories that hold the partitions; when it is not set, log.dir counts.";
    List "log.dir" = "/tmp/kafka-logs", [Any], High, ReadOnly
        => log_dir: Vec<String>,
        "Directories that hold the partitions, where log.dirs is not set.";
    String "metadata.log.dir" = null, [Any], High, ReadOnly
        => metadata_log_dir: Option<String>,
        "The directory of the cluster metadata; else the first directory of the partitions.";
    List "cordoned.log.dirs" = "", [Any], Medium, PerBroker
        no_effect "new partitions may still be placed in these directories",
        "Directories that take no new partitions.";
    Boolean "controlled.shutdown.enable" = "true", [Any], Medium, ReadOnly
        => controlled_shutdown_enable: bool,
        "Hand over leadership before the broker stops.";
    Long "server.max.startup.time.ms" = "9223372036854775807", [AtLeast(0)],
        Medium internal, ReadOnly
        no_effect "the start has no time limit",
        "How long the start may take.";
    List "config.providers" = "", [Any], Low, ClusterWide
        refused "values would be taken literally instead of being looked up",
        "Names of plug-ins that fill in placeholders in other values.";
    Boolean "unstable.api.versions.enable" = "false", [Any], High internal, ReadOnly
        no_effect "no unstable version is served",
        "Serve versions of APIs that are not final.";
    Boolean "unstable.feature.versions.enable" = "false", [Any], High internal, ReadOnly
        no_effect "no unstable feature level is offered",
        "Offer feature levels that are not final.";
}
