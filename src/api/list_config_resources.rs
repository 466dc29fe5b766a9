//! ListConfigResources (key 74; KIP-714, KIP-1142): what has configurations.

use std::collections::BTreeSet;

use kafka_protocol::messages::list_config_resources_request::ListConfigResourcesRequest;
use kafka_protocol::messages::list_config_resources_response::{
    ConfigResource, ListConfigResourcesResponse,
};

use super::codec::Handled;
use super::context::Context;
use super::view;
use crate::config::ResourceType;
use crate::metadata::{ConfigResourceType, MetadataImage};
use crate::types::ErrorCode;

const LOGGER_RESOURCE_TYPE: i8 = ResourceType::BrokerLogger.code();

pub fn handle(
    context: Context,
    request: ListConfigResourcesRequest,
) -> Handled<ListConfigResourcesResponse> {
    let types = if context.api_version == 0 {
        BTreeSet::from([ConfigResourceType::ClientMetrics as i8])
    } else if request.resource_types.is_empty() {
        let all = ConfigResourceType::ALL.map(|known| known as i8);
        all.into_iter().chain([LOGGER_RESOURCE_TYPE]).collect()
    } else {
        request.resource_types.into_iter().collect()
    };
    let image = context.node.image();
    let mut resources = Vec::new();
    for resource_type in types {
        let Some(names) = names(&image, resource_type) else {
            let error = ErrorCode::UnsupportedVersion.code();
            return Handled::Ready(ListConfigResourcesResponse::default().with_error_code(error));
        };
        resources.extend(names.into_iter().map(|name| {
            let resource = ConfigResource::default().with_resource_name(view::text(&name));
            resource.with_resource_type(resource_type)
        }));
    }
    Handled::Ready(ListConfigResourcesResponse::default().with_config_resources(resources))
}

/// The resources of a type, whether they have configurations of their own or not.
fn names(image: &MetadataImage, resource_type: i8) -> Option<BTreeSet<String>> {
    let brokers = || {
        image
            .brokers()
            .map(|broker| broker.broker_id.to_string())
            .collect()
    };
    if resource_type == LOGGER_RESOURCE_TYPE {
        return Some(brokers());
    }
    let configured = |wanted: ConfigResourceType| {
        let resources = image.config_resources().map(|(resource, _)| resource);
        let of_type = resources.filter(move |resource| resource.resource_type == wanted);
        of_type
            .map(|resource| resource.resource_name.to_string())
            .collect::<BTreeSet<_>>()
    };
    Some(match ConfigResourceType::try_from(resource_type).ok()? {
        ConfigResourceType::Topic => image.topics().map(|t| t.name.to_string()).collect(),
        ConfigResourceType::Broker => brokers(),
        ConfigResourceType::ClientMetrics => configured(ConfigResourceType::ClientMetrics),
        ConfigResourceType::Group => configured(ConfigResourceType::Group),
    })
}
