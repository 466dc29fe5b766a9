//! Three nodes in one process, over real sockets and directories.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{Broker, Ready};
use crate::config::{NodeConfig, Property, Sources, argument_properties};
use crate::host::random;
use crate::metadata::planners::NewTopic;
use crate::quorum::VoterInfo;
use crate::types::BrokerId;

const LONG: Duration = Duration::from_secs(120);

/// Addresses of this machine, each with all of its ports free: a port that was seen to be free on
/// 127.0.0.1 may be taken by anybody's connection before it is bound.
fn own_addresses(count: usize) -> Vec<Ipv4Addr> {
    let [a, b, ..] = random::seed().to_le_bytes();
    let address = |host| Ipv4Addr::new(127, a.max(1), b, host);
    (1..=count as u8).map(address).collect()
}

struct Cluster {
    dir: tempfile::TempDir,
    controllers: Vec<Ipv4Addr>,
    /// The log alone says who votes (KIP-853).
    is_dynamic: bool,
}

impl Cluster {
    fn new(voters: usize) -> Cluster {
        Cluster {
            dir: tempfile::tempdir().unwrap(),
            controllers: own_addresses(voters),
            is_dynamic: false,
        }
    }

    fn data(&self, id: usize) -> std::path::PathBuf {
        self.dir.path().join(id.to_string())
    }

    fn config(&self, id: usize, roles: &str) -> NodeConfig {
        let places = (1..).zip(&self.controllers);
        let (name, places): (_, Vec<String>) = match self.is_dynamic {
            true => (
                "bootstrap.servers",
                places
                    .map(|(_, address)| format!("{address}:9093"))
                    .collect(),
            ),
            false => (
                "voters",
                places
                    .map(|(id, address)| format!("{id}@{address}:9093"))
                    .collect(),
            ),
        };
        let own = self.controllers.get(id - 1);
        let mut listeners = Vec::new();
        if roles.contains("broker") {
            listeners.push("PLAINTEXT://127.0.0.1:0".to_owned());
        }
        if let Some(address) = own.filter(|_| roles.contains("controller")) {
            listeners.push(format!("CONTROLLER://{address}:9093"));
        }
        let pairs = [
            format!("process.roles={roles}"),
            format!("node.id={id}"),
            format!("listeners={}", listeners.join(",")),
            "controller.listener.names=CONTROLLER".to_owned(),
            format!("controller.quorum.{name}={}", places.join(",")),
            format!("log.dirs={}", self.data(id).display()),
            "broker.heartbeat.interval.ms=200".to_owned(),
        ];
        let file: Vec<Property> = argument_properties(pairs.iter().map(String::as_str)).unwrap();
        let sources = Sources {
            file: Some(file),
            ..Sources::default()
        };
        NodeConfig::load(sources).unwrap().0
    }

    async fn start(&self, id: usize, roles: &str) -> (Broker, Ready) {
        let started = timeout(LONG, Broker::start(self.config(id, roles))).await;
        started.expect("it starts in time").unwrap()
    }

    async fn start_all(&self, roles: &[&str]) -> Vec<Broker> {
        let started = (1..).zip(roles).map(|(id, roles)| {
            let config = self.config(id, roles);
            crate::host::tasks::spawn(async move { Broker::start(config).await.unwrap().0 })
        });
        let started: Vec<_> = started.collect();
        let mut brokers = Vec::new();
        for broker in started {
            brokers.push(
                timeout(LONG, broker)
                    .await
                    .expect("they form in time")
                    .unwrap(),
            );
        }
        brokers
    }
}

fn id_of(broker: &Broker) -> i32 {
    broker.node.broker_id.0
}

async fn create(broker: &Broker, name: &str, factor: i16) {
    let topic = NewTopic {
        name: name.to_owned(),
        num_partitions: 3,
        replication_factor: factor,
        ..NewTopic::default()
    };
    let created = broker.node.create_topics(vec![topic], false).await.unwrap();
    for (_, result) in created {
        result.unwrap();
    }
    // The answer comes when this broker has it.
    assert!(broker.node.image().topic(name).is_some());
}

async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

