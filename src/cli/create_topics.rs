//! `klamm create-topics`: the topics that the environment orders (`KAFKA_CREATE_TOPICS`), made as
//! soon as this container's broker serves. One that is there already is left as it is.

use std::time::Duration;

use super::admin::NewTopic;
use super::effective_config::{effective, family, variables};
use super::exit::{Done, Exit};
use super::io::Io;
use super::settings::Settings;
use super::zookeeper::own_broker;
use crate::config::dialect::TopicOrder;
use crate::host::{Clock, SystemClock};
use crate::types::ErrorCode;

const PAUSE: Duration = Duration::from_millis(100);
/// As `START_TIMEOUT` of wurstmeister/kafka.
const WAIT_MAX_S: u64 = 600;

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let variables = variables();
    let word = args.iter().find_map(|arg| arg.strip_prefix("--dialect="));
    let ordered = effective(family(word, &variables)?, &variables, None)?.topics;
    if ordered.is_empty() {
        return Ok(());
    }
    let given = variables.iter().find(|(name, _)| name == "START_TIMEOUT");
    let seconds = given
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(WAIT_MAX_S);
    let address = own_broker().unwrap_or_else(|| "localhost:9092".to_owned());
    wait_for(&address, Duration::from_secs(seconds)).await?;
    let mut settings = Settings::default();
    settings.set("bootstrap.servers", &address);
    let admin = settings.admin()?;
    let mut failed = false;
    for order in ordered {
        let name = order.name.clone();
        match admin.create_topic(&new_topic(order)).await {
            Ok(()) => io.line(format!("Created topic {name}.")),
            Err(error) if error.is(ErrorCode::TopicAlreadyExists) => {}
            Err(error) => {
                failed = true;
                io.error_line(format!("klamm: topic {name}: {}", error.message()));
            }
        }
    }
    if failed { Err(Exit::code(1)) } else { Ok(()) }
}

fn new_topic(order: TopicOrder) -> NewTopic {
    NewTopic {
        name: order.name,
        partitions: order.partitions,
        replication_factor: order.replication_factor,
        configs: order.configs,
        ..NewTopic::default()
    }
}

async fn wait_for(address: &str, limit: Duration) -> Done {
    let clock = SystemClock::new();
    loop {
        if tokio::net::TcpStream::connect(address).await.is_ok() {
            return Ok(());
        }
        if clock.monotonic() > limit {
            let text = format!("klamm: no broker on {address}: no topics were created");
            return Err(Exit::error(text));
        }
        tokio::time::sleep(PAUSE).await;
    }
}
