//! The quorum on a real store.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::host::SledKeyValue;
use crate::metadata::{ConfigRecord, ConfigResource, MetadataRecord};

pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

pub(super) fn sled(dir: &Path) -> Arc<dyn KeyValue> {
    Arc::new(SledKeyValue::open(dir).unwrap())
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
