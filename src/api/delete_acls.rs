//! DeleteAcls (key 31).

use kafka_protocol::messages::delete_acls_request::{DeleteAclsFilter, DeleteAclsRequest};
use kafka_protocol::messages::delete_acls_response::{DeleteAclsFilterResult, DeleteAclsResponse};

use super::acls::{NO_AUTHORIZER, refusal, unless_unknown};
use super::codec::Handled;
use super::context::Context;

pub fn handle(context: Context, request: DeleteAclsRequest) -> Handled<DeleteAclsResponse> {
    let codes = |acl: &DeleteAclsFilter| {
        [
            acl.resource_type_filter,
            acl.pattern_type_filter,
            acl.operation,
            acl.permission_type,
        ]
    };
    unless_unknown(&context, request.filters.iter().flat_map(codes), || {
        let refused = DeleteAclsFilterResult::default()
            .with_error_code(NO_AUTHORIZER.code())
            .with_error_message(refusal());
        DeleteAclsResponse::default().with_filter_results(vec![refused; request.filters.len()])
    })
}
