//! The machine under random members, clocks, losses and crashes, from seeds.
//!
//! One seed picks the configuration, the kinds of members and every event. Two phases:
//!
//! 1. *Safety*: requests and replies get lost, members die and are replaced, topics grow, the
//!    coordinator is dropped and loaded again from everything that was appended (a failed append)
//!    or from what was committed only (another broker took over). After each event every invariant
//!    (invariants/, one file each) is asked.
//! 2. *Liveness*: no more losses, crashes and deaths. Within ten minutes of the simulated clock all
//!    groups have to come to rest with all partitions assigned.
//!
//! A failure names its seed: `KLAMM_SEED=n cargo test --lib group::tests::simulation`.

mod client;
mod invariants;
mod world;

use world::World;

/// Runs by default; more with KLAMM_RUNS.
const RUNS: u64 = 60;
const EVENTS: usize = 600;

fn run(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..EVENTS {
        world.random_event();
        invariants::check(&mut world);
    }
    world.heal();
    for _ in 0..3_000 {
        world.calm_event();
    }
    invariants::check(&mut world);
    invariants::check_rest(&mut world);
}

#[test]
fn random_groups_keep_their_promises() {
    if let Ok(seed) = std::env::var("KLAMM_SEED") {
        return run(seed.parse().unwrap());
    }
    let runs = std::env::var("KLAMM_RUNS").map_or(RUNS, |runs| runs.parse().unwrap());
    for seed in 0..runs {
        let result = std::panic::catch_unwind(|| run(seed));
        if let Err(panic) = result {
            eprintln!("failed with KLAMM_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
