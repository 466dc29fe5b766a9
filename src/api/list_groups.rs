//! ListGroups (key 16).

use kafka_protocol::messages::GroupId;
use kafka_protocol::messages::list_groups_request::ListGroupsRequest;
use kafka_protocol::messages::list_groups_response::{ListGroupsResponse, ListedGroup};

use super::codec::Handled;
use super::context::Context;
use super::view;
use crate::machine::group::command::ListGroups;

pub fn handle(context: Context, request: ListGroupsRequest) -> Handled<ListGroupsResponse> {
    let filter = ListGroups {
        states: request
            .states_filter
            .iter()
            .map(ToString::to_string)
            .collect(),
        types: request
            .types_filter
            .iter()
            .map(ToString::to_string)
            .collect(),
    };
    Handled::later(async move {
        match context.node.groups.list_groups(filter).await {
            Err(error) => ListGroupsResponse::default().with_error_code(error.code()),
            Ok(listed) => {
                let groups = listed.into_iter().map(|group| {
                    ListedGroup::default()
                        .with_group_id(GroupId(view::text(&group.group)))
                        .with_protocol_type(view::text(&group.protocol_type))
                        .with_group_state(view::text(group.state))
                        .with_group_type(view::text(group.group_type))
                });
                ListGroupsResponse::default().with_groups(groups.collect())
            }
        }
    })
}
