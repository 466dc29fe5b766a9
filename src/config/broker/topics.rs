//! Making and deleting topics.

use crate::config::table::config_table;

config_table! {
    /// Making and deleting topics.
    TopicsConfig;

    Boolean "auto.create.topics.enable" = "true", [Any], High, ReadOnly
        => auto_create_topics_enable: bool,
        "";
    Boolean "delete.topic.enable" = "true", [Any], High, ReadOnly
        => delete_topic_enable: bool,
        "";
    Int "num.partitions" = "1", [AtLeast(1)], Medium, ReadOnly
        => num_partitions: i32,
        "";
    Int "default.replication.factor" = "1", [Any], Medium, ReadOnly
        => default_replication_factor: i32,
        "";
    Class "create.topic.policy.class.name" = null, [Any], Low, ReadOnly
        refused "topics would be made that the policy forbids",
        "";
    Class "alter.config.policy.class.name" = null, [Any], Low, ReadOnly
        refused "changes would be made that the policy forbids",
        "";
}
