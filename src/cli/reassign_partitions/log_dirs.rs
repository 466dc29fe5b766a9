//! The part of `kafka-reassign-partitions` within one broker: moves to another log directory, which
//! the file asks for with `log_dirs`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::stop::Stop;
use crate::cli::admin::{Admin, AdminError};
use crate::cli::io::Io;
use crate::host::{Clock, SystemClock};
use crate::types::ErrorCode;

/// Before a replica that is not there yet is asked for again.
const PAUSE: Duration = Duration::from_millis(100);

/// Topic, partition and broker of a replica, and the directory where it is to be.
pub type Moves = BTreeMap<(String, i32, i32), String>;

/// Where a replica is, and where it is being moved.
#[derive(Default)]
struct Place {
    current: Option<String>,
    future: Option<String>,
}

fn name((topic, partition, broker): &(String, i32, i32)) -> String {
    format!("{topic}-{partition}-{broker}")
}

async fn places(admin: &Admin, moves: &Moves) -> Result<BTreeMap<(String, i32, i32), Place>, Stop> {
    let mut places: BTreeMap<_, Place> = BTreeMap::new();
    let brokers: BTreeSet<i32> = moves.keys().map(|(_, _, broker)| *broker).collect();
    if brokers.is_empty() {
        return Ok(places);
    }
    let cluster = admin.describe_cluster(false).await?;
    if brokers.iter().any(|id| !cluster.brokers.contains_key(id)) {
        return Err(Stop::no_broker("describeReplicaLogDirs"));
    }
    for broker in brokers {
        for dir in admin.describe_log_dirs(broker).await? {
            for replica in dir.replicas {
                let key = (replica.topic, replica.partition, broker);
                let place = places.entry(key).or_default();
                match replica.is_future {
                    true => place.future = Some(dir.path.clone()),
                    false => place.current = Some(dir.path.clone()),
                }
            }
        }
    }
    Ok(places)
}

/// The moves, as the tool orders them: by broker.
fn in_order(moves: &Moves) -> Vec<(&(String, i32, i32), &String)> {
    let mut sorted: Vec<_> = moves.iter().collect();
    sorted.sort_by_key(|((topic, partition, broker), _)| (*broker, topic, *partition));
    sorted
}

/// Starts the moves. A replica that is not on its broker yet is waited for.
pub async fn execute(
    io: &mut Io,
    admin: &Admin,
    moves: &Moves,
    timeout: Duration,
) -> Result<(), Stop> {
    let clock = SystemClock::new();
    let mut pending = moves.clone();
    loop {
        let mut later = Moves::new();
        for (replica, dir) in in_order(&pending) {
            match admin.alter_log_dir(replica, dir).await {
                Ok(()) => {
                    let (topic, partition, broker) = replica;
                    io.line(format!(
                        "Successfully started moving log directory to {dir} for replica \
                         {topic}-{partition} with broker {broker} "
                    ));
                }
                Err(AdminError::Answer {
                    error: ErrorCode::ReplicaNotAvailable,
                    ..
                }) => {
                    later.insert(replica.clone(), dir.clone());
                }
                Err(_) => {
                    let text = format!("Failed to alter dir for {}", name(replica));
                    return Err(Stop::failed(text));
                }
            }
        }
        if later.is_empty() {
            return Ok(());
        }
        if clock.monotonic() >= timeout {
            let names: Vec<String> = in_order(&later).iter().map(|(key, _)| name(key)).collect();
            let s = if names.len() == 1 { "" } else { "s" };
            return Err(Stop::Said(format!(
                "Timed out before log directory move{s} could be started for: {}",
                names.join(",")
            )));
        }
        pending = later;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Says how far the moves are; whether one is under way.
pub async fn verify(io: &mut Io, admin: &Admin, moves: &Moves) -> Result<bool, Stop> {
    let places = places(admin, moves).await?;
    let mut is_running = false;
    for (replica, wanted) in in_order(moves) {
        let (topic, partition, broker) = replica;
        let of = format!("Partition {topic}-{partition}");
        let place = places.get(replica);
        let current = place.and_then(|place| place.current.as_ref());
        let future = place.and_then(|place| place.future.as_ref());
        is_running |= current.is_some() && future.is_some();
        io.line(match (current, future) {
            (None, _) => format!(
                "{of} is not found in any live log dir on broker {broker}. There is likely an \
                 offline log directory on the broker."
            ),
            (_, Some(future)) if future == wanted => {
                format!(
                    "Reassignment of replica {} is still in progress.",
                    name(replica)
                )
            }
            (_, Some(future)) => format!(
                "{of} on broker {broker} is being moved to log dir {future} instead of {wanted}."
            ),
            (Some(current), None) if current == wanted => {
                format!(
                    "Reassignment of replica {} completed successfully.",
                    name(replica)
                )
            }
            (Some(current), None) => format!(
                "{of} on broker {broker} is not being moved from log dir {current} to {wanted}."
            ),
        });
    }
    if moves.is_empty() {
        io.line("");
    }
    Ok(is_running)
}

/// Those that are under way go back to where they are.
pub async fn cancel(
    io: &mut Io,
    admin: &Admin,
    moves: &Moves,
    timeout: Duration,
) -> Result<(), Stop> {
    let places = places(admin, moves).await?;
    let back = moves.keys().filter_map(|replica| {
        let place = places.get(replica)?;
        place.future.as_ref()?;
        Some((replica.clone(), place.current.clone()?))
    });
    let back: Moves = back.collect();
    if back.is_empty() {
        // No end of the line: Kafka's tool writes none.
        let none = b"None of the specified partition moves are active.";
        let _ = std::io::Write::write_all(&mut io.out, none);
        return Ok(());
    }
    execute(io, admin, &back, timeout).await
}
