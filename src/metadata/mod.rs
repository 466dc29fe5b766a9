//! Cluster metadata, PURE: records, the immutable image, planners that turn requests into records.

mod features;
mod image;
mod kafka;
mod plan;
pub mod planners;
mod records;

pub use features::{Feature, SUPPORTED_FEATURES, bootstrap_records};
pub use image::{
    ApplyError, Configs, ImageDelta, MetadataImage, PartitionRegistration, Partitions, TopicImage,
};
pub use kafka::{KafkaMetadata, KafkaRecordError, plan_take_over};
pub use plan::{Draw, Plan, PlanError};
pub use records::*;

#[cfg(test)]
mod tests;
