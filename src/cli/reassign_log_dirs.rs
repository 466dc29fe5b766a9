//! The part of `kafka-reassign-partitions` within one broker: moves to another log directory, which
//! the file asks for with `log_dirs`.

use std::collections::{BTreeMap, BTreeSet};

use super::admin::{Admin, AdminError, AlterOp, Answer, Resource, ResourceKind};
use super::io::Io;
use crate::types::ErrorCode;

const RATE: &str = "replica.alter.log.dirs.io.max.bytes.per.second";

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

async fn places(admin: &Admin, moves: &Moves) -> BTreeMap<(String, i32, i32), Place> {
    let mut places: BTreeMap<_, Place> = BTreeMap::new();
    let brokers: BTreeSet<i32> = moves.keys().map(|(_, _, broker)| *broker).collect();
    for broker in brokers {
        for dir in admin.describe_log_dirs(broker).await.unwrap_or_default() {
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
    places
}

/// Limits how fast the brokers of `moves` copy between their directories.
pub async fn throttle(admin: &Admin, moves: &Moves, rate: i64) -> Answer<()> {
    let set = AlterOp::Set {
        name: RATE.to_owned(),
        value: rate.to_string(),
    };
    let brokers: BTreeSet<i32> = moves.keys().map(|(_, _, broker)| *broker).collect();
    for id in brokers {
        let broker = Resource {
            kind: ResourceKind::Broker,
            name: id.to_string(),
        };
        admin
            .alter_configs(&broker, std::slice::from_ref(&set))
            .await?;
    }
    Ok(())
}

/// What takes the limit away.
pub fn unthrottle() -> AlterOp {
    AlterOp::Delete {
        name: RATE.to_owned(),
    }
}

/// Starts the moves.
pub async fn execute(io: &mut Io, admin: &Admin, moves: &Moves) -> Answer<()> {
    for (replica, dir) in moves {
        admin.alter_log_dir(replica, dir).await.map_err(|error| {
            let text = format!("Failed to alter dir for {}", name(replica));
            match error {
                AdminError::Answer { .. } => {
                    AdminError::answer(ErrorCode::UnknownServerError, Some(&text))
                }
                error => error,
            }
        })?;
        let (topic, partition, broker) = replica;
        io.line(format!(
            "Successfully started moving log directory to {dir} for replica {topic}-{partition} \
             with broker {broker} "
        ));
    }
    Ok(())
}

/// Says how far the moves are; whether one is under way.
pub async fn verify(io: &mut Io, admin: &Admin, moves: &Moves) -> bool {
    let places = places(admin, moves).await;
    let mut is_running = false;
    for (replica, wanted) in moves {
        let (topic, partition, broker) = replica;
        let of = format!("Partition {topic}-{partition} on broker {broker}");
        let place = places.get(replica);
        let current = place.and_then(|place| place.current.as_ref());
        let future = place.and_then(|place| place.future.as_ref());
        is_running |= future.is_some();
        io.line(match (current, future) {
            (_, Some(future)) if future == wanted => {
                format!(
                    "Reassignment of replica {} is still in progress.",
                    name(replica)
                )
            }
            (_, Some(future)) => {
                format!("{of} is being moved to log dir {future} instead of {wanted}.")
            }
            (Some(current), None) if current == wanted => {
                format!(
                    "Reassignment of replica {} completed successfully.",
                    name(replica)
                )
            }
            (Some(current), None) => {
                format!("{of} is not being moved from log dir {current} to {wanted}.")
            }
            (None, None) => format!("{of} is not found in any live log dir of the broker."),
        });
    }
    is_running
}

/// Those that are under way go back to where they are; their names.
pub async fn cancel(admin: &Admin, moves: &Moves) -> Answer<Vec<String>> {
    let places = places(admin, moves).await;
    let mut cancelled = Vec::new();
    for replica in moves.keys() {
        if let Some(Place {
            current: Some(current),
            future: Some(_),
        }) = places.get(replica)
        {
            admin.alter_log_dir(replica, current).await?;
            cancelled.push(name(replica));
        }
    }
    Ok(cancelled)
}
