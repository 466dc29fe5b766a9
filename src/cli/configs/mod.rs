//! `kafka-configs`: describes and changes the configurations of topics, brokers, groups and client
//! metrics, and the quotas of users, clients and addresses.

mod entities;
mod quotas;

use std::collections::BTreeSet;

use super::admin::{Admin, AdminError, AlterOp, ConfigValue, Resource, ResourceKind};
use super::common::{help_or_version, refuse};
use super::exit::{Done, Exit};
use super::io::Io;
use super::java_order;
use super::options::{HELP, Opt, Options, VERSION, flag, text};
use super::settings::Settings;

use entities::{Entity, EntityKind, entities};

const PURPOSE: &str = "This tool helps to manipulate and describe entity config for a topic, \
                       client, user, broker, ip, client-metrics or group";

pub(super) const OPTIONS: &[Opt] = &[
    text(
        "bootstrap-server",
        "server to connect to",
        "Brokers of the cluster.",
    ),
    text(
        "bootstrap-controller",
        "controller to connect to",
        "Controllers of the cluster.",
    ),
    text(
        "command-config",
        "command config property file",
        "Properties of the admin client.",
    ),
    flag("alter", "Change configurations."),
    flag("describe", "Show configurations."),
    flag(
        "all",
        "Show all configurations, defaults and static ones too.",
    ),
    text(
        "entity-type",
        "",
        "topics, clients, users, brokers, broker-loggers, ips, client-metrics or groups.",
    ),
    text("entity-name", "", "The name of the entity."),
    flag(
        "entity-default",
        "The defaults of all entities of the type.",
    ),
    text(
        "add-config",
        "",
        "What to set: 'k1=v1,k2=[v1,v2,v2],k3=v3'.",
    ),
    text("add-config-file", "", "A properties file of what to set."),
    text("delete-config", "", "What to remove: 'k1,k2'."),
    text("topic", "", "The name of a topic."),
    text("client", "", "The id of a client."),
    flag("client-defaults", "The defaults of all clients."),
    text("user", "", "The name of a user."),
    flag("user-defaults", "The defaults of all users."),
    text("broker", "", "The id of a broker."),
    flag("broker-defaults", "The defaults of all brokers."),
    text("broker-logger", "", "The id of a broker, for its loggers."),
    text("ip", "", "An address."),
    flag("ip-defaults", "The defaults of all addresses."),
    text("group", "", "The id of a group."),
    text(
        "client-metrics",
        "",
        "The name of a client metrics resource.",
    ),
    HELP,
    VERSION,
];

pub async fn run(io: &mut Io, args: &[String]) -> Done {
    let options = Options::parse(OPTIONS, args).map_err(|e| Exit::error(e.to_string()))?;
    help_or_version(&options, OPTIONS, PURPOSE)?;
    if options.has("alter") == options.has("describe") {
        let text = "Command must include exactly one action: --describe, --alter";
        return Err(Exit::usage(text, OPTIONS));
    }
    let entities = check(&options)?;
    let admin = admin(&options)?;
    let command = Command {
        admin: &admin,
        options: &options,
        args,
    };
    match options.has("describe") {
        true => command.describe(io, &entities).await,
        false => command.alter(io, &entities).await,
    }
}

fn check(options: &Options) -> Result<Vec<Entity>, Exit> {
    let entities = entities(options)?;
    let servers = ["bootstrap-server", "bootstrap-controller"];
    match servers.iter().filter(|name| options.has(name)).count() {
        0 => {
            let text = "Either --bootstrap-server or --bootstrap-controller must be specified.";
            return Err(Exit::error(text));
        }
        2 => {
            let text = "Only one of --bootstrap-server or --bootstrap-controller can be specified.";
            return Err(Exit::error(text));
        }
        _ => {}
    }
    refuse(options, OPTIONS, "alter", &["all"])?;
    if options.has("add-config") && options.has("add-config-file") {
        let text = "Only one of --add-config or --add-config-file must be specified.";
        return Err(Exit::error(text));
    }
    if options.has("alter") {
        let changes = ["add-config", "add-config-file", "delete-config"];
        if !changes.iter().any(|name| options.has(name)) {
            let text = "At least one of --add-config, --add-config-file, or --delete-config must \
                        be specified with --alter";
            return Err(Exit::error(text));
        }
        if entities.iter().any(|entity| entity.name.is_none()) {
            let text = "--entity-name or --entity-default must be specified with --alter of \
                        resources";
            return Err(Exit::error(text));
        }
    }
    Ok(entities)
}

