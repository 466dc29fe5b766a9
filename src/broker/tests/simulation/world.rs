//! One run: a cluster, its clients, faults, and what is looked at in the end.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::client::{Connections, Pace, Producer, Reader, TOPIC};
use super::cluster::{Ended, NODES, SimNode, machine_of_client};
use super::faults::Faults;
use super::ledger::{self, Ledger};
use super::watch::Watch;
use crate::host::simulated::Process;
use crate::host::simulated::network::{LinkTimes, Network, Trace};
use crate::log::Log;
use crate::metadata::planners::NewTopic;
use crate::record::Batches;
use crate::types::seeded::Random;
use crate::types::{LeaderEpoch, Offset};

/// Within this every producer gets on, once all is healed.
pub const BACK_MAX: Duration = Duration::from_secs(30);
/// And within this all replicas are in sync and equal, once nobody writes any more.
pub const IN_SYNC_MAX: Duration = Duration::from_secs(60);

const FORM_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

pub struct World {
    pub random: Random,
    pub network: Arc<Network>,
    pub nodes: Vec<SimNode>,
    pub clients: Vec<Arc<Process>>,
    pub watch: Watch,
    pub start: Instant,
    pub shows: bool,
}

/// What a run had.
pub struct Counts {
    trace: Trace,
    simulated: Duration,
    faults: BTreeMap<&'static str, u64>,
    acknowledged: u64,
    read: u64,
    again: usize,
    terms: usize,
    epochs: usize,
    back: Duration,
    in_sync: Duration,
    longest_wait: Duration,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "trace {:016x} of {} events in {:.1} s: {} acknowledged, {} read, {} again, longest wait {:.1} s, \
             {} terms, {} epochs, back after {:.2} s, in sync after {:.2} s, faults {:?}",
            self.trace.hash,
            self.trace.events,
            self.simulated.as_secs_f64(),
            self.acknowledged,
            self.read,
            self.again,
            self.longest_wait.as_secs_f64(),
            self.terms,
            self.epochs,
            self.back.as_secs_f64(),
            self.in_sync.as_secs_f64(),
            self.faults,
        )
    }
}

struct Plan {
    partitions: i32,
    producers: usize,
    pace: Pace,
    faults: Duration,
}

fn link_times(random: &mut Random) -> LinkTimes {
    let kind = random.below(3) as usize;
    LinkTimes {
        base_us: [100, 500, 5_000][kind],
        jitter_us: [400, 2_000, 20_000][kind],
        late_one_in: [0, 100, 30][random.below(3) as usize],
        late_us: 400_000,
    }
}

fn plan(random: &mut Random) -> Plan {
    Plan {
        partitions: 1 + random.below(4) as i32,
        producers: 2 + random.below(4) as usize,
        pace: Pace {
            in_flight_max: 1 + random.below(5) as usize,
            batch_records_max: 1 + random.below(8),
            think_ms: [20, 100, 300][random.below(3) as usize],
        },
        faults: Duration::from_secs(10 + random.below(50)),
    }
}

