//! DescribeAcls (key 29).

use kafka_protocol::messages::describe_acls_request::DescribeAclsRequest;
use kafka_protocol::messages::describe_acls_response::DescribeAclsResponse;
use kafka_protocol::protocol::StrBytes;

use super::acls::{NO_AUTHORIZER, unless_unknown};
use super::codec::Handled;
use super::context::Context;

pub fn handle(context: Context, request: DescribeAclsRequest) -> Handled<DescribeAclsResponse> {
    let codes = [
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    ];
    unless_unknown(&context, codes.into_iter(), || {
        let answer = DescribeAclsResponse::default().with_error_code(NO_AUTHORIZER.code());
        // Other words than those of the changes.
        let message = "No Authorizer is configured on the broker";
        answer.with_error_message(Some(StrBytes::from_static_str(message)))
    })
}
