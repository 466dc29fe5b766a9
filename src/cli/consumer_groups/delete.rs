//! `--delete` and `--delete-offsets`.

use crate::cli::admin::{Admin, AdminError};
use crate::cli::io::Io;
use crate::cli::options::Options;
use crate::types::ErrorCode;

use super::{Called, group_names};

pub(super) async fn groups(io: &mut Io, admin: &Admin, options: &Options) -> Called {
    let names = match group_names(admin, options).await {
        Ok(names) => names,
        Err(error) => return Ok(Err(error)),
    };
    let mut deleted = Vec::new();
    let mut failed: Vec<(String, AdminError)> = Vec::new();
    for name in names {
        match admin.delete_group(&name).await {
            Ok(()) => deleted.push(format!("'{name}'")),
            Err(error) => failed.push((name, error)),
        }
    }
    if failed.is_empty() {
        let names = deleted.join(", ");
        io.line(format!(
            "Deletion of requested consumer groups ({names}) was successful."
        ));
        return Ok(Ok(()));
    }
    io.line("\nError: Deletion of some consumer groups failed:");
    for (name, error) in &failed {
        let text = error.exception();
        io.line(format!(
            "* Group '{name}' could not be deleted due to: {text}"
        ));
    }
    if !deleted.is_empty() {
        let names = deleted.join(", ");
        io.line(format!(
            "\nThese consumer groups were deleted successfully: {names}"
        ));
    }
    Ok(Ok(()))
}

pub(super) async fn offsets(io: &mut Io, admin: &Admin, options: &Options) -> Called {
    let group = options.one("group")?.unwrap_or_default();
    let mut partitions: Vec<(String, i32)> = Vec::new();
    let mut missing: Vec<(String, AdminError)> = Vec::new();
    for text in options.all("topic") {
        let (topic, listed) = super::reset::topic_and_partitions(text)?;
        match listed {
            Some(listed) => partitions.extend(listed.into_iter().map(|p| (topic.clone(), p))),
            None => match super::reset::partitions_of(admin, &topic).await {
                Ok(all) => partitions.extend(all.into_iter().map(|p| (topic.clone(), p))),
                Err(error) => missing.push((topic, error)),
            },
        }
    }
    let results = match admin.delete_offsets(group, &partitions).await {
        Ok(results) => results,
        Err(error) => {
            io.line(match error.code() {
                Some(ErrorCode::InvalidGroupId) => format!("'{group}' is not valid."),
                Some(ErrorCode::GroupIdNotFound) => format!("'{group}' does not exist."),
                Some(ErrorCode::GroupAuthorizationFailed) => {
                    format!("Access to '{group}' is not authorized.")
                }
                Some(ErrorCode::NonEmptyGroup) => format!(
                    "Deleting offsets of a consumer group '{group}' is forbidden if the group is \
                     not empty."
                ),
                _ => return Ok(Err(error)),
            });
            return Ok(Ok(()));
        }
    };
    let all_done = results.values().all(Result::is_ok);
    io.line(match all_done {
        true => format!("Request succeeded for deleting offsets from group {group}."),
        false => "Encountered some partition-level error, see the follow-up details:".to_owned(),
    });
    io.line("");
    let row = |topic: &str, partition: &str, status: &str| {
        format!("{topic:15} {partition:10} {status:15}")
    };
    io.line(row("TOPIC", "PARTITION", "STATUS"));
    for ((topic, partition), result) in &results {
        let status = match result {
            Ok(()) => "Successful".to_owned(),
            Err(error) => format!("Error: {}", error.exception()),
        };
        io.line(row(topic, &partition.to_string(), &status));
    }
    for (topic, error) in &missing {
        io.line(row(topic, "-", &format!("Error: {}", error.exception())));
    }
    Ok(Ok(()))
}
