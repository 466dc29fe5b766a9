//! DeleteGroups (key 42).

use kafka_protocol::messages::GroupId;
use kafka_protocol::messages::delete_groups_request::DeleteGroupsRequest;
use kafka_protocol::messages::delete_groups_response::{
    DeletableGroupResult, DeleteGroupsResponse,
};

use super::codec::Handled;
use super::context::Context;
use super::view;

pub fn handle(context: Context, request: DeleteGroupsRequest) -> Handled<DeleteGroupsResponse> {
    Handled::later(async move {
        let groups = request.groups_names.iter().map(|group| group.0.as_str().into()).collect();
        let deleted = context.node.groups.delete_groups(groups).await.into_iter();
        let results = deleted.map(|(group, error)| {
            DeletableGroupResult::default()
                .with_group_id(GroupId(view::text(&group)))
                .with_error_code(error.code())
        });
        DeleteGroupsResponse::default().with_results(results.collect())
    })
}
