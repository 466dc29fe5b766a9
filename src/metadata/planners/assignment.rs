//! Assignments of replicas that the client chose.

use crate::metadata::{MetadataImage, PlanError};
use crate::types::{BrokerId, ErrorCode};

const INCLUDES: &str = "The manual partition assignment includes";

fn refuse(message: String) -> PlanError {
    PlanError::new(ErrorCode::InvalidReplicaAssignment, message)
}

/// Whether these brokers may have a replica each.
pub(super) fn check_replicas(
    image: &MetadataImage,
    replicas: &[BrokerId],
) -> Result<(), PlanError> {
    if replicas.is_empty() {
        return Err(refuse(format!("{INCLUDES} an empty replica list.")));
    }
    let mut sorted = replicas.to_vec();
    sorted.sort();
    for (i, broker) in sorted.iter().enumerate() {
        let Some(registration) = image.broker(*broker) else {
            return Err(refuse(format!(
                "{INCLUDES} broker {broker}, but no such broker is registered."
            )));
        };
        if registration.is_cordoned() {
            return Err(refuse(format!(
                "{INCLUDES} broker {broker}, but all its log directories are cordoned."
            )));
        }
        if i > 0 && sorted[i - 1] == *broker {
            return Err(refuse(format!(
                "{INCLUDES} the broker {broker} more than once."
            )));
        }
    }
    Ok(())
}

/// Checks the replicas that a client gave for one new partition. `replication_factor` is that of
/// the topic, if it is known yet.
pub(super) fn check_assignment(
    image: &MetadataImage,
    partition: i32,
    replicas: &[BrokerId],
    replication_factor: Option<usize>,
) -> Result<(), PlanError> {
    check_replicas(image, replicas)?;
    let count = replicas.len();
    if let Some(expected) = replication_factor.filter(|expected| *expected != count) {
        return Err(refuse(format!(
            "{INCLUDES} a partition with {count} replica(s), but this is not consistent with \
             previous partitions, which have {expected} replica(s)."
        )));
    }
    if !replicas.iter().any(|broker| image.is_active(*broker)) {
        return Err(refuse(format!(
            "All brokers specified in the manual partition assignment for partition {partition} \
             are fenced or in controlled shutdown."
        )));
    }
    Ok(())
}
