//! DescribeConfigs (key 32): every configuration of a resource, where it comes from, what it means.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::describe_configs_request::{
    DescribeConfigsRequest, DescribeConfigsResource,
};
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult,
    DescribeConfigsSynonym,
};
use kafka_protocol::protocol::StrBytes;

use super::answer::CloseReason;
use super::codec::{AnswerHeader, Handled, Outcome, put_varint};
use super::context::Context;
use super::{config_resource, view};
use crate::config::{ConfigSource, Describe, Described, Rejection, ResourceType};
use crate::metadata::planners::check_topic_name;
use crate::metadata::{ConfigResource, ConfigResourceType};
use crate::partition::overrides_of;
use crate::types::{BrokerId, ErrorCode};

/// What the results may take. What comes after that is refused, each resource by itself.
const RESULTS_BYTES_MAX: usize = 64 << 20;
/// Results up to this size are copied for each time they are answered, larger ones are shared.
const COPIED_BYTES_MAX: usize = 512;
const VERSION_FLEXIBLE: i16 = 4;

pub fn handle(
    context: Context,
    request: DescribeConfigsRequest,
) -> Handled<DescribeConfigsResponse> {
    let header = AnswerHeader::of(&context);
    Handled::Done(match results(&context, &header, &request) {
        Ok(results) => match header.frame_of(context.api_version >= VERSION_FLEXIBLE, results) {
            Ok(frame) => Outcome::Frame(frame),
            Err(reason) => Outcome::Close(reason),
        },
        Err(reason) => Outcome::Close(reason),
    })
}

/// The body of the answer. A resource is described once, however often the request names it.
fn results(
    context: &Context,
    header: &AnswerHeader,
    request: &DescribeConfigsRequest,
) -> Result<Vec<Bytes>, CloseReason> {
    let flexible = context.api_version >= VERSION_FLEXIBLE;
    let counts = context.node.requests.of(context.api);
    let mut results = Results::begin(flexible, request.resources.len());
    let mut known: HashMap<(i8, &str, Option<&[StrBytes]>), Bytes> = HashMap::new();
    for resource in &request.resources {
        if results.bytes > RESULTS_BYTES_MAX {
            let result = too_much(resource);
            counts.error(result.error_code);
            results.push(&header.element(&result)?);
            continue;
        }
        let key = (
            resource.resource_type,
            resource.resource_name.as_str(),
            resource.configuration_keys.as_deref(),
        );
        let encoded = match known.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let result = result(context, request, resource);
                // The answer is in several pieces, so nobody looks for its errors.
                counts.error(result.error_code);
                new.insert(header.element(&result)?)
            }
        };
        results.push(encoded);
    }
    Ok(results.end(flexible))
}

/// The results one after the other, the large ones shared.
struct Results {
    parts: Vec<Bytes>,
    open: BytesMut,
    bytes: usize,
}

impl Results {
    fn begin(flexible: bool, count: usize) -> Results {
        let mut open = BytesMut::new();
        open.put_i32(0); // throttle_time_ms
        if flexible {
            put_varint(&mut open, count as u32 + 1);
        } else {
            open.put_i32(count as i32);
        }
        Results {
            parts: Vec::new(),
            open,
            bytes: 0,
        }
    }

    fn push(&mut self, result: &Bytes) {
        self.bytes += result.len();
        if result.len() <= COPIED_BYTES_MAX {
            self.open.put_slice(result);
            return;
        }
        self.parts.push(self.open.split().freeze());
        self.parts.push(result.clone());
    }

    fn end(mut self, flexible: bool) -> Vec<Bytes> {
        if flexible {
            self.open.put_u8(0); // no tagged fields
        }
        self.parts.push(self.open.freeze());
        self.parts
    }
}

fn too_much(resource: &DescribeConfigsResource) -> DescribeConfigsResult {
    let message = "The answer has no room for this resource: ask for fewer at a time.";
    DescribeConfigsResult::default()
        .with_error_code(ErrorCode::InvalidRequest.code())
        .with_error_message(Some(StrBytes::from_static_str(message)))
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone())
}

