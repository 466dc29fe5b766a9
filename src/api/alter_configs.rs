//! AlterConfigs (key 33), the legacy form: the values given are all that is set from then on.

use kafka_protocol::messages::alter_configs_request::AlterConfigsRequest;
use kafka_protocol::messages::alter_configs_response::{
    AlterConfigsResourceResponse, AlterConfigsResponse,
};

use super::codec::Handled;
use super::config_resource::{AlterResource, Change, alter, altered};
use super::context::Context;

pub fn handle(context: Context, request: AlterConfigsRequest) -> Handled<AlterConfigsResponse> {
    let resources = request.resources.iter().map(|resource| AlterResource {
        resource_type: resource.resource_type,
        name: resource.resource_name.to_string(),
        change: Change::Replace(
            resource
                .configs
                .iter()
                .map(|c| {
                    (
                        c.name.to_string(),
                        c.value.as_ref().map(ToString::to_string),
                    )
                })
                .collect(),
        ),
    });
    let resources: Vec<AlterResource> = resources.collect();
    Handled::later(async move {
        let results = alter(&context, resources, request.validate_only).await;
        let responses = altered!(request.resources, results, AlterConfigsResourceResponse);
        AlterConfigsResponse::default().with_responses(responses)
    })
}
