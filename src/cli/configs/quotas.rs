//! Quotas of users, clients and addresses, and the SCRAM credentials of users (shown only).

use kafka_protocol::messages::alter_client_quotas_request::{EntityData, EntryData, OpData};
use kafka_protocol::messages::describe_client_quotas_request::ComponentData;
use kafka_protocol::messages::describe_user_scram_credentials_request::UserName;
use kafka_protocol::messages::{
    AlterClientQuotasRequest, DescribeClientQuotasRequest, DescribeUserScramCredentialsRequest,
};

use crate::cli::admin::{Admin, Answer, check, text};
use crate::cli::exit::Exit;
use crate::cli::io::Io;
use crate::types::ErrorCode;

use super::entities::{Entity, EntityKind};

const EXACT: i8 = 0;
const DEFAULT: i8 = 1;
const ANY: i8 = 2;

fn entity_type(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Users => "user",
        EntityKind::Clients => "client-id",
        _ => "ip",
    }
}

pub async fn describe(io: &mut Io, admin: &Admin, entities: &[Entity]) -> Answer<()> {
    let component = |entity: &Entity| {
        let row = ComponentData::default().with_entity_type(text(entity_type(entity.kind)));
        match entity.name.as_deref() {
            None => row.with_match_type(ANY).with_match(None),
            Some("") => row.with_match_type(DEFAULT).with_match(None),
            Some(name) => row.with_match_type(EXACT).with_match(Some(text(name))),
        }
    };
    let request = DescribeClientQuotasRequest::default()
        .with_components(entities.iter().map(component).collect())
        .with_strict(true);
    let answer = admin.any("describeClientQuotas", &request).await?;
    check(answer.error_code, answer.error_message.as_ref())?;
    for entry in answer.entries.iter().flatten() {
        let of = |kind: &str| entry.entity.iter().find(|e| e.entity_type.as_str() == kind);
        let shown = |kind: &str, label: &str| {
            of(kind).map(|entity| match &entity.entity_name {
                Some(name) => format!("{label} '{}'", name.as_str()),
                None => format!("the default {label}"),
            })
        };
        let parts = [
            shown("user", "user-principal"),
            shown("client-id", "client-id"),
            shown("ip", "ip"),
        ];
        let who: Vec<String> = parts.into_iter().flatten().collect();
        let values = entry.values.iter();
        let values: Vec<String> = values
            .map(|v| format!("{}={:?}", v.key.as_str(), v.value))
            .collect();
        io.line(format!(
            "Quota configs for {} are {}",
            who.join(", "),
            values.join(", ")
        ));
    }
    match entities {
        [entity] if entity.kind == EntityKind::Users && entity.name.as_deref() != Some("") => {
            describe_scram(io, admin, entity.name.as_deref()).await
        }
        _ => Ok(()),
    }
}

async fn describe_scram(io: &mut Io, admin: &Admin, user: Option<&str>) -> Answer<()> {
    let users = user.map(|name| vec![UserName::default().with_name(text(name))]);
    let request = DescribeUserScramCredentialsRequest::default().with_users(users);
    let answer = admin.any("describeUserScramCredentials", &request).await?;
    check(answer.error_code, answer.error_message.as_ref())?;
    for result in &answer.results {
        if result.error_code == ErrorCode::ResourceNotFound.code() {
            continue;
        }
        check(result.error_code, result.error_message.as_ref())?;
        let infos = result.credential_infos.iter().map(|info| {
            let mechanism = match info.mechanism {
                1 => "SCRAM-SHA-256",
                2 => "SCRAM-SHA-512",
                _ => "UNKNOWN",
            };
            format!("{mechanism}=iterations={}", info.iterations)
        });
        let infos: Vec<String> = infos.collect();
        io.line(format!(
            "SCRAM credential configs for user-principal '{}' are {}",
            result.user.as_str(),
            infos.join(", ")
        ));
    }
    Ok(())
}

/// `Err`: a value that is no number. Inside: what the broker says.
pub async fn alter(
    admin: &Admin,
    entities: &[Entity],
    sets: &[(String, String)],
    deletes: &[String],
) -> Result<Answer<()>, Exit> {
    let mut ops = Vec::new();
    for (name, value) in sets {
        let number: f64 = value.parse().map_err(|_| {
            let text = format!("Cannot parse quota configuration value for {name}: {value}");
            Exit::error(format!("java.lang.IllegalArgumentException: {text}"))
        })?;
        ops.push(OpData::default().with_key(text(name)).with_value(number));
    }
    ops.extend(
        deletes
            .iter()
            .map(|name| OpData::default().with_key(text(name)).with_remove(true)),
    );
    let entity = |entity: &Entity| {
        let name = entity.name.as_deref().filter(|name| !name.is_empty());
        EntityData::default()
            .with_entity_type(text(entity_type(entity.kind)))
            .with_entity_name(name.map(text))
    };
    let entry = EntryData::default()
        .with_entity(entities.iter().map(entity).collect())
        .with_ops(ops);
    let request = AlterClientQuotasRequest::default().with_entries(vec![entry]);
    let answer = match admin.any("alterClientQuotas", &request).await {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(error)),
    };
    let mut entries = answer.entries.iter();
    let failed = entries.find_map(|e| check(e.error_code, e.error_message.as_ref()).err());
    Ok(failed.map_or(Ok(()), Err))
}
