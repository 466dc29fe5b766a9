//! What a node makes of its directories at a start: in one process, over real directories.

#![allow(clippy::disallowed_methods)] // A test may change files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::earlier::What;
use super::{Broker, Ready, StartError};
use crate::config::{NodeConfig, Property, Sources, argument_properties};
use crate::metadata::planners::NewTopic;
use crate::types::{BrokerId, TopicId};

const TOPIC: &str = "t";
const LONG: Duration = Duration::from_secs(60);

struct Alone {
    root: tempfile::TempDir,
}

impl Alone {
    fn new() -> Alone {
        let root = tempfile::tempdir().unwrap();
        Alone { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn config(&self, dirs: &[&str], more: &[(&str, &str)]) -> NodeConfig {
        let dirs = dirs.iter().map(|dir| self.path(dir).display().to_string());
        let dirs: Vec<String> = dirs.collect();
        let mut pairs = vec![
            "node.id=1".to_owned(),
            "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0".to_owned(),
            format!("log.dirs={}", dirs.join(",")),
        ];
        let more = more.iter().map(|(key, dir)| (key, self.path(dir)));
        pairs.extend(more.map(|(key, dir)| format!("{key}={}", dir.display())));
        let arguments: Vec<Property> =
            argument_properties(pairs.iter().map(String::as_str)).unwrap();
        let sources = Sources {
            arguments,
            ..Sources::default()
        };
        NodeConfig::load(sources).unwrap().0
    }

    async fn start(&self, dirs: &[&str]) -> Result<(Broker, Ready), StartError> {
        Broker::start(self.config(dirs, &[])).await
    }

    /// A node that has made a topic, stopped.
    async fn used(dirs: &[&str]) -> (Alone, TopicId) {
        let alone = Alone::new();
        let (broker, _) = alone.start(dirs).await.unwrap();
        let topic = NewTopic {
            name: TOPIC.to_owned(),
            num_partitions: 6,
            replication_factor: 1,
            ..NewTopic::default()
        };
        let created = broker.node.create_topics(vec![topic], false).await.unwrap();
        assert!(created.into_iter().all(|(_, result)| result.is_ok()));
        let topic_id = id_of(&broker).unwrap();
        until_told(&broker).await;
        alone.stop(broker).await;
        (alone, topic_id)
    }

    /// What the node had locked it has locked as long as this process lives. So every file becomes
    /// another one, as it is.
    async fn stop(&self, broker: Broker) {
        broker.stop().await;
        for (path, content) in self.content() {
            if let Some(content) = content.filter(|_| !path.is_symlink()) {
                std::fs::remove_file(&path).unwrap();
                std::fs::write(&path, content).unwrap();
            }
        }
    }

    /// Takes a partition's directory away, and puts something else in its place.
    fn replace(&self, dir: &str, partition: &str, put: impl Fn(&Path)) {
        let path = self.path(dir).join(partition);
        std::fs::rename(&path, self.path("away")).unwrap();
        put(&path);
    }

    fn put_back(&self, dir: &str, partition: &str) {
        let path = self.path(dir).join(partition);
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(self.path("away"), path).unwrap();
    }

    /// Every file, and what is in it.
    fn content(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut content = BTreeMap::new();
        let mut dirs = vec![self.root.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                content.insert(path.clone(), std::fs::read(&path).ok());
                if path.is_dir() {
                    dirs.push(path);
                }
            }
        }
        content
    }

    /// The start is refused, and nothing is changed by it. Returns what showed that there was data.
    async fn refused(&self, config: NodeConfig) -> (What, String, String) {
        let before = self.content();
        let error = Broker::start(config).await.err().expect("it is refused");
        assert!(self.content() == before, "something was changed");
        let (text, advice) = (error.to_string(), error.advice().unwrap());
        let StartError::NoMetadata { trace, .. } = error else {
            panic!("{text}");
        };
        assert!(text.contains(&trace.dir.display().to_string()), "{text}");
        (trace.what, text, advice)
    }
}

fn id_of(broker: &Broker) -> Option<TopicId> {
    let image = broker.node.image();
    image.topic(TOPIC).map(|topic| topic.id)
}

fn shows_partitions(what: &What) -> bool {
    matches!(what, What::Partitions(first, 2) if first.len() == 2 && &*first[0].topic == TOPIC)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_order_of_the_directories_is_refused_and_nothing_is_lost() {
    let dirs = ["a", "b", "c"];
    let (alone, topic_id) = Alone::used(&dirs).await;
    let (a, b) = (alone.path("a"), alone.path("b"));
    let (what, text, advice) = alone.refused(alone.config(&["b", "a", "c"], &[])).await;
    assert_eq!(what, What::Store);
    assert!(text.contains(&b.display().to_string()), "{text}");
    assert!(
        advice.contains(&format!("name {} first", a.display())),
        "{advice}"
    );
    assert!(
        advice.contains(&format!("metadata.log.dir={}", a.display())),
        "{advice}"
    );
    let elsewhere = alone.config(&dirs, &[("metadata.log.dir", "m")]);
    assert_eq!(alone.refused(elsewhere).await.0, What::Store);
    // As the advice says.
    let named = alone.config(&["b", "a", "c"], &[("metadata.log.dir", "a")]);
    let (broker, _) = Broker::start(named).await.unwrap();
    assert_eq!(id_of(&broker), Some(topic_id));
    alone.stop(broker).await;
    let (broker, ready) = alone.start(&dirs).await.unwrap();
    assert_eq!((id_of(&broker), ready.partitions), (Some(topic_id), 6));
    alone.stop(broker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_its_metadata_does_not_begin_anew_beside_partitions() {
    let dirs = ["a", "b", "c"];
    let (alone, topic_id) = Alone::used(&dirs).await;
    let (a, away) = (alone.path("a"), alone.path("away"));
    let (what, _, advice) = alone.refused(alone.config(&["b", "c"], &[])).await;
    assert!(shows_partitions(&what), "{what:?}");
    assert!(advice.contains("log.dirs"), "{advice}");
    std::fs::rename(&a, &away).unwrap();
    for is_made in [false, true] {
        if is_made {
            std::fs::create_dir(&a).unwrap();
        }
        let (what, text, _) = alone.refused(alone.config(&dirs, &[])).await;
        assert!(shows_partitions(&what), "{what:?}");
        assert!(text.contains(&format!("in {}", a.display())), "{text}");
    }
    // Without a look at the others nobody knows.
    for dir in ["b", "c"] {
        std::fs::rename(alone.path(dir), alone.path(dir).with_extension("away")).unwrap();
        std::fs::write(alone.path(dir), "a file").unwrap();
    }
    let (what, ..) = alone.refused(alone.config(&dirs, &[])).await;
    assert!(matches!(what, What::Unknown(_)), "{what:?}");
    for dir in ["b", "c"] {
        std::fs::remove_file(alone.path(dir)).unwrap();
        std::fs::rename(alone.path(dir).with_extension("away"), alone.path(dir)).unwrap();
    }
    std::fs::remove_dir(&a).unwrap();
    std::fs::rename(&away, &a).unwrap();
    let metadata = a.join("__cluster_metadata-0");
    std::fs::rename(&metadata, &away).unwrap();
    let (what, ..) = alone.refused(alone.config(&dirs, &[])).await;
    assert!(shows_partitions(&what), "{what:?}");
    std::fs::rename(&away, &metadata).unwrap();
    let (broker, ready) = alone.start(&dirs).await.unwrap();
    assert_eq!((id_of(&broker), ready.partitions), (Some(topic_id), 6));
    alone.stop(broker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_was_used_is_told_from_one_that_is_only_formatted() {
    let (alone, _) = Alone::used(&["a"]).await;
    let a = alone.path("a");
    let meta = std::fs::read(a.join("meta.properties")).unwrap();
    let leave = |keep: &dyn Fn(&Path) -> bool| {
        for entry in std::fs::read_dir(&a).unwrap() {
            let path = entry.unwrap().path();
            if keep(&path) {
                continue;
            }
            match path.is_dir() {
                true => std::fs::remove_dir_all(path).unwrap(),
                false => std::fs::remove_file(path).unwrap(),
            }
        }
    };
    leave(&|path| path.is_file());
    let (what, ..) = alone.refused(alone.config(&["a"], &[])).await;
    assert_eq!(what, What::Checkpoints);
    leave(&|path| path.ends_with("meta.properties"));
    let (broker, _) = alone.start(&["a"]).await.unwrap();
    assert_eq!(id_of(&broker), None);
    alone.stop(broker).await;
    let kept = std::fs::read(a.join("meta.properties")).unwrap();
    assert_eq!(kept, meta, "it has its cluster and id from before");
}

/// A partition of the topic that is in a directory.
fn partition_in(dir: &Path) -> i32 {
    let entries = std::fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut numbers = names.filter_map(|name| name.strip_prefix("t-")?.parse().ok());
    numbers.next().unwrap()
}

fn led(broker: &Broker) -> Vec<i32> {
    let image = broker.node.image();
    let partitions = image.topic(TOPIC).unwrap().partitions.iter();
    let led = partitions.filter(|(_, registration)| registration.has_leader());
    led.map(|(number, _)| number).collect()
}

async fn until_led(broker: &Broker, expected: &[i32]) {
    let mut changes = broker.node.quorum.subscribe();
    while led(broker) != expected {
        let change = tokio::time::timeout(LONG, changes.next()).await;
        change.unwrap_or_else(|_| panic!("led: {:?}, not {expected:?}", led(broker)));
    }
}

/// The controller knows in which directory each partition is.
async fn until_told(broker: &Broker) {
    let mut changes = broker.node.quorum.subscribe();
    let is_told = || {
        let image = broker.node.image();
        let topic = image.topic(TOPIC).unwrap();
        let directories = topic
            .partitions
            .iter()
            .map(|(_, p)| p.directory(BrokerId(1)));
        directories.flatten().all(|id| !id.is_undecided())
    };
    while !is_told() {
        let change = tokio::time::timeout(LONG, changes.next()).await;
        change.expect("a partition has no directory");
    }
}

const ALL: [i32; 6] = [0, 1, 2, 3, 4, 5];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_bad_entry_is_of_no_use_alone() {
    let dirs = ["a", "b", "c"];
    let (alone, _) = Alone::used(&dirs).await;
    let bad = partition_in(&alone.path("b"));
    let name = format!("{TOPIC}-{bad}");
    let rest: Vec<i32> = ALL.into_iter().filter(|number| *number != bad).collect();
    let puts: [&dyn Fn(&Path); 2] = [&|path| std::fs::write(path, "a file").unwrap(), &|path| {
        std::os::unix::fs::symlink("/nowhere", path).unwrap()
    }];
    for put in puts {
        alone.replace("b", &name, put);
        // And what is no partition of anybody's.
        put(&alone.path("b").join("other-0"));
        let (broker, _) = alone.start(&dirs).await.unwrap();
        let working = broker.node.partitions.working_dirs().count();
        assert_eq!(working, dirs.len());
        until_led(&broker, &rest).await;
        alone.stop(broker).await;
        std::fs::remove_file(alone.path("b").join("other-0")).unwrap();
        alone.put_back("b", &name);
        let (broker, _) = alone.start(&dirs).await.unwrap();
        until_led(&broker, &ALL).await;
        alone.stop(broker).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_linked_partition_directory_is_one_as_for_kafka() {
    let (alone, _) = Alone::used(&["a"]).await;
    let away = alone.path("away");
    let link = |path: &Path| std::os::unix::fs::symlink(&away, path).unwrap();
    alone.replace("a", "t-0", link);
    let metadata = away.join("partition.metadata");
    let written = std::fs::metadata(&metadata).unwrap().modified().unwrap();
    let (broker, ready) = alone.start(&["a"]).await.unwrap();
    assert_eq!(ready.partitions, 6);
    until_led(&broker, &ALL).await;
    let now = std::fs::metadata(&metadata).unwrap().modified().unwrap();
    assert_eq!(now, written, "it was not taken for a new one");
    alone.stop(broker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_lost_its_meta_properties_has_its_old_id() {
    let dirs = ["a", "b", "c"];
    let (alone, _) = Alone::used(&dirs).await;
    let meta = |dir: &str| alone.path(dir).join("meta.properties");
    let read = |dir: &str| std::fs::read_to_string(meta(dir)).unwrap();
    let before = dirs.map(read);
    let no_id = |dir: &str| {
        let text = read(dir);
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("directory.id"));
        std::fs::write(meta(dir), lines.collect::<Vec<_>>().join("\n")).unwrap();
    };
    let lose = |dir: &str| std::fs::remove_file(meta(dir)).unwrap();
    type Case<'a> = (&'a dyn Fn(&str), &'a [&'a str]);
    let cases: [Case; 4] = [
        (&lose, &["b"]),
        (&no_id, &["b"]),
        (&lose, &["c", "b"]),
        (&lose, &["a"]),
    ];
    for (lose, of) in cases {
        of.iter().for_each(|dir| lose(dir));
        let (broker, _) = alone.start(&dirs).await.unwrap();
        until_led(&broker, &ALL).await;
        assert_eq!(dirs.map(read), before);
        alone.stop(broker).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_two_names_lead_to_is_refused() {
    let (alone, _) = Alone::used(&["a", "b"]).await;
    let [b, link] = ["b", "link"].map(|name| alone.path(name));
    std::os::unix::fs::symlink(&b, &link).unwrap();
    let before = alone.content();
    let error = alone.start(&["a", "b", "link"]).await.err().unwrap();
    let StartError::SameLogDir { dir, other } = &error else {
        panic!("{error}");
    };
    assert_eq!((dir, other), (&link, &b));
    assert!(alone.content() == before, "something was changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_directory_is_named_as_what_it_is() {
    let dirs = ["a", "b"];
    let (alone, _) = Alone::used(&dirs).await;
    let (b, away) = (alone.path("b"), alone.path("away"));
    std::fs::rename(&b, away).unwrap();
    let reason = async || {
        let (broker, _) = alone.start(&dirs).await.unwrap();
        let reason = broker.node.partitions.log_dirs()[1].offline_reason();
        alone.stop(broker).await;
        std::fs::remove_file(&b).unwrap();
        reason.unwrap()
    };
    std::fs::write(&b, "a file").unwrap();
    let text = reason().await;
    assert!(text.contains("no directory but a file"), "{text}");
    std::os::unix::fs::symlink("/nowhere", &b).unwrap();
    let text = reason().await;
    assert!(text.contains("a link to what is not there"), "{text}");
}
