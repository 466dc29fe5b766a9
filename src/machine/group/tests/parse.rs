//! Command lines of scenarios: `verb key=value ...`.

use std::collections::BTreeMap;

use bytes::Bytes;
use uuid::Uuid;

use super::show::topic_name;
use crate::machine::group::command::*;
use crate::machine::group::protocol::encode_assignment;
use crate::machine::group::records::TopicPartitions;
use crate::machine::group::{GroupId, MemberId};
use crate::types::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicId, TopicName};

/// The arguments of a command line.
pub(super) struct Args<'a>(pub(super) BTreeMap<&'a str, &'a str>);

impl Args<'_> {
    pub(super) fn text(&self, key: &str) -> Option<String> {
        let value = self.0.get(key)?;
        Some(expand(value))
    }

    pub(super) fn or(&self, key: &str, default: &str) -> String {
        self.text(key).unwrap_or_else(|| default.to_owned())
    }

    pub(super) fn number(&self, key: &str, default: i64) -> i64 {
        self.0.get(key).map_or(default, |v| v.parse().unwrap())
    }

    pub(super) fn list(&self, key: &str) -> Option<Vec<String>> {
        let value = self.0.get(key)?;
        let parts = value.split(',').filter(|p| !p.is_empty());
        Some(parts.map(expand).collect())
    }

    pub(super) fn group(&self) -> GroupId {
        self.or("g", "g").into()
    }

    pub(super) fn member(&self) -> MemberId {
        self.or("m", "").into()
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }
}

pub(super) fn random_id(n: u64) -> Uuid {
    Uuid::from_u128(u128::from(n))
}

/// `c-u7` to `c-00000000-0000-0000-0000-000000000007`.
pub(super) fn expand(text: &str) -> String {
    match text.rsplit_once("-u") {
        Some((front, n)) if n.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{front}-{}", random_id(n.parse().unwrap()))
        }
        _ => text.to_owned(),
    }
}

pub(super) fn topic_id(name: &str) -> TopicId {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    TopicId(Uuid::from_bytes(bytes))
}

/// `foo:0,1;bar:2`.
pub(super) fn parse_partitions(text: &str) -> TopicPartitions {
    let topics = text.split(';').filter(|t| !t.is_empty());
    topics
        .map(|topic| {
            let (name, partitions) = topic.split_once(':').unwrap();
            let partitions = partitions.split(',').map(|p| p.parse().unwrap()).collect();
            (topic_id(name), partitions)
        })
        .collect()
}

/// `foo-0=10,foo-1=11` or `foo-0,foo-1`.
pub(super) fn parse_offsets(text: &str) -> Vec<(TopicName, i32, i64)> {
    text.split(',')
        .map(|part| {
            let (partition, offset) = part.split_once('=').unwrap_or((part, "0"));
            let (topic, partition) = partition.rsplit_once('-').unwrap();
            (
                topic.into(),
                partition.parse().unwrap(),
                offset.parse().unwrap(),
            )
        })
        .collect()
}

/// The metadata a consumer of these topics sends.
pub(super) fn subscription(topics: &str, owned: Option<&str>) -> Bytes {
    let mut bytes = vec![0, 1];
    let string = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as i16).to_be_bytes());
        bytes.extend(text.as_bytes());
    };
    let topics: Vec<&str> = topics.split('+').filter(|t| !t.is_empty()).collect();
    bytes.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        string(&mut bytes, topic);
    }
    bytes.extend((-1i32).to_be_bytes());
    let owned = owned.map(parse_partitions).unwrap_or_default();
    bytes.extend((owned.len() as i32).to_be_bytes());
    for (topic, partitions) in owned {
        string(&mut bytes, &topic_name(topic));
        bytes.extend((partitions.len() as i32).to_be_bytes());
        for partition in partitions {
            bytes.extend(partition.to_be_bytes());
        }
    }
    Bytes::from(bytes)
}

/// `@foo:0` is what a member gets that is assigned that partition; anything else is its own bytes.
fn assignment(text: &str) -> Bytes {
    let Some((topic, partition)) = text.strip_prefix('@').and_then(|t| t.split_once(':')) else {
        return Bytes::from(text.to_owned());
    };
    let partitions = vec![partition.parse().unwrap()];
    encode_assignment(1, &BTreeMap::from([(topic.to_owned(), partitions)]))
}