fn result(
    context: &Context,
    request: &DescribeConfigsRequest,
    resource: &DescribeConfigsResource,
) -> DescribeConfigsResult {
    let result = DescribeConfigsResult::default()
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone());
    match describe(context, resource) {
        Ok(described) => {
            let configs = described.into_iter().map(|config| {
                answer(
                    config,
                    request.include_synonyms,
                    request.include_documentation,
                )
            });
            // Kafka answers an empty message, not null, when all is well.
            result
                .with_error_message(Some(view::text("")))
                .with_configs(configs.collect())
        }
        Err(rejection) => result
            .with_error_code(rejection.code.code())
            .with_error_message(rejection.message.as_deref().map(view::text)),
    }
}

fn describe(
    context: &Context,
    resource: &DescribeConfigsResource,
) -> Result<Vec<Described>, Rejection> {
    let node = &context.node;
    let config = node.config();
    let image = node.image();
    let name = resource.resource_name.as_str();
    // An empty list asks for all, like none at all.
    let keys = resource
        .configuration_keys
        .as_ref()
        .filter(|keys| !keys.is_empty());
    let keys: Option<Vec<String>> = keys.map(|keys| keys.iter().map(ToString::to_string).collect());
    let keys = keys.as_deref();
    let set = |resource_type: ConfigResourceType| {
        let resource_name = name.into();
        overrides_of(
            &image,
            &ConfigResource {
                resource_type,
                resource_name,
            },
        )
    };
    let resource_type = ResourceType::from_code(resource.resource_type)
        .ok_or_else(|| config_resource::unknown_type(resource.resource_type))?;
    match resource_type {
        ResourceType::Topic => {
            check_topic_name(name).map_err(config_resource::refused)?;
            if image.topic(name).is_none() {
                let message = Some(String::new());
                return Err(Rejection {
                    code: ErrorCode::UnknownTopicOrPartition,
                    message,
                });
            }
            Ok(config.describe(Describe::Topic(&set(ConfigResourceType::Topic)), keys))
        }
        ResourceType::Broker => {
            check_broker(name, node.broker_id)?;
            let what = if name.is_empty() {
                Describe::Brokers
            } else {
                Describe::Broker
            };
            Ok(config.describe(what, keys))
        }
        ResourceType::BrokerLogger => {
            config_resource::check_logger_resource(name, node.broker_id)?;
            Ok(config_resource::describe_loggers(keys))
        }
        ResourceType::ClientMetrics => {
            let set = set(ConfigResourceType::ClientMetrics);
            Ok(config.describe(Describe::ClientMetrics(&set), keys))
        }
        ResourceType::Group => {
            config_resource::check_group_name(name)?;
            let set = set(ConfigResourceType::Group);
            Ok(config.describe(Describe::Group(&set), keys))
        }
    }
}

/// In other words than where it is altered.
fn check_broker(name: &str, own: BrokerId) -> Result<(), Rejection> {
    let message = match name.parse::<i32>() {
        _ if name.is_empty() => return Ok(()),
        Ok(id) if id == own.0 => return Ok(()),
        Ok(id) => {
            format!("Unexpected broker id, expected {own} or empty string, but received {id}")
        }
        Err(_) => format!("Broker id must be an integer, but it is: {name}"),
    };
    Err(Rejection {
        code: ErrorCode::InvalidRequest,
        message: Some(message),
    })
}

fn answer(
    config: Described,
    with_synonyms: bool,
    with_documentation: bool,
) -> DescribeConfigsResourceResult {
    let synonyms = config
        .synonyms
        .into_iter()
        .filter(|_| with_synonyms)
        .map(|synonym| {
            DescribeConfigsSynonym::default()
                .with_name(view::text(&synonym.name))
                .with_value(synonym.value.as_deref().map(view::text))
                .with_source(synonym.source.code())
        });
    // Of a logger Kafka always answers the empty documentation.
    let always = config.source == ConfigSource::BrokerLogger;
    let documentation = config
        .documentation
        .filter(|_| with_documentation || always);
    DescribeConfigsResourceResult::default()
        .with_name(view::text(&config.name))
        .with_value(config.value.as_deref().map(view::text))
        .with_read_only(config.read_only)
        .with_config_source(config.source.code())
        .with_is_sensitive(config.sensitive)
        .with_synonyms(synonyms.collect())
        .with_config_type(config.config_type)
        .with_documentation(documentation.map(view::text))
}
