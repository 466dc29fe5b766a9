//! The quorum on a real store.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::host::SledKeyValue;
use crate::host::key_value::Change;
use crate::metadata::{ConfigRecord, ConfigResource, ImageDelta, MetadataRecord};

const RULES: crate::metadata::planners::RulesOf<'static> =
    &|_| crate::metadata::planners::TopicRules::DEFAULT;

pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

pub(super) fn sled(dir: &Path) -> Arc<dyn KeyValue> {
    Arc::new(SledKeyValue::open(dir).unwrap())
}

/// A store for tests that are not about the disk.
#[derive(Default)]
pub(super) struct Memory(parking_lot::Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);

impl KeyValue for Memory {
    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().get(key).cloned())
    }

    fn range(&self, start: &[u8], end: &[u8], limit: usize) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let pairs = self.0.lock();
        let pairs = pairs.range(start.to_vec()..end.to_vec()).take(limit);
        Ok(pairs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect())
    }

    fn last(&self, start: &[u8], end: &[u8]) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
        let pairs = self.0.lock();
        let last = pairs.range(start.to_vec()..end.to_vec()).next_back();
        Ok(last.map(|(key, value)| (key.clone(), value.clone())))
    }

    fn commit(&self, changes: Vec<Change>) -> io::Result<()> {
        let mut pairs = self.0.lock();
        for change in changes {
            match change {
                Change::Put { key, value } => pairs.insert(key, value),
                Change::Delete { key } => pairs.remove(&key),
            };
        }
        Ok(())
    }
}

pub(super) async fn single(store: &Arc<dyn KeyValue>) -> Arc<Quorum> {
    start(QuorumConfig::single(BrokerId(1), None), store)
        .await
        .unwrap()
}

async fn start(
    config: QuorumConfig,
    store: &Arc<dyn KeyValue>,
) -> Result<Arc<Quorum>, QuorumError> {
    Quorum::start(config, store.clone(), Arc::new(NoTransport)).await
}

/// A record that sets the configuration `key` of one resource.
pub(super) fn set(key: &str, value: &str) -> MetadataRecord {
    let resource = ConfigResource::topic("t");
    ConfigRecord::new(&resource, key.into(), Some(value.into())).into()
}

pub(super) fn value(image: &MetadataImage, key: &str) -> Option<String> {
    let configs = image.configs(&ConfigResource::topic("t"))?;
    configs.get(key).map(|value| value.to_string())
}

/// Sets a key on the quorum.
pub(super) async fn put(quorum: &Quorum, key: &str, value: &str) -> Result<(), QuorumError> {
    let records = vec![set(key, value)];
    let plan = Plan {
        records,
        answer: (),
    };
    quorum.submit(TIMEOUT, move |_| plan).await
}

#[tokio::test]
async fn an_empty_store_becomes_a_cluster_that_a_restart_finds_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = sled(dir.path());
    let quorum = single(&store).await;
    assert_eq!(quorum.leader(), Some(BrokerId(1)));
    let image = quorum.image();
    assert_eq!(image.cluster_id(), Some(quorum.cluster_id()));
    assert_eq!(image.feature_level("metadata.version"), 33);
    put(&quorum, "a", "1").await.unwrap();
    let before = quorum.image();
    assert_eq!(value(&before, "a").as_deref(), Some("1"));
    quorum.shutdown().await;

    let again = single(&store).await;
    assert_eq!(again.cluster_id(), quorum.cluster_id());
    assert_eq!(*again.image(), *before);
    put(&again, "b", "2").await.unwrap();
    assert_eq!(value(&again.image(), "b").as_deref(), Some("2"));
}

#[tokio::test]
async fn a_foreign_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = sled(dir.path());
    let given = |id: &str| QuorumConfig::single(BrokerId(1), Some(id.into()));
    start(given("mine"), &store).await.unwrap().shutdown().await;

    let error = start(given("other"), &store).await.err().unwrap();
    let message = "the metadata store belongs to cluster mine, the configuration says other";
    assert_eq!(error.to_string(), message);

    let other_node = QuorumConfig::single(BrokerId(2), Some("mine".into()));
    let error = start(other_node, &store).await.err().unwrap();
    let message = "the metadata store belongs to node 1, this is node 2";
    assert_eq!(error.to_string(), message);

    let quorum = single(&store).await;
    assert_eq!(&**quorum.cluster_id(), "mine");
}