pub(super) fn parse(verb: &str, args: &Args<'_>, n: u64) -> Command {
    let client = Client {
        client_id: args.or("c", "c"),
        client_host: "/h".into(),
    };
    let group_instance_id = args.text("i");
    let committed = || parse_offsets(&args.or("offsets", "foo-0"));
    let partitions = || {
        let offsets = committed().into_iter();
        let partition = offsets.map(|(topic, partition, offset)| CommitPartition {
            topic_id: topic_id(&topic),
            topic,
            partition,
            offset: Offset(offset),
            leader_epoch: LeaderEpoch(args.number("epoch", -1) as i32),
            metadata: args.text("metadata"),
        });
        partition.collect()
    };
    let named = || committed().into_iter().map(|(t, p, _)| (t, p)).collect();
    match verb {
        "join" => Command::JoinGroup(JoinGroup {
            group: args.group(),
            member_id: args.member(),
            group_instance_id,
            client,
            session_timeout_ms: args.number("session", 10_000) as i32,
            rebalance_timeout_ms: args.number("rebalance", 60_000) as i32,
            protocol_type: args.or("type", "consumer"),
            protocols: args
                .list("protocols")
                .unwrap_or_else(|| vec!["range".into()])
                .into_iter()
                .map(|name| Protocol {
                    name,
                    metadata: subscription(
                        &args.or("topics", "foo"),
                        args.text("owned").as_deref(),
                    ),
                })
                .collect(),
            requires_known_member_id: !args.flag("v3"),
            supports_skipping_assignment: !args.flag("v3") && !args.flag("v8"),
            random_id: random_id(n),
        }),
        "sync" => Command::SyncGroup(SyncGroup {
            group: args.group(),
            generation_id: args.number("gen", 1) as i32,
            member_id: args.member(),
            group_instance_id,
            protocol_type: args.text("type"),
            protocol_name: args.text("protocol"),
            assignments: args
                .list("assign")
                .unwrap_or_default()
                .iter()
                .map(|pair| {
                    let (member, bytes) = pair.split_once(':').unwrap();
                    (expand(member).into(), assignment(bytes))
                })
                .collect(),
        }),
        "heartbeat" => Command::Heartbeat(Heartbeat {
            group: args.group(),
            generation_id: args.number("gen", 1) as i32,
            member_id: args.member(),
            group_instance_id,
        }),
        "leave" => Command::LeaveGroup(LeaveGroup {
            group: args.group(),
            members: args
                .list("m")
                .filter(|ids| !ids.is_empty())
                .unwrap_or_else(|| vec![String::new()])
                .into_iter()
                .map(|member| MemberIdentity {
                    member_id: member.into(),
                    group_instance_id: group_instance_id.clone(),
                })
                .collect(),
        }),
        "commit" => Command::OffsetCommit(OffsetCommit {
            group: args.group(),
            generation_id_or_member_epoch: args.number("gen", -1) as i32,
            member_id: args.member(),
            group_instance_id,
            retention_time_ms: args.number("retention", -1),
            partitions: partitions(),
            api_version: args.number("v", 9) as i16,
        }),
        "txn-commit" => Command::TxnOffsetCommit(TxnOffsetCommit {
            group: args.group(),
            producer_id: ProducerId(args.number("pid", 1)),
            producer_epoch: ProducerEpoch(0),
            generation_id: args.number("gen", -1) as i32,
            member_id: args.member(),
            group_instance_id,
            partitions: partitions(),
        }),
        "end-txn" => Command::EndTransaction(EndTransaction {
            producer_id: ProducerId(args.number("pid", 1)),
            producer_epoch: ProducerEpoch(0),
            coordinator_epoch: 0,
            commit: args.flag("commit"),
            bumps_epoch: false,
        }),
        "fetch" => Command::OffsetFetch(OffsetFetch {
            group: args.group(),
            member_id: args.text("m").map(MemberId::from),
            member_epoch: args.number("epoch", -1) as i32,
            partitions: args.flag("offsets").then(named),
            require_stable: args.flag("stable"),
        }),
        "offset-delete" => Command::OffsetDelete(OffsetDelete {
            group: args.group(),
            partitions: named(),
        }),
        "partitions-deleted" => Command::PartitionsDeleted(named()),
        "describe" => Command::DescribeGroups(vec![args.group()]),
        "delete" => Command::DeleteGroups(vec![args.group()]),
        "list" => Command::ListGroups(ListGroups {
            states: args.list("states").unwrap_or_default(),
            types: args.list("types").unwrap_or_default(),
        }),
        "consumer-describe" => Command::ConsumerGroupDescribe(vec![args.group()]),
        "consumer" => Command::ConsumerGroupHeartbeat(Box::new(ConsumerGroupHeartbeat {
            group: args.group(),
            member_id: args.member(),
            member_epoch: args.number("epoch", 0) as i32,
            instance_id: group_instance_id,
            rack_id: args.text("rack"),
            rebalance_timeout_ms: args.number("rebalance", -1) as i32,
            subscribed_topic_names: args.list("topics"),
            subscribed_topic_regex: args.text("regex"),
            server_assignor: args.text("assignor"),
            owned: args.text("owned").map(|text| parse_partitions(&text)),
            client,
            generates_member_id: args.flag("v0"),
            random_id: random_id(n),
        })),
        other => panic!("verb {other}"),
    }
}
