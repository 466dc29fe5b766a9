//! What DescribeConfigs, AlterConfigs and IncrementalAlterConfigs share: which resource a request
//! means, and the broker's loggers.

use std::collections::HashMap;

use kafka_protocol::protocol::StrBytes;

use crate::config::{
    AlterOp, Alteration, Changes, ConfigSource, ConfigType, Described, Effect, NodeConfig,
    Overrides, Rejection, ResourceType, check_broker_name, find_row,
};
use crate::host::log_levels;
use crate::metadata::planners::{check_topic_name, config_change_records};
use crate::metadata::{
    ConfigResource, ConfigResourceType, MetadataImage, MetadataRecord, Plan, PlanError,
};
use crate::partition::overrides_of;
use crate::quorum::QuorumError;
use crate::types::{BrokerId, ErrorCode};

use super::context::{ConnectionKind, Context};
use super::{Node, view};

pub fn refused(error: PlanError) -> Rejection {
    Rejection {
        code: error.code,
        message: error.message.map(|message| message.to_string()),
    }
}

/// What became of each resource, as the answer has it: AlterConfigs and IncrementalAlterConfigs
/// have types of their own for it, with the same fields.
macro_rules! altered {
    ($resources:expr, $results:expr, $response:ident) => {{
        let each = $resources.into_iter().zip($results);
        let response = each.map(|(resource, result)| {
            let (error_code, error_message) = $crate::api::config_resource::outcome(result);
            $response::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name)
                .with_error_code(error_code)
                .with_error_message(error_message)
        });
        response.collect()
    }};
}

pub(super) use altered;

/// The error code and message with which a change is answered.
pub fn outcome(result: Result<(), Rejection>) -> (i16, Option<StrBytes>) {
    match result {
        Ok(()) => (ErrorCode::None.code(), None),
        Err(rejection) => {
            let message = rejection.message.as_deref().map(view::text);
            (rejection.code.code(), message)
        }
    }
}

pub fn unknown_type(code: i8) -> Rejection {
    let message = format!("Unknown resource type {code}");
    Rejection {
        code: ErrorCode::InvalidRequest,
        message: Some(message),
    }
}

/// A change that a request asks of one resource, on its way to the controller.
#[derive(Debug, Clone)]
pub enum Change {
    Incremental(Vec<Alteration>),
    /// Legacy AlterConfigs: everything that is set from now on.
    Replace(Vec<(String, Option<String>)>),
}

/// One resource of an alter request.
#[derive(Debug, Clone)]
pub struct AlterResource {
    pub resource_type: i8,
    pub name: String,
    pub change: Change,
}

/// Alters each resource by itself: one that is refused does not keep the others from changing.
/// Results come in the order of `resources`.
pub async fn alter(
    context: &Context,
    resources: Vec<AlterResource>,
    validate_only: bool,
) -> Vec<Result<(), Rejection>> {
    let mut results = Vec::with_capacity(resources.len());
    let mut times: HashMap<(i8, &str), usize> = HashMap::new();
    for resource in &resources {
        let key = (resource.resource_type, resource.name.as_str());
        *times.entry(key).or_default() += 1;
    }
    for resource in &resources {
        let result = if times[&(resource.resource_type, resource.name.as_str())] > 1 {
            let message = "Each resource must appear at most once.".to_owned();
            Err(Rejection {
                code: ErrorCode::InvalidRequest,
                message: Some(message),
            })
        } else {
            alter_one(context, resource.clone(), validate_only).await
        };
        results.push(result);
    }
    results
}

