//! DescribeConfigs (key 32): every configuration of a resource, where it comes from, what it means.

use kafka_protocol::messages::describe_configs_request::{
    DescribeConfigsRequest, DescribeConfigsResource,
};
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult,
    DescribeConfigsSynonym,
};

use super::codec::Handled;
use super::context::Context;
use super::{config_resource, view};
use crate::config::{
    ConfigSource, Describe, Described, Rejection, ResourceType, check_broker_name,
};
use crate::metadata::planners::check_topic_name;
use crate::metadata::{ConfigResource, ConfigResourceType};
use crate::partition::overrides_of;
use crate::types::ErrorCode;

pub fn handle(
    context: Context,
    request: DescribeConfigsRequest,
) -> Handled<DescribeConfigsResponse> {
    let results = request.resources.iter().map(|resource| {
        let result = DescribeConfigsResult::default()
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name.clone());
        match describe(&context, resource) {
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
    });
    Handled::Ready(DescribeConfigsResponse::default().with_results(results.collect()))
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
            check_broker_name(name, node.broker_id.0)?;
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
            let set = set(ConfigResourceType::Group);
            Ok(config.describe(Describe::Group(&set), keys))
        }
    }
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
