//! Which entity is meant: `--entity-type` and `--entity-name` in pairs, or the short forms
//! (`--topic`, `--broker-defaults`, ...).

use crate::cli::exit::Exit;
use crate::cli::options::Options;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntityKind {
    Topics,
    Clients,
    Users,
    Brokers,
    BrokerLoggers,
    Ips,
    ClientMetrics,
    Groups,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    pub kind: EntityKind,
    /// `Some("")`: the defaults; `None`: all.
    pub name: Option<String>,
}

impl EntityKind {
    /// Kind, its name, and its short forms: one entity, the defaults.
    const ALL: [(EntityKind, &'static str, &'static str, &'static str); 8] = [
        (
            EntityKind::BrokerLoggers,
            "broker-loggers",
            "broker-logger",
            "",
        ),
        (EntityKind::Topics, "topics", "topic", ""),
        (EntityKind::Clients, "clients", "client", "client-defaults"),
        (EntityKind::Users, "users", "user", "user-defaults"),
        (EntityKind::Brokers, "brokers", "broker", "broker-defaults"),
        (EntityKind::Ips, "ips", "ip", "ip-defaults"),
        (
            EntityKind::ClientMetrics,
            "client-metrics",
            "client-metrics",
            "",
        ),
        (EntityKind::Groups, "groups", "group", ""),
    ];

    pub fn many(self) -> &'static str {
        let row = EntityKind::ALL.iter().find(|(kind, ..)| *kind == self);
        row.map_or("", |(_, many, ..)| many)
    }

    /// Kafka drops the last letter, so that it is `client-metric`.
    pub fn one(self) -> &'static str {
        let many = self.many();
        &many[..many.len() - 1]
    }

    pub fn is_quota(self) -> bool {
        matches!(
            self,
            EntityKind::Users | EntityKind::Clients | EntityKind::Ips
        )
    }
}

pub fn entities(options: &Options) -> Result<Vec<Entity>, Exit> {
    let mut entities = Vec::new();
    let types = options.all("entity-type");
    let mut names = options.all("entity-name").into_iter();
    let defaults = options.has("entity-default");
    for text in types {
        let known = EntityKind::ALL.iter().find(|(_, many, ..)| *many == text);
        let Some((kind, ..)) = known else {
            let all: Vec<&str> = EntityKind::ALL.iter().map(|(_, many, ..)| *many).collect();
            return Err(Exit::error(format!(
                "Invalid entity type {text}, the entity type must be one of {} with a \
                 --bootstrap-server or --bootstrap-controller argument",
                all.join(", ")
            )));
        };
        let default = defaults.then(String::new);
        let name = names.next().map(str::to_owned).or(default);
        entities.push(Entity { kind: *kind, name });
    }
    for (kind, _, one, default) in EntityKind::ALL {
        if options.has(one) {
            let name = options.one(one)?.map(str::to_owned);
            entities.push(Entity { kind, name });
        } else if !default.is_empty() && options.has(default) {
            let name = Some(String::new());
            entities.push(Entity { kind, name });
        }
    }
    if entities.is_empty() {
        return Err(Exit::error("At least one entity type must be specified"));
    }
    let is_pair = |a: EntityKind, b: EntityKind| {
        entities.iter().any(|e| e.kind == a) && entities.iter().any(|e| e.kind == b)
    };
    if entities.len() > 1 && !is_pair(EntityKind::Users, EntityKind::Clients) {
        return Err(Exit::error(
            "Only 'users' and 'clients' entity types may be specified together",
        ));
    }
    for entity in &entities {
        let is_broker = matches!(entity.kind, EntityKind::Brokers | EntityKind::BrokerLoggers);
        if let Some(name) = entity
            .name
            .as_deref()
            .filter(|n| is_broker && !n.is_empty())
            && name.parse::<i32>().is_err()
        {
            return Err(Exit::error(format!(
                "The entity name for {} must be a valid integer broker id, but it is: {name}",
                entity.kind.many()
            )));
        }
    }
    Ok(entities)
}
