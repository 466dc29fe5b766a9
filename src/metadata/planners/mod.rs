//! Planners: a request against an image gives records and an answer. One file per request.
//!
//! 1. A planner changes nothing. The same image, request and draw give the same plan.
//! 2. The records of a plan apply to the image it was made from without an error.
//! 3. One item of a request that is refused does not stop the others, unless Kafka refuses the
//!    whole request.

mod alter_partition;
mod assignment;
mod brokers;
mod configs;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod directories;
mod elect_leaders;
mod partition_change;
mod placement;
mod producer_ids;
mod reassign;
mod recovery;
mod topic_name;

pub use alter_partition::{
    AlterPartition, AlteredPartition, AlteredPartitions, plan_alter_partitions,
};
pub use brokers::{
    RegisterBroker, check_broker_epoch, plan_controlled_shutdown, plan_fence_broker,
    plan_register_broker, plan_unfence_broker, plan_unregister_broker,
};
pub use configs::{config_change_records, config_replacement_records};
pub use create_partitions::{MadePartitions, NewPartitions, plan_create_partitions};
pub use create_topics::{CreatedTopic, CreatedTopics, NewTopic, TopicDefaults, TopicPlanner};
pub use delete_topics::{DeletedTopic, TopicRef, plan_delete_topics};
pub use directories::{
    AssignReplica, AssignedReplicas, plan_assign_replicas, plan_directories_offline,
};
pub use elect_leaders::{
    ElectedLeaders, plan_elect_leaders, plan_preferred_leaders, plan_unclean_leaders,
};
pub use partition_change::{Election, RulesOf, TopicRules};
pub use placement::{Place, place_among};
pub use producer_ids::{PRODUCER_ID_BLOCK, ProducerIdBlock, plan_allocate_producer_ids};
pub use reassign::{Reassign, Reassigned, plan_reassign_partitions};
pub use recovery::{Contest, Recovered, contest, plan_recovered};
pub use topic_name::check_topic_name;

use crate::types::ErrorCode;

use super::PlanError;

/// With it, replicas that left the ISR may still be eligible to lead (KIP-966).
const METADATA_VERSION: &str = "metadata.version";
const ELR_FEATURE: &str = "eligible.leader.replicas.version";

/// The most partitions, and the most records, that one request may make (Kafka's
/// `MAX_PARTITIONS_PER_BATCH` and `MAX_RECORDS_PER_USER_OP`).
const RECORDS_PER_REQUEST_MAX: usize = 10_000;

/// Kafka's answer to a request of too many records, for the request as a whole.
fn too_many_records() -> PlanError {
    PlanError::new(
        ErrorCode::PolicyViolation,
        "Unable to perform excessively large batch operation.",
    )
}