async fn alter_one(
    context: &Context,
    resource: AlterResource,
    validate_only: bool,
) -> Result<(), Rejection> {
    let node = &context.node;
    let of_controller = context.connection.kind == ConnectionKind::Controller;
    let resource_type = match ResourceType::from_code(resource.resource_type) {
        Some(known) => known,
        None if of_controller => return unknown_to_controller(node, resource.resource_type).await,
        None => return Err(unknown_type(resource.resource_type)),
    };
    if resource_type == ResourceType::BrokerLogger {
        return alter_loggers(node, &resource, validate_only);
    }
    if resource_type == ResourceType::Broker && !of_controller {
        // A request that another broker has passed on is about that broker.
        let id = resource.name.parse().ok().map(BrokerId);
        let known = id.is_some_and(|id| node.image().broker(id).is_some());
        if !(known && node.quorum.has_other_nodes()) {
            check_broker_name(&resource.name, node.broker_id.0)?;
        }
    }
    let config = node.config();
    let without_effect = without_effect(resource_type, &resource.change);
    let submitted =
        node.submit(
            move |image| match plan(&config, image, resource_type, &resource) {
                Ok(_) if validate_only => Plan::answer(Ok(())),
                Ok(records) => Plan {
                    records,
                    answer: Ok(()),
                },
                Err(rejection) => Plan::answer(Err(rejection)),
            },
        );
    let result = submitted
        .await
        .unwrap_or_else(|error| Err(not_planned(&error)));
    if result.is_ok() && !validate_only {
        for (name, reason) in without_effect {
            tracing::warn!("{name} was set and has no effect: {reason}");
        }
    }
    result
}

fn not_planned(error: &QuorumError) -> Rejection {
    Rejection {
        code: super::error::of_quorum(error),
        message: Some(error.to_string()),
    }
}

/// Only the active controller says so.
async fn unknown_to_controller(node: &Node, code: i8) -> Result<(), Rejection> {
    let leads = node.submit(|_| Plan::answer(())).await;
    leads.map_err(|error| not_planned(&error))?;
    Err(Rejection {
        code: ErrorCode::UnsupportedVersion,
        message: Some(format!("Unknown resource type {code}.")),
    })
}

/// The names that a change sets, whose values Klamm keeps and does nothing with, and why.
fn without_effect(resource_type: ResourceType, change: &Change) -> Vec<(String, &'static str)> {
    let names: Vec<&String> = match change {
        Change::Incremental(alterations) => alterations
            .iter()
            .filter(|alteration| alteration.op != AlterOp::Delete as i8)
            .map(|alteration| &alteration.name)
            .collect(),
        Change::Replace(values) => values.iter().map(|(name, _)| name).collect(),
    };
    let reason = |name: &String| match find_row(resource_type, name)?.effect {
        Effect::NoEffect(reason) => Some((name.clone(), reason)),
        Effect::Applied | Effect::Refused(_) => None,
    };
    names.into_iter().filter_map(reason).collect()
}

fn plan(
    config: &NodeConfig,
    image: &MetadataImage,
    resource_type: ResourceType,
    resource: &AlterResource,
) -> Result<Vec<MetadataRecord>, Rejection> {
    let stored_type = ConfigResourceType::try_from(resource_type.code())
        .map_err(|_| unknown_type(resource_type.code()))?;
    let stored = ConfigResource {
        resource_type: stored_type,
        resource_name: resource.name.as_str().into(),
    };
    let current: Overrides = overrides_of(image, &stored);
    let elr = image.feature_level("eligible.leader.replicas.version") > 0;
    let changes: Changes = match &resource.change {
        Change::Incremental(alterations) => {
            config.alter(resource_type, &resource.name, &current, alterations, elr)?
        }
        Change::Replace(values) => {
            config.replace(resource_type, &resource.name, &current, values, elr)?
        }
    };
    check_exists(image, resource_type, &resource.name)?;
    let changes = changes
        .into_iter()
        .map(|(name, value)| (name.into(), value.map(Into::into)));
    Ok(config_change_records(image, &stored, changes))
}

