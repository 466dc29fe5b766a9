//! Records and replies as one line each.

use crate::machine::group::command::*;
use crate::machine::group::records::{AssignedPartitions, Record, TopicPartitions};
use crate::types::{ErrorCode, TopicId};

use super::parse::random_id;

pub(super) fn shorten(text: &str, ids: u64) -> String {
    (1..=ids).fold(text.to_owned(), |text, n| {
        text.replace(&random_id(n).to_string(), &format!("u{n}"))
    })
}

pub(super) fn topic_name(id: TopicId) -> String {
    let bytes = id.0.as_bytes();
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(16);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

pub(super) fn show_partitions(partitions: &TopicPartitions) -> String {
    let topics = partitions.iter().map(|(id, partitions)| {
        let partitions: Vec<String> = partitions.iter().map(i32::to_string).collect();
        format!("{}:{}", topic_name(*id), partitions.join(","))
    });
    format!("[{}]", topics.collect::<Vec<_>>().join(" "))
}

pub(super) fn show_assigned(partitions: &AssignedPartitions) -> String {
    let topics = partitions.iter().map(|(id, partitions)| {
        let partitions: Vec<String> = partitions.iter().map(|(p, e)| format!("{p}@{e}")).collect();
        format!("{}:{}", topic_name(*id), partitions.join(","))
    });
    format!("[{}]", topics.collect::<Vec<_>>().join(" "))
}

pub(super) fn show_record(record: &Record) -> String {
    let group = record.group();
    match record {
        Record::OffsetCommit {
            topic,
            partition,
            value,
            ..
        } => match value {
            None => format!("offset {group} {topic}-{partition} gone"),
            Some(v) => format!("offset {group} {topic}-{partition} {}", v.offset),
        },
        Record::GroupMetadata { value: None, .. } => format!("group {group} gone"),
        Record::GroupMetadata { value: Some(v), .. } => {
            let members = v.members.iter().map(|m| {
                let assignment = String::from_utf8_lossy(&m.assignment);
                format!("{}={}", m.member_id, assignment.escape_default())
            });
            format!(
                "group {group} type={} generation={} protocol={} leader={} members=[{}]",
                v.protocol_type,
                v.generation,
                v.protocol.as_deref().unwrap_or("-"),
                v.leader.as_deref().unwrap_or("-"),
                members.collect::<Vec<_>>().join(" "),
            )
        }
        Record::ConsumerGroupMetadata { value, .. } => match value {
            None => format!("epoch {group} gone"),
            Some(v) if v.metadata_hash == 0 => format!("epoch {group} {} no topics", v.epoch),
            Some(v) => format!("epoch {group} {}", v.epoch),
        },
        Record::ConsumerGroupPartitionMetadata { .. } => format!("partitions {group} gone"),
        Record::ConsumerGroupMemberMetadata { member, value, .. } => match value {
            None => format!("member {group} {member} gone"),
            Some(v) => format!(
                "member {group} {member} topics={} regex={} instance={} classic={}",
                v.subscribed_topic_names.join(","),
                v.subscribed_topic_regex.as_deref().unwrap_or("-"),
                v.instance_id.as_deref().unwrap_or("-"),
                v.classic.is_some(),
            ),
        },
        Record::ConsumerGroupTargetAssignmentMetadata { value, .. } => match value {
            None => format!("target-epoch {group} gone"),
            Some(v) => format!("target-epoch {group} {}", v.epoch),
        },
        Record::ConsumerGroupTargetAssignmentMember { member, value, .. } => match value {
            None => format!("target {group} {member} gone"),
            Some(v) => format!("target {group} {member} {}", show_partitions(v)),
        },
        Record::ConsumerGroupCurrentMemberAssignment { member, value, .. } => match value {
            None => format!("current {group} {member} gone"),
            Some(v) => format!(
                "current {group} {member} epoch={} previous={} {:?} {} revoking={}",
                v.member_epoch,
                v.previous_member_epoch,
                v.state,
                show_assigned(&v.assigned),
                show_assigned(&v.pending_revocation),
            ),
        },
        Record::ConsumerGroupRegularExpression { regex, value, .. } => match value {
            None => format!("regex {group} {regex} gone"),
            Some(v) => format!("regex {group} {regex} {}", v.topics.join(",")),
        },
    }
}

fn show_errors(errors: &[ErrorCode]) -> String {
    let names: Vec<&str> = errors.iter().map(|e| e.name()).collect();
    names.join(" ")
}

pub(super) fn show_reply(reply: &Reply) -> String {
    match reply {
        Reply::JoinGroup(r) => {
            let members: Vec<&str> = r.members.iter().map(|m| &*m.member_id).collect();
            format!(
                "join {} member={} generation={} protocol={} leader={} members=[{}]{}",
                r.error,
                r.member_id,
                r.generation_id,
                r.protocol_name.as_deref().unwrap_or("-"),
                r.leader,
                members.join(" "),
                if r.skip_assignment { " skip" } else { "" },
            )
        }
        Reply::SyncGroup(r) => format!(
            "sync {} protocol={} assignment={}",
            r.error,
            r.protocol_name.as_deref().unwrap_or("-"),
            String::from_utf8_lossy(&r.assignment).escape_default()
        ),
        Reply::Heartbeat(error) => format!("heartbeat {error}"),
        Reply::LeaveGroup(r) => {
            let members = r.members.iter().map(|(identity, error)| {
                let instance = identity.group_instance_id.as_deref().unwrap_or("-");
                format!("{}/{instance}:{error}", identity.member_id)
            });
            format!(
                "leave {} [{}]",
                r.error,
                members.collect::<Vec<_>>().join(" ")
            )
        }
        Reply::OffsetCommit(r) => format!("commit {}", show_errors(&r.partitions)),
        Reply::TxnOffsetCommit(r) => format!("txn-commit {}", show_errors(&r.partitions)),
        Reply::OffsetFetch(r) => {
            let offsets = r.partitions.iter().map(|p| {
                let (topic, partition) = (&p.topic, p.partition);
                let place = format!("{topic}-{partition}={}@{}", p.offset, p.leader_epoch);
                match p.error {
                    ErrorCode::None => format!("{place}{:?}", p.metadata),
                    error => format!("{place}:{error}"),
                }
            });
            format!(
                "fetch {} [{}]",
                r.error,
                offsets.collect::<Vec<_>>().join(" ")
            )
        }
        Reply::OffsetDelete(r) => {
            format!("offset-delete {} [{}]", r.error, show_errors(&r.partitions))
        }
        Reply::DescribeGroups(groups) => show_all(groups, |g| {
            let members = g.members.iter().map(|m| {
                let assignment = String::from_utf8_lossy(&m.assignment);
                let (id, len) = (&m.member_id, m.metadata.len());
                format!(
                    "{id} metadata={len}B assignment={}",
                    assignment.escape_default()
                )
            });
            format!(
                "describe {} {} {} type={} protocol={} [{}]",
                g.error,
                g.group,
                g.state,
                g.protocol_type,
                g.protocol_data,
                members.collect::<Vec<_>>().join(" "),
            )
        }),
        Reply::DeleteGroups(groups) => {
            show_all(groups, |(group, error)| format!("delete {group} {error}"))
        }
        Reply::ListGroups(groups) => show_all(groups, |g| {
            format!(
                "list {} {} {} type={}",
                g.group, g.group_type, g.state, g.protocol_type
            )
        }),
        Reply::ConsumerGroupHeartbeat(r) => {
            let assignment = r.assignment.as_ref().map(show_partitions);
            format!(
                "consumer {} member={} epoch={} interval={} assignment={}{}",
                r.error,
                r.member_id.as_deref().unwrap_or("-"),
                r.member_epoch,
                r.heartbeat_interval_ms,
                assignment.as_deref().unwrap_or("-"),
                r.error_message
                    .as_ref()
                    .map(|m| format!(" {m:?}"))
                    .unwrap_or_default(),
            )
        }
        Reply::ConsumerGroupDescribe(groups) => show_all(groups, |g| {
            let members = g.members.iter().map(|m| {
                let names = |list: &[(crate::types::TopicName, TopicId, Vec<i32>)]| {
                    let all = list.iter().map(|(name, _, p)| format!("{name}:{p:?}"));
                    all.collect::<Vec<_>>().join(" ")
                };
                format!(
                    "({} epoch={} type={} assigned {} target {})",
                    m.member_id,
                    m.member_epoch,
                    m.member_type,
                    names(&m.assignment),
                    names(&m.target_assignment),
                )
            });
            format!(
                "consumer-describe {} {} {} epoch={} target-epoch={} assignor={} [{}]",
                g.error,
                g.group,
                g.state,
                g.group_epoch,
                g.assignment_epoch,
                g.assignor_name,
                members.collect::<Vec<_>>().join(" "),
            )
        }),
        Reply::Done => "done".to_owned(),
    }
}

fn show_all<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(" | ")
}
