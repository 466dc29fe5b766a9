//! The partition layers of three brokers in one thread, from seeds: their real logs on disks that
//! forget, leaders and fetchers as they run in a broker, a loopback in place of connections, and a
//! controller that is a few lines.
//!
//! Fault model. A request or an answer is late, or lost; a fetch that was lost may still be served.
//! Metadata comes late, but in order. A broker is killed and comes back with all that it wrote; or
//! its machine loses power, and with it what was not flushed, but only while another member of the
//! controller's ISR lives and has all of its own; then nobody else fails until the controller
//! knows. One that crashed leaves the ISR, unless it is the last.
//!
//! Replicas move between the directories of a broker meanwhile.
//!
//! At the end all is healed: acknowledged records are all there, and the replicas are equal.
//!
//! `KLAMM_SEED=n cargo test partition::tests::simulation` runs one seed, `KLAMM_SEEDS=n` that many,
//! from `KLAMM_FIRST_SEED=n` (0) on.

pub mod broker;
pub mod controller;
mod world;

use world::World;

const SEEDS: u64 = 40;

fn environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("a number"))
}

#[test]
fn acknowledged_records_are_never_lost() {
    let seeds = match environment("KLAMM_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = environment("KLAMM_FIRST_SEED").unwrap_or(0);
            first..first + environment("KLAMM_SEEDS").unwrap_or(SEEDS)
        }
    };
    let mut counts = world::Counts::default();
    for seed in seeds.clone() {
        match std::panic::catch_unwind(|| World::new(seed).run()) {
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
