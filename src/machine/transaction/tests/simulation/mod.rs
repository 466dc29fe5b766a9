//! The machine in a small world, from seeds: clients with the same and different transactional
//! ids, zombies, time-outs, a coordinator that crashes and loads again, or whose clock jumps,
//! markers late and twice.
//!
//! Fault model. A message may be late and overtake others; one to or from the coordinator may be
//! lost. A crash of the coordinator loses what was not yet appended and all its answers; markers
//! on their way may be lost or still arrive. Clients and partitions of version 2 see any message
//! twice and at any time. Those of version 0 and 1 do not see an old request after a newer one: in
//! these versions nothing but the order on a connection protects the next transaction of the same
//! epoch (KIP-890).
//!
//! After the faults everything is healed: what is open has to end, in the same way everywhere.
//!
//! Half of the coordinators apply a record when it is committed, half at once; replies and markers
//! wait for the commit in both.
//!
//! `KLAMM_SEED=n cargo test transaction::tests::simulation` runs one seed;
//! `KLAMM_SEEDS=n` that many of them.

mod client;
mod coordinator;
mod invariants;
mod partition;
mod world;

use super::*;
use crate::types::seeded::Random;
use world::World;

const SEEDS: u64 = 400;

/// A transaction as its client sees it: which client, and its how-manieth.
type Txn = (usize, u32);

/// What happened, for the invariants.
#[derive(Debug, Clone)]
enum Event {
    /// A record is in the log, on behalf of a client or of nobody.
    Record {
        record: TransactionRecord,
        client: Option<usize>,
        resumes: bool,
    },
    /// A partition has a marker.
    Marker {
        partition: TopicPartition,
        markers: TxnMarkers,
    },
    /// A record of a transaction is in a partition.
    Appended {
        partition: TopicPartition,
        txn: Txn,
        producer: ProducerIdAndEpoch,
    },
    /// A marker decided about it.
    Decided { txn: Txn, result: TransactionResult },
    /// A client has its answer.
    Told { txn: Txn, result: TransactionResult },
}

fn environment(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|value| value.parse().expect("a number"))
}

#[test]
fn no_invariant_is_broken() {
    let seeds = match environment("KLAMM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..environment("KLAMM_SEEDS").unwrap_or(SEEDS),
    };
    let mut counts = world::Counts::default();
    for seed in seeds.clone() {
        let run = std::panic::catch_unwind(|| World::new(seed).run());
        match run {
            Ok(of_run) => counts.add(&of_run),
            Err(_) => panic!("broken with KLAMM_SEED={seed}"),
        }
    }
    println!("{seeds:?}: {counts:?}");
    // A world in which nothing happens proves nothing.
    if seeds.end - seeds.start >= SEEDS {
        counts.assert_rich();
    }
}