fn admin(options: &Options) -> Result<Admin, Exit> {
    let mut settings = Settings::default();
    if let Some(file) = options.one("command-config")? {
        settings.add_file(file)?;
    }
    let servers = options
        .one("bootstrap-server")?
        .or(options.one("bootstrap-controller")?);
    settings.set("bootstrap.servers", servers.unwrap_or_default());
    let mut admin = settings.admin()?;
    admin.is_controller = options.has("bootstrap-controller");
    Ok(admin)
}

struct Command<'a> {
    admin: &'a Admin,
    options: &'a Options,
    args: &'a [String],
}

impl Command<'_> {
    /// What this tool says when a call fails.
    fn failed(&self, error: AdminError) -> Exit {
        Exit::error(format!(
            "Error while executing config command with args '{}'\n\
             java.util.concurrent.ExecutionException: {}",
            self.args.join(" "),
            error.exception()
        ))
    }

    async fn describe(&self, io: &mut Io, entities: &[Entity]) -> Done {
        let Some(first) = entities.first() else {
            return Ok(());
        };
        if first.kind.is_quota() {
            return quotas::describe(io, self.admin, entities)
                .await
                .map_err(|e| self.failed(e));
        }
        let names = match &first.name {
            Some(name) => {
                if !self.exists(first.kind, name).await? {
                    let kind = first.kind.one();
                    io.line(format!(
                        "The {kind} '{name}' doesn't exist and doesn't have dynamic config."
                    ));
                    return Ok(());
                }
                vec![name.clone()]
            }
            None => self.names(first.kind).await?,
        };
        for name in names {
            self.describe_one(io, first.kind, &name).await?;
        }
        Ok(())
    }

    async fn describe_one(&self, io: &mut Io, kind: EntityKind, name: &str) -> Done {
        let all = self.options.has("all");
        let which = if all { "All" } else { "Dynamic" };
        match name {
            "" => io.line(format!(
                "Default configs for {} in the cluster are:",
                kind.many()
            )),
            name => io.line(format!("{which} configs for {} {name} are:", kind.one())),
        }
        let resource = resource(kind, name);
        let values = self.admin.describe_configs(&resource, true).await;
        let mut values = values.map_err(|e| self.failed(e))?;
        values.sort_by(|a, b| a.name.cmp(&b.name));
        let source = dynamic_source(kind, name);
        for value in values.iter().filter(|value| all || value.source == source) {
            io.line(config_line(value));
        }
        Ok(())
    }

    async fn exists(&self, kind: EntityKind, name: &str) -> Result<bool, Exit> {
        match kind {
            EntityKind::Topics => Ok(self.names(kind).await?.iter().any(|known| known == name)),
            EntityKind::Brokers | EntityKind::BrokerLoggers if !name.is_empty() => {
                let known = self.names(kind).await?;
                Ok(known.iter().any(|known| known == name))
            }
            _ => Ok(true),
        }
    }

    async fn names(&self, kind: EntityKind) -> Result<Vec<String>, Exit> {
        let failed = |error| self.failed(error);
        let mut names: Vec<String> = match kind {
            EntityKind::Topics => {
                let topics = self.admin.list_topics().await.map_err(failed)?;
                topics.into_iter().map(|topic| topic.name).collect()
            }
            EntityKind::Brokers | EntityKind::BrokerLoggers => {
                let cluster = self.admin.describe_cluster(false).await.map_err(failed)?;
                let mut ids: Vec<String> = cluster.brokers.keys().map(i32::to_string).collect();
                if kind == EntityKind::Brokers {
                    ids.push(String::new());
                }
                return Ok(ids);
            }
            EntityKind::ClientMetrics => {
                let kind = ResourceKind::ClientMetrics;
                self.admin
                    .list_config_resources(kind)
                    .await
                    .map_err(failed)?
            }
            EntityKind::Groups => {
                let listed = self.admin.list_groups(&[], &[]).await.map_err(failed)?;
                let mut names: BTreeSet<String> = listed.into_iter().map(|g| g.group).collect();
                let kind = ResourceKind::Group;
                names.extend(
                    self.admin
                        .list_config_resources(kind)
                        .await
                        .map_err(failed)?,
                );
                names.into_iter().collect()
            }
            EntityKind::Users | EntityKind::Clients | EntityKind::Ips => Vec::new(),
        };
        java_order::sort_texts(&mut names);
        Ok(names)
    }

    async fn alter(&self, io: &mut Io, entities: &[Entity]) -> Done {
        let sets = self.additions()?;
        let deletes = self.deletions()?;
        let Some(first) = entities.first() else {
            return Ok(());
        };
        if first.kind.is_quota() {
            if sets.iter().any(|(name, _)| name.starts_with("SCRAM-")) {
                let text = "klamm: SCRAM credentials cannot be changed with this command yet";
                return Err(Exit::error(text));
            }
            let altered = quotas::alter(self.admin, entities, &sets, &deletes).await?;
            altered.map_err(|e| self.failed(e))?;
        } else {
            let name = first.name.clone().unwrap_or_default();
            let set = |(name, value): (String, String)| AlterOp::Set { name, value };
            let delete = |name: String| AlterOp::Delete { name };
            let ops = sets
                .into_iter()
                .map(set)
                .chain(deletes.into_iter().map(delete));
            let ops: Vec<AlterOp> = ops.collect();
            let resource = resource(first.kind, &name);
            let altered = self.admin.alter_configs(&resource, &ops).await;
            altered.map_err(|e| self.failed(e))?;
        }
        for entity in entities {
            match entity.name.as_deref() {
                None | Some("") => io.line(format!(
                    "Completed updating default config for {} in the cluster.",
                    entity.kind.many()
                )),
                Some(name) => {
                    io.line(format!(
                        "Completed updating config for {} {name}.",
                        entity.kind.one()
                    ));
                }
            }
        }
        Ok(())
    }

    fn additions(&self) -> Result<Vec<(String, String)>, Exit> {
        let mut additions = Vec::new();
        if let Some(path) = self.options.one("add-config-file")? {
            additions.extend(Settings::read_file(path)?.into_pairs());
        }
        for item in split_list(self.options.one("add-config")?.unwrap_or_default()) {
            let Some((name, value)) = item.split_once('=') else {
                return Err(Exit::error(
                    "Invalid entity config: all configs to be added must be in the format \
                     \"key=val\" or  \"key=[val1,val2]\" to group values which contain commas.",
                ));
            };
            let value = value.trim();
            let bare = value.strip_prefix('[').and_then(|v| v.strip_suffix(']'));
            additions.push((name.trim().to_owned(), bare.unwrap_or(value).to_owned()));
        }
        Ok(additions)
    }

    fn deletions(&self) -> Result<Vec<String>, Exit> {
        let lists = self.options.all("delete-config");
        let items = lists.iter().flat_map(|list| list.split(','));
        Ok(items
            .map(|i| i.trim().to_owned())
            .filter(|i| !i.is_empty())
            .collect())
    }
}

