//! Three whole nodes in one thread, from one seed: their APIs, partitions, coordinators, quorum and
//! connections as in a process each, over a host that is simulated (`host::simulated`): time that
//! jumps, a network that can be cut, disks that forget.
//!
//! Fault model (`faults`). Processes are killed, paused and stopped; machines lose power, and with
//! it what was not flushed, but only while all replicas of all partitions are in sync and until
//! they are again nobody else loses anything; disks fail, which may lose as much; a node starts
//! with another disk for its metadata, and later with the first one again. Links between
//! nodes, and between clients and nodes, are cut in one or both directions, late, or reset. Clocks
//! differ.
//!
//! Invariants (`watch`, `ledger`, `world`):
//!
//! 1. A record that was acknowledged, or read, stands where it did: each once, in the order in
//!    which its producer sent it.
//! 2. No leader epoch of a partition has two leaders, no term of the quorum two controllers.
//! 3. The metadata at an offset is the same on every node and for ever.
//! 4. When all is healed, every producer gets on within [`world::BACK_MAX`], and all replicas are
//!    in sync and equal within [`world::IN_SYNC_MAX`].
//! 5. Nobody panics, every node that was started serves in the end.
//!
//! Each seed runs in a process of its own: hash maps and the runtime draw their randomness from
//! counters of the process, so only then a seed is the same run each time.
//!
//! `KLAMM_SEED=n cargo test --lib broker::tests::simulation` runs one seed and shows what it did,
//! `KLAMM_SEEDS=n` that many; `KLAMM_SIMULATED_LOG=debug` shows the nodes' log as well.

mod client;
mod cluster;
mod faults;
mod ledger;
mod watch;
mod world;

use crate::host::simulated;
use crate::host::simulated::entropy;
use crate::host::{Clock, SystemClock};
use std::io::Write;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SEEDS: u64 = 6;
const SEED_OF_CHILD: &str = "KLAMM_SIMULATED_SEED";
const LOG_OF_CHILD: &str = "KLAMM_SIMULATED_LOG";
const CHILD: &str = "broker::tests::simulation::child";

static PANICKED: AtomicBool = AtomicBool::new(false);

fn environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().expect("a number"))
}

fn run_child(seed: u64) -> Output {
    let own = std::env::current_exe().expect("the test's own path");
    Command::new(own)
        .args([CHILD, "--exact", "--nocapture", "--test-threads=1"])
        .env(SEED_OF_CHILD, seed.to_string())
        .output()
        .expect("a child process")
}

fn result_of(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.lines().find_map(|line| {
        let at = line.find("run ")?;
        Some(line[at..].to_owned())
    });
    result.unwrap_or_default()
}

/// Not a test by itself: one seed, in the process that [`run_child`] starts.
#[test]
fn child() {
    let Some(seed) = environment(SEED_OF_CHILD) else {
        return;
    };
    start_log();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICKED.store(true, Ordering::SeqCst);
        before(info);
    }));
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let run = thread.spawn(move || {
        entropy::seed_this_thread(seed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(world::run(seed))
    });
    let counts = run
        .unwrap()
        .join()
        .expect("a run without a broken invariant");
    assert!(!PANICKED.load(Ordering::SeqCst), "something panicked");
    println!("run {counts}");
    let _ = std::io::stdout().flush();
}

/// Lines with the simulated time and the number of the process.
fn start_log() {
    let Ok(filter) = std::env::var(LOG_OF_CHILD) else {
        return;
    };
    struct Where;
    impl tracing_subscriber::fmt::time::FormatTime for Where {
        fn format_time(
            &self,
            writer: &mut tracing_subscriber::fmt::format::Writer<'_>,
        ) -> std::fmt::Result {
            write!(writer, "{}", simulated::here())
        }
    }
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_timer(Where)
        .with_ansi(false)
        .init();
}

#[test]
fn whole_nodes_keep_what_they_acknowledge() {
    if environment(SEED_OF_CHILD).is_some() {
        return;
    }
    if let Some(seed) = environment("KLAMM_SEED") {
        let output = run_child(seed);
        let _ = std::io::stdout().write_all(&output.stdout);
        let _ = std::io::stderr().write_all(&output.stderr);
        assert!(output.status.success(), "broken with KLAMM_SEED={seed}");
        return;
    }
    let first = environment("KLAMM_FIRST_SEED").unwrap_or(0);
    let seeds = first..first + environment("KLAMM_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(seeds.start);
    let broken = Mutex::new(Vec::new());
    let started = SystemClock::new();
    let is_long = seeds.end - seeds.start > SEEDS;
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let output = run_child(seed);
            if !output.status.success() {
                let text = [output.stdout, output.stderr].concat();
                let text = String::from_utf8_lossy(&text).into_owned();
                eprintln!("seed {seed} is broken:\n{text}");
                broken.lock().unwrap().push(seed);
            }
            if is_long && (seed + 1).is_multiple_of(100) {
                eprintln!("up to seed {seed}: {} s", started.monotonic().as_secs());
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let broken = broken.into_inner().unwrap();
    let commands: Vec<_> = broken
        .iter()
        .map(|seed| format!("KLAMM_SEED={seed} cargo test --lib broker::tests::simulation"))
        .collect();
    assert!(
        broken.is_empty(),
        "broken; again with\n{}",
        commands.join("\n")
    );
}

#[test]
fn a_seed_is_the_same_run_each_time() {
    if environment(SEED_OF_CHILD).is_some() {
        return;
    }
    let [one, other] = [run_child(1), run_child(1)].map(|output| {
        let result = result_of(&output);
        assert!(result.contains("trace"), "{output:?}");
        result
    });
    assert_eq!(one, other);
    let different = result_of(&run_child(2));
    assert_ne!(one, different);
}
