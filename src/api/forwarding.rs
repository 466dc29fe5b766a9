//! Which requests only the active controller can answer: a broker that gets one passes it on as it
//! came, and passes the answer back once it has the change itself.

use bytes::Bytes;

use super::ApiRow;
use crate::wire::{self, Value};

/// CreateTopics, DeleteTopics, CreatePartitions, ElectLeaders, AlterPartitionReassignments,
/// ListPartitionReassignments, DescribeQuorum, UnregisterBroker, AddRaftVoter, RemoveRaftVoter.
const FORWARDED: [i16; 10] = [19, 20, 37, 43, 45, 46, 55, 64, 80, 81];
/// AlterConfigs and IncrementalAlterConfigs: unless they are about the broker's own loggers.
const ALTER_CONFIGS: [i16; 2] = [33, 44];
/// `ConfigResource.Type.BROKER_LOGGER`
const BROKER_LOGGER: i64 = 8;

/// Whether the request with this body is the controller's.
pub fn is_forwarded(row: &ApiRow, version: i16, body: &Bytes) -> bool {
    if ALTER_CONFIGS.contains(&row.key) {
        return !is_about_loggers(row.key, version, body);
    }
    FORWARDED.contains(&row.key)
}

fn is_about_loggers(api_key: i16, version: i16, body: &Bytes) -> bool {
    let Ok(request) = wire::decode_request_body(api_key, version, body) else {
        return false;
    };
    let Some(Value::Array(resources)) = request.get("resources") else {
        return false;
    };
    let of_logger = |resource: &Value| {
        let resource_type = resource.get("resource_type").and_then(Value::as_integer);
        resource_type == Some(BROKER_LOGGER)
    };
    resources.iter().any(of_logger)
}