/// Options of nodes that change what happens, from the seed.
fn options(random: &mut Random) -> Vec<String> {
    let lag_ms = [1_000, 5_000, 30_000][random.below(3) as usize];
    let mut options = vec![format!("replica.lag.time.max.ms={lag_ms}")];
    if random.one_in(2) {
        options.push("log.flush.offset.checkpoint.interval.ms=2000".to_owned());
        options.push("replica.high.watermark.checkpoint.interval.ms=1000".to_owned());
    }
    options
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed ^ 0x6b6c_616d_6d00);
        let network = Network::new(random.draw(), link_times(&mut random));
        let more = options(&mut random);
        let nodes = (1..=NODES as i32).map(|id| {
            let ahead_ms = random.below(4000) as i64 - 2000;
            SimNode::new(id, &network, ahead_ms, &more)
        });
        World {
            nodes: nodes.collect(),
            random,
            network,
            clients: Vec::new(),
            watch: Watch::default(),
            start: Instant::now(),
            shows: std::env::var_os("KLAMM_SEED").is_some(),
        }
    }

    pub fn note(&self, what: &str) {
        self.network.note(what, &[]);
        if self.shows {
            println!("{:9.3} {what}", self.start.elapsed().as_secs_f64());
        }
    }

    /// Looks at the nodes for so long.
    pub async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            sleep(LOOK.min(end - Instant::now())).await;
            self.watch.look(&self.nodes);
        }
    }

    /// Waits until `done`; at most `time`.
    async fn until(
        &mut self,
        time: Duration,
        mut done: impl FnMut(&World) -> Result<(), String>,
    ) -> Duration {
        let since = Instant::now();
        loop {
            let Err(why) = done(self) else {
                return since.elapsed();
            };
            if since.elapsed() >= time {
                panic!("not within {time:?}: {why}\n{}", self.describe());
            }
            self.pass(LOOK).await;
            self.assert_none_ended().await;
        }
    }

    async fn assert_none_ended(&mut self) {
        for node in &mut self.nodes {
            if let Some(ended) = node.ended().await {
                panic!("node {} ended by itself: {ended:?}", node.id);
            }
        }
    }

    async fn create_topic(&mut self, partitions: i32) {
        let node = self.nodes[0].node().expect("it serves");
        let topic = NewTopic {
            name: TOPIC.to_owned(),
            num_partitions: partitions,
            replication_factor: NODES as i16,
            ..NewTopic::default()
        };
        let process = self.nodes[0].process().expect("it runs");
        let created = process.spawn(async move {
            let created = node
                .create_topics(vec![topic], false)
                .await
                .expect("created");
            for (_, result) in created {
                result.expect("created");
            }
        });
        created.await.expect("a topic");
    }

    fn start_clients(
        &mut self,
        plan: &Plan,
        ledger: &Arc<Ledger>,
        [stop_producing, stop_reading]: [watch::Receiver<bool>; 2],
    ) -> [Vec<JoinHandle<()>>; 2] {
        let mut producers = Vec::new();
        let mut readers = Vec::new();
        for number in 0..plan.producers {
            let process = Process::start(&self.network, machine_of_client(number));
            let random = Random::new(self.random.draw());
            let partition = number as i32 % plan.partitions;
            let producer = Producer::new(number, partition, plan.pace, random, ledger);
            producers.push(process.spawn(producer.run(stop_producing.clone())));
            self.clients.push(process);
        }
        let process = Process::start(&self.network, machine_of_client(100));
        for partition in 0..plan.partitions {
            let random = Random::new(self.random.draw());
            let reader = Reader {
                partition,
                epoch: 0,
                connections: Connections::new(format!("reader-{partition}"), random),
                ledger: ledger.clone(),
            };
            readers.push(process.spawn(reader.run(stop_reading.clone())));
        }
        self.clients.push(process);
        [producers, readers]
    }

    fn all_serve(&self) -> Result<(), String> {
        for sim in &self.nodes {
            let node = sim
                .node()
                .ok_or(format!("node {} does not serve", sim.id))?;
            let image = node.quorum.image();
            let live = image.brokers().filter(|broker| broker.is_active()).count();
            if live < NODES {
                return Err(format!("node {} knows {live} live brokers", sim.id));
            }
        }
        Ok(())
    }

    /// Whether every replica of every partition is in sync, by the newest metadata.
    pub fn all_in_sync(&self) -> Result<(), String> {
        let image = self.watch.newest().ok_or("no metadata")?;
        for topic in image.topics() {
            for (index, partition) in topic.partitions.iter() {
                if partition.isr.len() < partition.replicas.len() {
                    let (name, isr) = (&topic.name, &partition.isr);
                    return Err(format!("{name}-{index}: ISR {isr:?}"));
                }
            }
        }
        Ok(())
    }

    /// Whether every node is the voter that all take it for.
    pub fn all_admitted(&self) -> Result<(), String> {
        let nodes: Option<Vec<_>> = self.nodes.iter().map(|sim| sim.node()).collect();
        let nodes = nodes.ok_or("not all serve")?;
        for node in &nodes {
            let known = node.quorum.voters();
            for other in nodes.iter().map(|node| &node.quorum) {
                let is_it = (other.node_id(), other.directory_id());
                if !known
                    .iter()
                    .any(|voter| (voter.id, voter.directory_id) == is_it)
                {
                    let (id, other) = (node.broker_id, other.node_id());
                    return Err(format!("to node {id} node {other} is no voter"));
                }
            }
        }
        Ok(())
    }

    fn replicas_are_equal(&self) -> Result<(), String> {
        self.all_in_sync()?;
        self.all_admitted()?;
        let newest = self.watch.newest().ok_or("no metadata")?;
        for sim in &self.nodes {
            let node = sim.node().ok_or("it does not serve")?;
            if node.quorum.image().offset() < newest.offset() {
                return Err(format!("node {} has lost metadata", sim.id));
            }
        }
        for (topic, index) in self.partitions() {
            let mut ends = Vec::new();
            for sim in &self.nodes {
                let node = sim.node().ok_or("it does not serve")?;
                let partition = node.partitions.get(topic, index).ok_or("no partition")?;
                ends.push(partition.log().log_end_offset());
                ends.push(partition.high_watermark());
            }
            if ends.iter().any(|end| *end != ends[0]) {
                return Err(format!(
                    "partition {index}: ends and high watermarks {ends:?}"
                ));
            }
        }
        Ok(())
    }

    /// What every node has of every partition.
    fn describe(&self) -> String {
        let mut text = String::new();
        for (topic, index) in self.partitions() {
            for sim in &self.nodes {
                let node = sim.node();
                let partition = node.and_then(|node| node.partitions.get(topic, index));
                let Some(partition) = partition else { continue };
                let (leadership, log) = (partition.leadership(), &partition.log());
                let producers = log.active_producers();
                let producers = producers.iter().map(|p| (p.producer_id.0, p.last_sequence));
                let producers: Vec<_> = producers.collect();
                text += &format!(
                    "node {}, {}: leader {} in epoch {}, ISR {:?}, high watermark {}, end {}, \
                     recovery point {}, producers and their last sequences {producers:?}\n",
                    sim.id,
                    partition.topic_partition,
                    leadership.leader,
                    leadership.leader_epoch,
                    leadership.isr,
                    partition.high_watermark(),
                    log.log_end_offset(),
                    log.recovery_point(),
                );
            }
        }
        text
    }

    /// Of every topic.
    fn partitions(&self) -> Vec<(crate::types::TopicId, i32)> {
        let image = self.watch.newest().expect("metadata");
        let of = |topic: &Arc<crate::metadata::TopicImage>| {
            let id = topic.id;
            let indexes: Vec<_> = topic.partitions.iter().map(|(i, _)| (id, i)).collect();
            indexes
        };
        image.topics().flat_map(of).collect()
    }

    fn check_logs(&self, ledger: &Ledger) {
        let image = self.watch.newest().expect("metadata");
        let id = image.topic(TOPIC).expect("the topic").id;
        for (topic, index) in self.partitions() {
            let logs: Vec<_> = self
                .nodes
                .iter()
                .map(|sim| {
                    let node = sim.node().expect("it serves");
                    batches(&node.partitions.get(topic, index).expect("it has it").log())
                })
                .collect();
            for (sim, log) in self.nodes.iter().zip(&logs) {
                assert!(
                    *log == logs[0],
                    "{topic:?}-{index}: node {} differs",
                    sim.id
                );
            }
            if topic == id {
                let mut records = BTreeMap::new();
                for batch in Batches::new(logs[0].1.clone().freeze()).map_while(Result::ok) {
                    records.extend(ledger::records(&batch));
                }
                ledger.check(index, &records);
            }
        }
    }
}

