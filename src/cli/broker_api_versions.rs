//! `kafka-broker-api-versions`: what every broker serves.

use super::admin::Admin;
use super::api_listing::listing;
use super::common::{parse, require};
use super::exit::{Done, Exit};
use super::io::Io;
use super::options::{HELP, Opt, VERSION, text};
use super::settings::Settings;
use crate::peer::PeerError;

const PURPOSE: &str = "This tool helps to retrieve broker version information.";

const OPTIONS: &[Opt] = &[
    text(
        "bootstrap-server",
        "server(s) to use for bootstrapping",
        "REQUIRED: A broker.",
    ),
    text(
        "command-config",
        "command config property file",
        "Properties of the admin client.",
    ),
    HELP,
    VERSION,
];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    if args.is_empty() {
        return Err(Exit::usage(PURPOSE, OPTIONS));
    }
    let options = parse(OPTIONS, args, PURPOSE)?;
    require(&options, OPTIONS, &["bootstrap-server"])?;
    let mut settings = Settings::default();
    if let Some(file) = options.one("command-config")? {
        settings.add_file(file)?;
    }
    settings.set(
        "bootstrap.servers",
        options.one("bootstrap-server")?.unwrap_or_default(),
    );
    let admin = settings.admin()?;
    print_all(io, &admin).await
}

/// One listing per broker. Unlike other commands this one does not wait for a broker to come.
pub async fn print_all(io: &mut Io, admin: &Admin) -> Done {
    let unreachable = |error: PeerError| {
        let servers = &admin.client.config().bootstrap;
        let nodes: Vec<String> = (1..)
            .zip(servers)
            .map(|(i, address)| format!("{address} (id: -{i} rack: null isFenced: false)"))
            .collect();
        let text = format!("Request METADATA failed on brokers [{}]", nodes.join(", "));
        let _ = error;
        Exit::error(format!("{text}\njava.lang.RuntimeException: {text}\n"))
    };
    admin.client.any().await.map_err(unreachable)?;
    let cluster = admin
        .client
        .metadata(Some(&[]))
        .await
        .map_err(unreachable)?;
    for broker in cluster.brokers.values() {
        match admin.client.broker(broker.id).await {
            Ok(connection) => io.line(listing(broker, connection.versions())),
            Err(error) => io.line(format!("{broker} -> ERROR: {error}")),
        }
    }
    Ok(())
}
