//! Making and deleting topics.

use crate::config::table::config_table;

config_table! {
    /// Making and deleting topics.
    TopicsConfig;

    Boolean "auto.create.topics.enable" = "true", [Any], High, ReadOnly
        => auto_create_topics_enable: bool,
        "Make a topic when a client asks for it and it is not there.";
    Boolean "delete.topic.enable" = "true", [Any], High, ReadOnly
        => delete_topic_enable: bool,
        "Let clients delete topics.";
    Int "num.partitions" = "1", [AtLeast(1)], Medium, ReadOnly
        => num_partitions: i32,
        "Partitions of a topic that is made without a count.";
    Int "default.replication.factor" = "1", [Any], Medium, ReadOnly
        => default_replication_factor: i32,
        "Replicas of a topic that is made without a factor.";
    Class "create.topic.policy.class.name" = null, [Any], Low, ReadOnly
        refused "topics would be made that the policy forbids",
        "A class that may forbid to make a topic.";
    Class "alter.config.policy.class.name" = null, [Any], Low, ReadOnly
        refused "changes would be made that the policy forbids",
        "A class that may forbid to change a configuration.";
}
