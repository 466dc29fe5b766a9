//! IncrementalAlterConfigs (key 44; KIP-339): sets, deletes, appends, subtracts.

use kafka_protocol::messages::incremental_alter_configs_request::IncrementalAlterConfigsRequest;
use kafka_protocol::messages::incremental_alter_configs_response::{
    AlterConfigsResourceResponse, IncrementalAlterConfigsResponse,
};

use super::codec::Handled;
use super::config_resource::{AlterResource, Change, alter, altered};
use super::context::Context;
use crate::config::Alteration;

pub fn handle(
    context: Context,
    request: IncrementalAlterConfigsRequest,
) -> Handled<IncrementalAlterConfigsResponse> {
    let resources = request.resources.iter().map(|resource| {
        let alterations = resource.configs.iter().map(|config| Alteration {
            name: config.name.to_string(),
            op: config.config_operation,
            value: config.value.as_ref().map(ToString::to_string),
        });
        AlterResource {
            resource_type: resource.resource_type,
            name: resource.resource_name.to_string(),
            change: Change::Incremental(alterations.collect()),
        }
    });
    let resources: Vec<AlterResource> = resources.collect();
    Handled::later(async move {
        let results = alter(&context, resources, request.validate_only).await;
        let responses = altered!(request.resources, results, AlterConfigsResourceResponse);
        IncrementalAlterConfigsResponse::default().with_responses(responses)
    })
}