fn live(broker: &Broker) -> Vec<i32> {
    let image = broker.node.image();
    let live = image.brokers().filter(|known| known.is_active());
    live.map(|known| known.broker_id.0).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn empty_nodes_form_a_cluster_that_outlives_its_controller_and_a_lost_disk() {
    let cluster = Cluster::new(3);
    let mut brokers = cluster.start_all(&["broker,controller"; 3]).await;
    let cluster_id = brokers[0].node.quorum.cluster_id().clone();
    for broker in &brokers {
        assert_eq!(*broker.node.quorum.cluster_id(), cluster_id);
        until("all are live", || live(broker) == [1, 2, 3]).await;
    }
    // Whoever is asked.
    for broker in &brokers {
        create(broker, &format!("by-{}", id_of(broker)), 3).await;
    }
    for broker in &brokers {
        until("everyone has all topics", || {
            broker.node.image().topic_count() == 3
        })
        .await;
    }

    // The controller stops; another one leads and moves what it led.
    let leader = brokers[0].node.quorum.leader().unwrap();
    let at = brokers
        .iter()
        .position(|broker| broker.node.broker_id == leader)
        .unwrap();
    let stopped = brokers.remove(at);
    let stopped_id = id_of(&stopped) as usize;
    stopped.stop().await;
    for broker in &brokers {
        until("it is fenced", || {
            !live(broker).contains(&(stopped_id as i32))
        })
        .await;
        let image = broker.node.image();
        for topic in image.topics() {
            for (_, partition) in topic.partitions.iter() {
                assert!(partition.has_leader() && partition.leader != leader);
            }
        }
    }
    create(&brokers[0], "without", 2).await;
    create(&brokers[1], "without-too", 2).await;

    // It comes back with an empty disk: another directory, which has to be admitted.
    let old = brokers[0].node.quorum.voters();
    std::fs::remove_dir_all(cluster.data(stopped_id)).unwrap();
    let (back, _) = cluster.start(stopped_id, "broker,controller").await;
    assert_eq!(*back.node.quorum.cluster_id(), cluster_id);
    until("it has what it missed", || {
        back.node.image().topic("without-too").is_some()
    })
    .await;
    let directory_id = back.node.quorum.directory_id();
    assert!(old.iter().all(|voter| voter.directory_id != directory_id));
    for broker in brokers.iter().chain([&back]) {
        until("it votes again", || {
            let voters = broker.node.quorum.voters();
            voters.len() == 3
                && voters
                    .iter()
                    .any(|voter| voter.directory_id == directory_id)
        })
        .await;
        until("it is live again", || live(broker) == [1, 2, 3]).await;
    }
    create(&back, "after", 3).await;
    for broker in brokers.into_iter().chain([back]) {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_leader_whose_vote_is_taken_away_makes_room_for_another_one() {
    let cluster = Cluster {
        is_dynamic: true,
        ..Cluster::new(3)
    };
    let mut brokers = cluster.start_all(&["broker,controller"; 3]).await;
    for broker in &brokers {
        until("all are live", || live(broker) == [1, 2, 3]).await;
    }
    let leader = brokers[0].node.quorum.leader().unwrap();
    brokers.sort_by_key(|broker| broker.node.broker_id != leader);
    let [old, others @ ..] = &brokers[..] else {
        unreachable!("three were started");
    };
    let quorum = &old.node.quorum;
    let removed = quorum.remove_voter(leader, quorum.directory_id()).await;
    removed.unwrap();
    for broker in &brokers {
        until("another one leads", || {
            let leader_now = broker.node.quorum.leader();
            leader_now.is_some_and(|now| now != leader)
        })
        .await;
        assert_eq!(broker.node.quorum.voters().len(), 2);
    }
    for (number, broker) in others.iter().chain([old]).enumerate() {
        create(broker, &format!("after-{number}"), 3).await;
        until("all are live", || live(broker) == [1, 2, 3]).await;
    }
    for broker in brokers {
        broker.stop().await;
    }
}

/// Of a process that has ended nothing would hold the locks; of a node in this one something may.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Whether all of `brokers` have voter `id` with this directory, among three.
async fn until_voter(brokers: &[Broker], id: i32, directory_id: uuid::Uuid) {
    for broker in brokers {
        until("it votes", || {
            let voters = broker.node.quorum.voters();
            let is_it = |voter: &VoterInfo| (voter.id.0, voter.directory_id) == (id, directory_id);
            voters.len() == 3 && voters.iter().any(is_it)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_disk_that_another_one_had_replaced_is_admitted_when_it_comes_back() {
    let cluster = Cluster::new(3);
    let mut brokers = cluster.start_all(&["broker,controller"; 3]).await;
    create(&brokers[0], "first", 3).await;
    let (data, kept) = (cluster.data(2), cluster.dir.path().join("kept"));
    let old = brokers.remove(1);
    let old_id = old.node.quorum.directory_id();
    until_voter(&brokers, 2, old_id).await;
    old.stop().await;
    copy(&data, &kept);
    std::fs::remove_dir_all(&data).unwrap();
    let (new, _) = cluster.start(2, "broker,controller").await;
    let new_id = new.node.quorum.directory_id();
    until_voter(&brokers, 2, new_id).await;
    create(&new, "second", 3).await;
    new.stop().await;

    // Its own log says that it votes.
    std::fs::remove_dir_all(&data).unwrap();
    copy(&kept, &data);
    let (back, _) = cluster.start(2, "broker,controller").await;
    assert_eq!(back.node.quorum.directory_id(), old_id);
    brokers.push(back);
    until_voter(&brokers, 2, old_id).await;
    assert!(brokers[2].node.image().topic("second").is_some());
    create(&brokers[2], "third", 3).await;
    for broker in brokers {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn brokers_follow_a_controller_of_its_own() {
    let cluster = Cluster::new(1);
    let brokers = cluster.start_all(&["controller", "broker", "broker"]).await;
    let [controller, first, second] = &brokers[..] else {
        unreachable!("three were started");
    };
    for broker in &brokers {
        until("both are live", || live(broker) == [2, 3]).await;
    }
    assert!(!first.node.quorum.is_voter());
    create(first, "a", 2).await;
    create(second, "b", 1).await;
    until("the controller has them", || {
        controller.node.image().topic_count() == 2
    })
    .await;
    until("so has the other", || first.node.image().topic_count() == 2).await;
    assert_eq!(first.node.quorum.leader(), Some(BrokerId(1)));
    assert!(Path::new(&cluster.data(2)).join("meta.properties").exists());
    for broker in brokers.into_iter().rev() {
        broker.stop().await;
    }
}
