//! Who this node is: its id, its roles, its directories.

use crate::config::table::config_table;

config_table! {
    /// Who this node is: its id, its roles, its directories.
    IdentityConfig;

    List "process.roles" = required, [ListOf(&["broker", "controller"])], High, ReadOnly
        => process_roles: Vec<String>,
        "";
    Int "node.id" = required, [AtLeast(0)], High, ReadOnly
        => node_id: i32,
        "";
    Int "broker.id" = "-1", [Any], High, ReadOnly
        => broker_id: i32,
        "";
    String "broker.rack" = null, [Any], Medium, ReadOnly
        => broker_rack: Option<String>,
        "";
    List "log.dirs" = null, [Any], High, ReadOnly
        => log_dirs: Option<Vec<String>>,
        "";
    List "log.dir" = "/tmp/kafka-logs", [Any], High, ReadOnly
        => log_dir: Vec<String>,
        "";
    String "metadata.log.dir" = null, [Any], High, ReadOnly
        => metadata_log_dir: Option<String>,
        "";
    List "cordoned.log.dirs" = "", [Any], Medium, PerBroker
        no_effect "new partitions may still be placed in these directories",
        "";
    Boolean "controlled.shutdown.enable" = "true", [Any], Medium, ReadOnly
        => controlled_shutdown_enable: bool,
        "";
    Long "server.max.startup.time.ms" = "9223372036854775807", [AtLeast(0)],
        Medium internal, ReadOnly
        no_effect "the start has no time limit",
        "";
    List "config.providers" = "", [Any], Low, ClusterWide
        refused "values would be taken literally instead of being looked up",
        "";
    Boolean "unstable.api.versions.enable" = "false", [Any], High internal, ReadOnly
        no_effect "no unstable version is served",
        "";
    Boolean "unstable.feature.versions.enable" = "false", [Any], High internal, ReadOnly
        no_effect "no unstable feature level is offered",
        "";
}