#[tokio::test]
async fn a_node_outside_the_voters_and_voters_without_a_cluster_id_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = sled(dir.path());
    let mut config = QuorumConfig::single(BrokerId(1), None);
    config.voters.insert(BrokerId(2), "two:9093".into());
    let error = start(config.clone(), &store).await.err().unwrap();
    assert!(matches!(error, QuorumError::NoClusterId), "{error}");
    config.voters.remove(&BrokerId(1));
    let error = start(config, &store).await.err().unwrap();
    assert!(matches!(error, QuorumError::NotAVoter { .. }), "{error}");
}

#[tokio::test]
async fn concurrent_submits_each_see_those_before_and_share_entries() {
    let dir = tempfile::tempdir().unwrap();
    let quorum = single(&sled(dir.path())).await;
    let start = quorum.image().offset();
    // Each planner takes the next number: none may be taken twice.
    let submits = (0..100).map(|_| {
        let quorum = quorum.clone();
        tasks::spawn(async move {
            let planner = |image: &MetadataImage| {
                let next: u32 = value(image, "next").map_or(0, |v| v.parse().unwrap());
                Plan {
                    records: vec![set("next", &(next + 1).to_string())],
                    answer: next,
                }
            };
            quorum.submit(TIMEOUT, planner).await.unwrap()
        })
    });
    let submits: Vec<_> = submits.collect();
    let mut taken = BTreeSet::new();
    for submit in submits {
        taken.insert(submit.await.unwrap());
    }
    assert_eq!(taken, (0..100).collect());
    let entries = quorum.image().offset().0 - start.0;
    assert!(entries < 50, "{entries} entries for 100 submits");
}

#[tokio::test]
async fn the_log_is_cut_behind_snapshots_and_a_restart_reads_both() {
    let dir = tempfile::tempdir().unwrap();
    let store = sled(dir.path());
    let config = |entries, bytes| QuorumConfig {
        snapshot_entries: entries,
        snapshot_bytes: bytes,
        ..QuorumConfig::single(BrokerId(1), None)
    };
    let log_entries = |store: &Arc<dyn KeyValue>| {
        let end = keys::Parts::Log.end(u64::MAX);
        keys::Parts::Log.keys(&**store, 0, &end).unwrap().len()
    };
    let long = "x".repeat(10_000);
    // By entries, by bytes.
    for (round, config) in [config(10, u64::MAX), config(1000, 50_000)]
        .into_iter()
        .enumerate()
    {
        let quorum = start(config, &store).await.unwrap();
        for i in 0..30 {
            put(&quorum, &format!("{round}-{i}"), &long).await.unwrap();
        }
        let purged = |metrics: &openraft::RaftMetrics<u64, raft_types::VoterNode>| {
            metrics.purged.map_or(0, |purged| purged.index) >= 30 * (round as u64 + 1) - 12
        };
        quorum
            .raft()
            .unwrap()
            .wait(Some(TIMEOUT))
            .metrics(purged, "purged")
            .await
            .unwrap();
        let left = log_entries(&store);
        assert!(left < 15, "{left} entries are left");
        let before = quorum.image();
        quorum.shutdown().await;
        let again = single(&store).await;
        assert_eq!(*again.image(), *before);
        again.shutdown().await;
    }
}

#[tokio::test]
async fn a_subscriber_sees_changes_that_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let quorum = single(&sled(dir.path())).await;
    let mut changes = quorum.subscribe();
    let first = changes.next().await.unwrap();
    assert_eq!(first.delta, ImageDelta::everything());
    put(&quorum, "a", "1").await.unwrap();
    // Two at once for who comes late.
    let topic = crate::metadata::TopicRecord {
        name: "made".into(),
        topic_id: crate::types::TopicId(Uuid::from_u128(1)),
    };
    let records = vec![topic.clone().into()];
    let plan = Plan {
        records,
        answer: (),
    };
    quorum.submit(TIMEOUT, |_| plan).await.unwrap();
    let change = changes.next().await.unwrap();
    assert_eq!(change.delta.configs, [ConfigResource::topic("t")].into());
    assert_eq!(
        change.delta.topics,
        [(topic.topic_id, BTreeSet::new())].into()
    );
    assert_eq!(*change.image, *quorum.image());

    quorum.shutdown().await;
    assert!(changes.next().await.is_none());
    let error = put(&quorum, "b", "2").await.unwrap_err();
    assert!(matches!(error, QuorumError::Stopped), "{error}");
    assert!(matches!(quorum.stopped().await, QuorumError::Stopped));
}

