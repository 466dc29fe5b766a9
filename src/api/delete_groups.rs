//! DeleteGroups (key 42).

use kafka_protocol::messages::GroupId;
use kafka_protocol::messages::delete_groups_request::DeleteGroupsRequest;
use kafka_protocol::messages::delete_groups_response::{
    DeletableGroupResult, DeleteGroupsResponse,
};

use super::codec::Handled;
use super::context::Context;
use super::value::{elements, structure};
use super::view;
use crate::types::ErrorCode;
use crate::wire::Value;

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

/// v3 says in words what is wrong.
pub fn handle_values(context: Context, request: Value) -> Handled<Value> {
    Handled::later(async move {
        let groups = elements(&request, "groups_names").iter();
        let groups = groups.filter_map(Value::as_text).map(Into::into).collect();
        let deleted = context.node.groups.delete_groups(groups).await.into_iter();
        let results = deleted.map(|(group, error)| {
            let message = match error {
                ErrorCode::None => Value::Null,
                error => Value::Text(error.name().to_owned()),
            };
            structure([
                ("group_id", Value::Text(group.to_string())),
                ("error_code", Value::Integer(error.code().into())),
                ("error_message", message),
            ])
        });
        structure([("results", Value::Array(results.collect()))])
    })
}
