//! `kafka-cluster`: the cluster's id, its endpoints, what they serve, and removing a registration.

use kafka_protocol::messages::{BrokerId, UnregisterBrokerRequest};

use super::admin::{Admin, AdminError, check};
use super::argparse::{Argument, Command, Given, Parsed, option, switch};
use super::connect::admin;
use super::exit::{Done, Exit};
use super::io::Io;

const SERVER: Argument = option(
    &["--bootstrap-server", "-b"],
    "BOOTSTRAP_SERVER",
    "Brokers, HOST1:PORT1,HOST2:PORT2.",
);
const CONTROLLER: Argument = option(
    &["--bootstrap-controller", "-C"],
    "BOOTSTRAP_CONTROLLER",
    "Controllers.",
);
const OLD_CONFIG: Argument = option(
    &["--config"],
    "CONFIG",
    "(DEPRECATED) The same as --command-config.",
);
const CONFIG: Argument = option(
    &["--command-config", "-c"],
    "COMMAND_CONFIG",
    "Properties of the admin client.",
);
const ONE_ADDRESS: &[(&[&str], bool)] = &[
    (&["--bootstrap-server", "--bootstrap-controller"], true),
    (&["--config", "--command-config"], false),
];

const fn command(
    name: &'static str,
    help: &'static str,
    arguments: &'static [Argument],
) -> Command {
    Command {
        name,
        help,
        arguments,
        exclusive: ONE_ADDRESS,
        commands: &[],
    }
}

const TOOL: Command = Command {
    name: "kafka-cluster",
    help: "The Kafka cluster tool.",
    arguments: &[],
    exclusive: &[],
    commands: &[
        command(
            "cluster-id",
            "Print the id of the cluster.",
            &[SERVER, CONTROLLER, OLD_CONFIG, CONFIG],
        ),
        command(
            "unregister",
            "Remove the registration of a broker.",
            &[
                SERVER,
                CONTROLLER,
                OLD_CONFIG,
                CONFIG,
                option(&["--id", "-i"], "ID", "The broker.").required(),
            ],
        ),
        command(
            "unregister-controller",
            "Remove the registration of a controller.",
            &[
                SERVER,
                CONTROLLER,
                OLD_CONFIG,
                CONFIG,
                option(&["--id", "-i"], "ID", "The controller.").required(),
            ],
        ),
        command(
            "list-endpoints",
            "List brokers or controllers and where they listen.",
            &[
                SERVER,
                CONTROLLER,
                OLD_CONFIG,
                CONFIG,
                switch(
                    &["--include-fenced-brokers"],
                    "Show fenced brokers as well.",
                ),
            ],
        ),
        command(
            "api-versions",
            "Print the versions of APIs that brokers or controllers serve.",
            &[SERVER, CONTROLLER, OLD_CONFIG, CONFIG],
        ),
    ],
};

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let given = match TOOL.parse(args) {
        Parsed::Given(given) => given,
        // This tool ends with 1 even after its help.
        Parsed::Help(text) => return Err(Exit::output(text)),
        Parsed::Wrong { usage, message } => return Err(Exit::error(format!("{usage}{message}"))),
    };
    let admin = admin(&given)?;
    match given.command {
        Some("cluster-id") => cluster_id(io, &admin).await,
        Some("list-endpoints") => list_endpoints(io, &admin, &given).await,
        Some("api-versions") => super::broker_api_versions::print_all(io, &admin).await,
        Some("unregister") => unregister(io, &admin, &given).await,
        _ => Err(Exit::error(
            "klamm: unregister-controller is not supported yet: no codec for its request",
        )),
    }
}

/// An exception that the call was waiting for, as this tool prints it.
fn failed(error: AdminError) -> Exit {
    let text = error.exception();
    Exit::error(format!(
        "{text}\njava.util.concurrent.ExecutionException: {text}\n"
    ))
}

async fn cluster_id(io: &mut Io, admin: &Admin) -> Done {
    let cluster = admin.describe_cluster(false).await.map_err(failed)?;
    match cluster.cluster_id.as_str() {
        "" => io.line("No cluster ID found. The Kafka version is probably too old."),
        id => io.line(format!("Cluster ID: {id}")),
    }
    Ok(())
}

async fn unregister(io: &mut Io, admin: &Admin, given: &Given) -> Done {
    let text = given.one("--id").unwrap_or_default();
    let id: i32 = text.parse().map_err(|_| {
        let message = format!("argument --id/-i: could not convert '{text}' to Integer");
        Exit::error(format!("kafka-cluster: error: {message}"))
    })?;
    let request = UnregisterBrokerRequest::default().with_broker_id(BrokerId(id));
    let answer = admin
        .any("unregisterBroker", &request)
        .await
        .map_err(failed)?;
    check(answer.error_code, answer.error_message.as_ref()).map_err(failed)?;
    io.line(format!("Broker {id} is no longer registered."));
    Ok(())
}

async fn list_endpoints(io: &mut Io, admin: &Admin, given: &Given) -> Done {
    let is_controller = given.has("--bootstrap-controller");
    let include_fenced = given.has("--include-fenced-brokers");
    if is_controller && include_fenced {
        let text = "The option --include-fenced-brokers is only supported with --bootstrap-server \
                    option";
        return Err(Exit::error(text));
    }
    let described = admin.describe_cluster(include_fenced).await;
    let described = described.map_err(failed)?;
    let hosts = described
        .brokers
        .values()
        .map(|(b, _)| b.address.host.chars().count());
    let host = hosts.max().unwrap_or(0).max(4);
    let rack = described
        .brokers
        .values()
        .filter_map(|(b, _)| b.rack.as_ref())
        .map(|r| r.len());
    let rack = rack.max().unwrap_or(0).max(10);
    if is_controller {
        io.line(format!(
            "{:10} {:host$} {:10} {:rack$} {:15}",
            "ID", "HOST", "PORT", "RACK", "ENDPOINT_TYPE"
        ));
    } else {
        io.line(format!(
            "{:10} {:host$} {:10} {:rack$} {:10} {:15}",
            "ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"
        ));
    }
    for (broker, is_fenced) in described.brokers.values() {
        let (id, address) = (broker.id, &broker.address);
        let named = broker.rack.as_deref().unwrap_or("null");
        let (h, port) = (&address.host, address.port);
        let start = format!("{id:<10} {h:host$} {port:<10} {named:rack$}");
        match is_controller {
            true => io.line(format!("{start} {:15}", "controller")),
            false => {
                let state = if *is_fenced { "fenced" } else { "unfenced" };
                io.line(format!("{start} {state:10} {:15}", "broker"));
            }
        }
    }
    Ok(())
}