#[tokio::test]
async fn a_planner_that_panics_or_plans_nonsense_hurts_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let quorum = single(&sled(dir.path())).await;
    let panics = quorum.submit(TIMEOUT, |_| -> Plan<()> { panic!("on purpose") });
    let nonsense = quorum.submit(TIMEOUT, |_| Plan {
        records: vec![
            set("lost", "1"),
            crate::metadata::RemoveTopicRecord {
                topic_id: crate::types::TopicId::NONE,
            }
            .into(),
        ],
        answer: (),
    });
    let sound = put(&quorum, "kept", "1");
    let (panics, nonsense, sound) = tokio::join!(panics, nonsense, sound);
    assert!(matches!(panics, Err(QuorumError::PlannerPanicked)));
    assert!(matches!(nonsense, Err(QuorumError::Plan(_))));
    sound.unwrap();
    assert_eq!(value(&quorum.image(), "kept").as_deref(), Some("1"));
    assert_eq!(value(&quorum.image(), "lost"), None);
}

#[tokio::test]
async fn a_planner_without_records_sees_the_submits_before_it_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let quorum = single(&sled(dir.path())).await;
    let write = put(&quorum, "a", "1");
    let read = quorum.submit(TIMEOUT, |image| Plan::answer(value(image, "a")));
    let (write, read) = tokio::join!(write, read);
    write.unwrap();
    assert_eq!(read.unwrap().as_deref(), Some("1"));
    let offset = quorum.image().offset();
    let read = quorum.submit(TIMEOUT, |image| Plan::answer(value(image, "b")));
    assert_eq!(read.await.unwrap(), None);
    assert_eq!(quorum.image().offset(), offset);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planner_whose_time_is_up_is_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let quorum = single(&sled(dir.path())).await;
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let (entered, entry) = tokio::sync::oneshot::channel();
    let blocked = quorum.clone();
    let slow = tasks::spawn(async move {
        let wait = move |_: &MetadataImage| {
            entered.send(()).unwrap();
            gate.recv().unwrap();
            Plan::answer(())
        };
        blocked.submit(TIMEOUT, wait).await
    });
    entry.await.unwrap();
    let timeout = Duration::from_millis(5);
    let late = quorum.submit(timeout, |_| -> Plan<()> { panic!("must not run") });
    let late = late.await;
    assert!(matches!(late, Err(QuorumError::TimedOut)), "{late:?}");
    go.send(()).unwrap();
    slow.await.unwrap().unwrap();
    put(&quorum, "a", "1").await.unwrap();
}

#[tokio::test]
async fn a_topic_of_ten_thousand_partitions_is_one_entry() {
    let dir = tempfile::tempdir().unwrap();
    let store = sled(dir.path());
    let quorum = single(&store).await;
    let register = crate::metadata::planners::RegisterBroker {
        broker_id: BrokerId(1),
        cluster_id: quorum.cluster_id().clone(),
        incarnation_id: Uuid::from_u128(1),
        end_points: Vec::new(),
        features: crate::metadata::SUPPORTED_FEATURES
            .iter()
            .map(|feature| crate::metadata::BrokerFeature {
                name: feature.name.into(),
                min_supported_version: feature.min_version,
                max_supported_version: feature.max_version,
            })
            .collect(),
        rack: None,
        log_dirs: vec![crate::metadata::DirectoryId(Uuid::from_u128(1000))],
        previous_broker_epoch: crate::metadata::BrokerEpoch::NONE,
    };
    let register = |image: &MetadataImage| {
        crate::metadata::planners::plan_register_broker(image, register, RULES)
    };
    quorum.submit(TIMEOUT, register).await.unwrap().unwrap();
    let unfence = |image: &MetadataImage| {
        let epoch = image.broker(BrokerId(1)).unwrap().broker_epoch;
        crate::metadata::planners::plan_unfence_broker(image, BrokerId(1), epoch, RULES)
    };
    quorum.submit(TIMEOUT, unfence).await.unwrap().unwrap();
    let before = quorum.image().offset();
    let create = |image: &MetadataImage| {
        let topic = crate::metadata::planners::NewTopic {
            name: "big".into(),
            num_partitions: 9_999,
            replication_factor: 1,
            ..Default::default()
        };
        let mut planner = crate::metadata::planners::TopicPlanner {
            defaults: crate::metadata::planners::TopicDefaults {
                num_partitions: 1,
                replication_factor: 1,
            },
            check_configs: &|_| Ok(()),
            draw: &mut HostDraw,
        };
        planner.plan(image, &[topic], false)
    };
    let answer = quorum.submit(TIMEOUT, create).await.unwrap();
    assert!(answer[0].1.is_ok());
    let image = quorum.image();
    assert_eq!(image.offset(), before.next());
    assert_eq!(image.topic("big").unwrap().partitions.len(), 9_999);
    quorum.shutdown().await;
    assert_eq!(*single(&store).await.image(), *image);
}