/// The end of a log, and all bytes of it.
fn batches(log: &Log) -> (Offset, BytesMut) {
    let end = log.log_end_offset();
    let mut all = BytesMut::new();
    let mut at = log.log_start_offset();
    while at < end {
        let slice = log.read(at, 1 << 20, end, true).expect("readable");
        let Some(file) = &slice.file else { break };
        let mut bytes = BytesMut::zeroed(slice.len as usize);
        let read_bytes = file.read_at(&mut bytes, slice.position).expect("read");
        bytes.truncate(read_bytes);
        // The last batch may be there in part.
        let (before, mut whole_bytes) = (at, 0);
        for batch in Batches::new(bytes.clone().freeze()).map_while(Result::ok) {
            assert!(batch.header.leader_epoch > LeaderEpoch::NONE, "an epoch");
            at = batch.header.next_offset();
            whole_bytes += batch.size_bytes();
        }
        assert!(at > before, "nothing to read at {at} below {end}");
        all.extend_from_slice(&bytes[..whole_bytes]);
    }
    (end, all)
}

pub async fn run(seed: u64) -> Counts {
    let mut world = World::new(seed);
    let plan = plan(&mut world.random);
    for node in &mut world.nodes {
        node.start();
    }
    world.until(FORM_MAX, World::all_serve).await;
    world.note("formed");
    world.create_topic(plan.partitions).await;
    let ledger = Arc::new(Ledger::new());
    let (stop_producing, producing) = watch::channel(false);
    let (stop_reading, reading) = watch::channel(false);
    let [producers, readers] = world.start_clients(&plan, &ledger, [producing, reading]);

    let mut faults = Faults::default();
    faults.run(&mut world, plan.faults).await;
    faults.heal(&mut world).await;
    let healed = Instant::now();
    let mut back = world.until(BACK_MAX, |world| world.all_serve()).await;
    let getting_on = ledger.clone();
    back += world
        .until(BACK_MAX, |_| {
            let waiting = getting_on.waiting(plan.producers, healed);
            match waiting.is_empty() {
                true => Ok(()),
                false => Err(format!("producers wait: {waiting:?}")),
            }
        })
        .await;
    world.note("back");

    stop_producing.send_replace(true);
    world
        .until(BACK_MAX, |_| {
            let at_work = producers.iter().filter(|task| !task.is_finished()).count();
            match at_work {
                0 => Ok(()),
                _ => Err(format!("{at_work} producers still send")),
            }
        })
        .await;
    let in_sync = world.until(IN_SYNC_MAX, World::replicas_are_equal).await;
    stop_reading.send_replace(true);
    for client in producers.into_iter().chain(readers) {
        client.await.expect("a client");
    }
    world.check_logs(&ledger);
    world.note("checked");
    let counts = Counts {
        trace: world.network.trace(),
        simulated: world.start.elapsed(),
        faults: faults.counts,
        acknowledged: ledger.acknowledged_count(),
        read: ledger.read_count(),
        again: ledger.again_count(),
        terms: world.watch.terms(),
        epochs: world.watch.epochs(),
        back,
        in_sync,
        longest_wait: ledger.longest_wait(),
    };
    for node in &mut world.nodes {
        let ended = node.stop().await;
        assert_eq!(ended, Some(Ended::Stopped), "node {}", node.id);
    }
    counts
}