/// What is to be set is looked at before whether there is something to set it of.
fn check_exists(
    image: &MetadataImage,
    resource_type: ResourceType,
    name: &str,
) -> Result<(), Rejection> {
    let reject = |code, message: String| {
        Err(Rejection {
            code,
            message: Some(message),
        })
    };
    match resource_type {
        _ if name.is_empty() => Ok(()),
        ResourceType::Topic => {
            check_topic_name(name).map_err(refused)?;
            if image.topic(name).is_none() {
                let message = format!("The topic '{name}' does not exist.");
                return reject(ErrorCode::UnknownTopicOrPartition, message);
            }
            Ok(())
        }
        ResourceType::Broker => match name.parse().map(BrokerId) {
            Ok(id) if image.broker(id).is_some() => Ok(()),
            Ok(id) => reject(
                ErrorCode::BrokerIdNotRegistered,
                format!("No node with id {id} found."),
            ),
            Err(_) => {
                let message = "Unable to parse broker name as a base 10 number.";
                reject(ErrorCode::InvalidRequest, message.to_owned())
            }
        },
        _ => Ok(()),
    }
}

/// Loggers belong to one broker, by its id.
pub fn check_logger_resource(name: &str, broker_id: BrokerId) -> Result<(), Rejection> {
    if name.is_empty() {
        let message = "Broker id must not be empty".to_owned();
        return Err(Rejection {
            code: ErrorCode::InvalidRequest,
            message: Some(message),
        });
    }
    check_broker_name(name, broker_id.0)
}

/// Whether a resource may be a group's.
pub fn check_group_name(name: &str) -> Result<(), Rejection> {
    if name.is_empty() {
        return Err(Rejection {
            code: ErrorCode::InvalidRequest,
            message: Some("Group name must not be empty".to_owned()),
        });
    }
    Ok(())
}

/// The loggers and their levels, as configurations.
pub fn describe_loggers(keys: Option<&[String]>) -> Vec<Described> {
    let wanted = |name: &str| keys.is_none_or(|keys| keys.iter().any(|key| key == name));
    let loggers = log_levels::all()
        .into_iter()
        .filter(|(name, _)| wanted(name));
    let described = loggers.map(|(name, level)| Described {
        name: name.to_owned(),
        value: Some(level.to_owned()),
        source: ConfigSource::BrokerLogger,
        read_only: false,
        sensitive: false,
        synonyms: Vec::new(),
        config_type: ConfigType::UNKNOWN_CODE,
        documentation: Some(""),
    });
    described.collect()
}

fn alter_loggers(
    node: &Node,
    resource: &AlterResource,
    validate_only: bool,
) -> Result<(), Rejection> {
    check_logger_resource(&resource.name, node.broker_id)?;
    let reject = |code, message: String| {
        Err(Rejection {
            code,
            message: Some(message),
        })
    };
    let Change::Incremental(alterations) = &resource.change else {
        let message = "Broker loggers are altered with IncrementalAlterConfigs.".to_owned();
        return reject(ErrorCode::InvalidRequest, message);
    };
    let mut levels = Vec::with_capacity(alterations.len());
    for alteration in alterations {
        let name = &alteration.name;
        if !log_levels::is_logger(name) {
            return reject(
                ErrorCode::InvalidConfig,
                format!("Logger {name} does not exist!"),
            );
        }
        let level = alteration.value.as_deref().and_then(log_levels::level);
        match alteration.op {
            op if op == AlterOp::Set as i8 && level.is_some() => levels.push((name, level)),
            op if op == AlterOp::Set as i8 => {
                let value = alteration.value.as_deref().unwrap_or("null");
                let message = format!("{value} is not a level of logger {name}.");
                return reject(ErrorCode::InvalidConfig, message);
            }
            op if op == AlterOp::Delete as i8 && name == log_levels::ROOT => {
                let message = "Removing the log level of the root logger is not allowed".into();
                return reject(ErrorCode::InvalidRequest, message);
            }
            op if op == AlterOp::Delete as i8 => levels.push((name, None)),
            op => {
                let message = format!("Operation {op} is not allowed for a logger.");
                return reject(ErrorCode::InvalidRequest, message);
            }
        }
    }
    if !validate_only {
        for (name, level) in levels {
            log_levels::set(name, level);
        }
    }
    Ok(())
}
