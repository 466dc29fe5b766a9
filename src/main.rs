//! Parses the command line and hands over to the broker.

use std::net::ToSocketAddrs;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use klamm::api::is_loopback;
use klamm::broker::{Broker, LogFormat, Ready, StartError, doubts, log_line, start_log};
use klamm::cli::{BrokerArgs, Dispatched};
use klamm::config::{
    ConfigError, NodeConfig, Property, Sources, argument_properties, environment_properties,
    parse_properties,
};
use klamm::host::{Clock, Disk, RealDisk, SystemClock, log_levels, tasks};
use klamm::types::with_causes;
use tokio::signal::unix::{SignalKind, signal};

/// How long a stop may take before what is left is given up.
const STOP_MAX: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let clock = SystemClock::new();
    // A command, by its own name or behind `klamm`; otherwise the words are the broker's.
    let words = match klamm::cli::dispatch(std::env::args_os().collect()) {
        Dispatched::Done(code) => return code,
        Dispatched::Broker(words) => words,
    };
    let args = BrokerArgs::parse_from(words);
    let given = std::env::var("KAFKA_LOG4J_ROOT_LOGLEVEL").unwrap_or_default();
    // Among the words of Kafka's levels are OFF, ALL and some that are none.
    let given = log_levels::level(&given.to_lowercase()).filter(|_| args.as_kafka);
    let format = log_format(&args);
    let Some(level) = given.or(log_levels::level(&args.log_level)) else {
        let text = format!("--log-level: {} is not a level", args.log_level);
        return end(format, &text, 2);
    };
    start_log(format, level);
    let config = match load_config(&args) {
        Ok(config) => config,
        Err(error) => return fail(format, &error),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(run(config, &args, &clock)),
        Err(error) => end(format, &format!("cannot start threads: {error}"), 1),
    }
}

fn log_format(args: &BrokerArgs) -> LogFormat {
    match args.log_json {
        true => LogFormat::Json,
        false => LogFormat::Human,
    }
}

async fn run(config: NodeConfig, args: &BrokerArgs, clock: &SystemClock) -> ExitCode {
    let stop_signals = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    );
    let format = log_format(args);
    let (Ok(mut terminate), Ok(mut interrupt)) = stop_signals else {
        return end(format, "cannot wait for signals", 1);
    };
    // A node may wait for the others for long.
    let started = tokio::select! {
        started = Broker::start(config) => started,
        _ = terminate.recv() => return not_started("SIGTERM"),
        _ = interrupt.recv() => return not_started("SIGINT"),
    };
    let (broker, ready) = match started {
        Ok(started) => started,
        Err(error) => return fail(format, &error),
    };
    tell(&ready, args.file.is_some(), clock.monotonic());
    if args.as_kafka {
        tell_scripts(format, &ready);
    }
    // A name server may be slow, and clients are served already.
    drop(tasks::spawn_blocking(move || tell_doubts(&ready)));
    tokio::select! {
        _ = terminate.recv() => tracing::info!("SIGTERM: stopping"),
        _ = interrupt.recv() => tracing::info!("SIGINT: stopping"),
        error = broker.failed() => return fail(format, &error),
    }
    match tokio::time::timeout(STOP_MAX, broker.stop()).await {
        Ok(()) => {
            tracing::info!("stopped");
            ExitCode::SUCCESS
        }
        Err(_) => {
            tracing::error!(
                "the stop took longer than {} s; giving up",
                STOP_MAX.as_secs()
            );
            ExitCode::FAILURE
        }
    }
}

fn not_started(signal: &str) -> ExitCode {
    tracing::info!("{signal}: stopped before it was ready");
    ExitCode::SUCCESS
}

fn load_config(args: &BrokerArgs) -> Result<NodeConfig, StartError> {
    let one = |error: ConfigError| StartError::Config(vec![error]);
    let file = match &args.file {
        None => None,
        Some(path) => {
            let failed = |source| StartError::ConfigFile {
                path: path.clone(),
                source,
            };
            let bytes = RealDisk.read(path).map_err(failed)?;
            let text = String::from_utf8_lossy(&bytes);
            Some(parse_properties(&path.to_string_lossy(), &text).map_err(one)?)
        }
    };
    let variables: Vec<(String, String)> = std::env::vars_os()
        .filter(|_| !args.as_kafka)
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let environment: Vec<Property> =
        environment_properties(variables.iter().map(|(name, value)| (&**name, &**value)));
    let overrides = args.overrides.iter().map(String::as_str);
    let arguments = argument_properties(overrides).map_err(one)?;
    let sources = Sources {
        file,
        environment,
        arguments,
    };
    let (config, warnings) = NodeConfig::load(sources).map_err(StartError::Config)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    Ok(config)
}

fn tell_doubts(ready: &Ready) {
    let resolves = |host: &str| {
        let found = (host, 0).to_socket_addrs();
        found.is_ok_and(|mut found| found.next().is_some())
    };
    for doubt in doubts(&ready.advertised, &ready.bound, ready.follows, &resolves) {
        tracing::warn!("{doubt}");
    }
}

/// What start scripts and Testcontainers wait for in the log of Kafka, each line once.
fn tell_scripts(format: LogFormat, ready: &Ready) {
    let id = ready.broker_id.0;
    let lines = [
        "[LogManager] Creating new log file".to_owned(),
        format!("[BrokerServer id={id}] Transitioning from RECOVERY to RUNNING"),
        format!("[KafkaServer id={id}] started (kafka.server.KafkaServer)"),
        format!("[KafkaRaftServer nodeId={id}] Kafka Server started"),
        format!("[Controller id={id}] Checking need to trigger auto leader balancing"),
        "Kafka broker started".to_owned(),
    ];
    for line in lines {
        println!("{}", log_line(format, "INFO", &line));
    }
}

fn fail(format: LogFormat, error: &StartError) -> ExitCode {
    let advice = error
        .advice()
        .map_or(String::new(), |advice| format!("\n{advice}"));
    let text = format!("{}{advice}", with_causes(error));
    end(format, &text, error.exit_code())
}

/// Ends with a line of `text` each, also where the log is to be read by machines.
fn end(format: LogFormat, text: &str, exit_code: u8) -> ExitCode {
    for line in text.lines() {
        eprintln!("{}", log_line(format, "ERROR", &format!("klamm: {line}")));
    }
    ExitCode::from(exit_code)
}

fn tell(ready: &Ready, from_file: bool, since_start: Duration) {
    if !from_file {
        tracing::info!("no server.properties given (klamm --help)");
    }
    tracing::info!("data is kept in {}", ready.log_dirs.join(", "));
    for (name, address) in &ready.bound {
        tracing::info!("{name} is bound to {address}");
    }
    if let Some(address) = ready.metrics {
        tracing::info!("metrics are served at http://{address}/metrics, health at /health");
    }
    for end_point in &ready.advertised {
        let (name, host, port) = (&end_point.name, &end_point.host, end_point.port);
        let others = match ready.follows && is_loopback(host) {
            true => "; others the address that they reach",
            false => "",
        };
        tracing::info!("clients of {name} are told {host}:{port}{others}");
    }
    tracing::info!(
        node_id = ready.broker_id.0,
        cluster_id = &*ready.cluster_id,
        partitions = ready.partitions,
        "ready after {} ms",
        since_start.as_millis()
    );
}
