//! The coordinator's calls, over a log in memory that commits at once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use uuid::Uuid;

use super::coordinator::partition_for;
use super::*;
use crate::coordinator::runtime::*;
use crate::host::SystemClock;
use crate::machine::group::command::*;
use crate::machine::group::{GroupConfig, TopicMap, Topics};
use crate::types::{ErrorCode, LeaderEpoch, Offset, ProducerId, TopicId};

/// Commits whatever is appended, before the append returns.
#[derive(Default)]
struct EagerLog {
    records: Mutex<Vec<LogEntry>>,
    coordinator: Mutex<Option<Arc<GroupCoordinator<EagerLog>>>>,
}

impl CoordinatorLog for EagerLog {
    fn may_append(&self, _: i32) -> Result<(), ErrorCode> {
        Ok(())
    }

    fn append(&self, p: i32, _: LeaderEpoch, batch: LogBatch) -> Result<Offset, ErrorCode> {
        let mut log = self.records.lock();
        match batch {
            LogBatch::Records {
                records, producer, ..
            } => log.extend(records.into_iter().map(|record| LogEntry::Record {
                record,
                producer_id: producer.map_or(ProducerId::NONE, |(id, _)| id),
            })),
            LogBatch::EndTransaction(end) => log.push(LogEntry::EndTransaction {
                producer_id: end.producer_id,
                commit: end.commit,
            }),
        }
        let end = Offset(log.len() as i64);
        drop(log);
        // From within the append: the runtime must not deadlock.
        if let Some(coordinator) = &*self.coordinator.lock() {
            coordinator.on_high_watermark(p, end);
        }
        Ok(end)
    }

    fn read(&self, _: i32, from: Option<Offset>) -> Result<LogChunk, ErrorCode> {
        let log = self.records.lock();
        let start = from.map_or(0, |o| o.0 as usize);
        Ok(LogChunk {
            entries: log[start..].to_vec(),
            next_offset: Offset(log.len() as i64),
        })
    }

    fn high_watermark(&self, _: i32) -> Offset {
        Offset(self.records.lock().len() as i64)
    }
}

struct NoTopics;

impl ClusterView for NoTopics {
    fn topics(&self) -> Arc<dyn Topics> {
        Arc::new(TopicMap::default())
    }

    fn config(&self) -> GroupConfig {
        GroupConfig {
            group_initial_rebalance_delay_ms: 0,
            ..GroupConfig::default()
        }
    }
}

async fn coordinator(log: &Arc<EagerLog>) -> Arc<GroupCoordinator<EagerLog>> {
    let clock = Arc::new(SystemClock::new());
    let timeout = Duration::from_secs(5);
    let source = Arc::new(NoTopics);
    let coordinator = GroupCoordinator::new(log.clone(), clock, timeout, source, 1);
    let coordinator = Arc::new(coordinator);
    *log.coordinator.lock() = Some(coordinator.clone());
    coordinator.elect(0, LeaderEpoch(0));
    while coordinator
        .list_groups(ListGroups::default())
        .await
        .is_err()
    {
        tokio::task::yield_now().await;
    }
    coordinator
}

fn join(member_id: &str) -> JoinGroup {
    JoinGroup {
        group: "g".into(),
        member_id: member_id.into(),
        group_instance_id: None,
        client: Client::default(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".into(),
        protocols: vec![Protocol {
            name: "range".into(),
            metadata: Bytes::new(),
        }],
        requires_known_member_id: true,
        supports_skipping_assignment: true,
        random_id: Uuid::from_u128(7),
    }
}

fn commit(generation: i32, member_id: &str) -> OffsetCommit {
    OffsetCommit {
        group: "g".into(),
        generation_id_or_member_epoch: generation,
        member_id: member_id.into(),
        group_instance_id: None,
        retention_time_ms: -1,
        partitions: vec![CommitPartition {
            topic: "t".into(),
            topic_id: TopicId::NONE,
            partition: 0,
            offset: Offset(42),
            leader_epoch: LeaderEpoch::NONE,
            metadata: None,
        }],
        api_version: 9,
    }
}

#[tokio::test]
async fn a_group_works_and_survives_a_move() {
    let log = Arc::new(EagerLog::default());
    let first = coordinator(&log).await;
    let named = first.join_group(join("")).await;
    assert_eq!(named.error, ErrorCode::MemberIdRequired);
    let joined = first.join_group(join(&named.member_id)).await;
    assert_eq!((joined.error, joined.generation_id), (ErrorCode::None, 1));
    let member_id = joined.member_id;
    let assignment = Bytes::from_static(b"all of it");
    let sync = SyncGroup {
        group: "g".into(),
        generation_id: 1,
        member_id: member_id.clone(),
        group_instance_id: None,
        protocol_type: None,
        protocol_name: None,
        assignments: [(member_id.clone(), assignment.clone())].into(),
    };
    assert_eq!(first.sync_group(sync.clone()).await.assignment, assignment);
    let committed = first.commit_offsets(commit(1, &member_id)).await;
    assert_eq!(committed.partitions, [ErrorCode::None]);

    first.resign(0);
    let heartbeat = Heartbeat {
        group: "g".into(),
        generation_id: 1,
        member_id: member_id.clone(),
        group_instance_id: None,
    };
    let moved = first.heartbeat(heartbeat.clone()).await;
    assert_eq!(moved, ErrorCode::NotCoordinator);

    let second = coordinator(&log).await;
    assert_eq!(second.heartbeat(heartbeat).await, ErrorCode::None);
    assert_eq!(second.sync_group(sync).await.assignment, assignment);
    let fetched = second
        .fetch_offsets(OffsetFetch {
            group: "g".into(),
            member_id: None,
            member_epoch: -1,
            partitions: None,
            require_stable: true,
        })
        .await;
    assert_eq!(fetched.partitions[0].offset, Offset(42));
    let left = second
        .leave_group(LeaveGroup {
            group: "g".into(),
            members: vec![MemberIdentity {
                member_id,
                group_instance_id: None,
            }],
        })
        .await;
    assert_eq!(left.members[0].1, ErrorCode::None);
    let deleted = second.delete_groups(vec!["g".into(), "h".into()]).await;
    let expected = [
        ("g".into(), ErrorCode::None),
        ("h".into(), ErrorCode::GroupIdNotFound),
    ];
    assert_eq!(deleted, expected);
}

#[tokio::test]
async fn a_coordinator_that_is_loading_says_so() {
    let log = Arc::new(EagerLog::default());
    let coordinator = coordinator(&log).await;
    // The read of the log waits for this lock.
    let closed = log.records.lock();
    coordinator.elect(0, LeaderEpoch(1));
    let heartbeat = Heartbeat {
        group: "g".into(),
        generation_id: 1,
        member_id: "m".into(),
        group_instance_id: None,
    };
    assert_eq!(
        futures_now(coordinator.heartbeat(heartbeat)),
        ErrorCode::None
    );
    let listed = futures_now(coordinator.list_groups(ListGroups::default()));
    assert_eq!(listed, Err(ErrorCode::CoordinatorLoadInProgress));
    drop(closed);
}

/// The result of a future that does not wait.
fn futures_now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn groups_live_where_kafka_looks_for_them() {
    // As found in a broker's own log directories.
    assert_eq!(partition_for("classic-g", 50), 36);
    assert_eq!(partition_for("consumer-g", 50), 2);
    assert_eq!(partition_for("regex-g", 50), 3);
    // Java's hash code of this one is Integer.MIN_VALUE.
    assert_eq!(partition_for("polygenelubricants", 50), 0);
}