/// Cuts at commas that are not in square brackets.
fn split_list(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut start, mut depth) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth <= 0 => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&text[start..]);
    items.retain(|item| !item.trim().is_empty());
    items
}

fn resource(kind: EntityKind, name: &str) -> Resource {
    let kind = match kind {
        EntityKind::Brokers => ResourceKind::Broker,
        EntityKind::BrokerLoggers => ResourceKind::BrokerLogger,
        EntityKind::ClientMetrics => ResourceKind::ClientMetrics,
        EntityKind::Groups => ResourceKind::Group,
        _ => ResourceKind::Topic,
    };
    let name = name.to_owned();
    Resource { kind, name }
}

/// The source of what was set on the entity itself.
fn dynamic_source(kind: EntityKind, name: &str) -> i8 {
    match kind {
        EntityKind::Brokers if name.is_empty() => 3,
        EntityKind::Brokers => 2,
        EntityKind::BrokerLoggers => 6,
        EntityKind::ClientMetrics => 7,
        EntityKind::Groups => 8,
        _ => 1,
    }
}

fn config_line(config: &ConfigValue) -> String {
    let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "null".to_owned());
    let synonyms: Vec<String> = config
        .synonyms
        .iter()
        .map(|(name, value, source)| {
            let source = super::admin::source_name(*source);
            format!("{source}:{name}={}", show(value))
        })
        .collect();
    format!(
        "  {}={} sensitive={} synonyms={{{}}}",
        config.name,
        show(&config.value),
        config.is_sensitive,
        synonyms.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::split_list;

    #[test]
    fn brackets_group_values() {
        assert_eq!(split_list("a=1,b=[x,y],c="), ["a=1", "b=[x,y]", "c="]);
        assert!(split_list("").is_empty());
    }
}
