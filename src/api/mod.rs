//! The table of APIs and one file per API. A new API is one file and one line here: dispatch,
//! ApiVersions, docs/protocol.md and the tests that walk every API follow from the table.

mod acls;
mod allowance;
mod answer;
mod by_topic;
mod codec;
mod config_resource;
mod context;
mod counts;
mod directory_controller;
mod document;
mod error;
mod fetch_answer;
mod fetch_request;
mod forwarding;
mod group_request;
mod internal_topics;
mod isr_controller;
mod leader_hint;
mod lifecycle;
mod liveness;
mod log_ends;
mod node;
mod reach;
mod read_replica;
mod repeated;
mod room;
mod rules;
mod told;
mod txn_request;
mod value;
mod verification;
mod view;
mod voter_change;

pub use answer::{Answer, Chunk, CloseReason, Frame, Order, Reply, Stage, Work};
pub use api_versions::unsupported as unsupported_api_versions;
pub use context::{Connection, ConnectionKind, Context};
pub use counts::{ApiCounts, ElectionCounts, RequestCounts};
pub use directory_controller::ControllerDirectories;
pub use document::protocol_markdown;
pub use forwarding::is_forwarded;
pub use internal_topics::{CONSUMER_OFFSETS, TRANSACTION_STATE};
pub use isr_controller::ControllerIsr;
pub use lifecycle::{Beat, LifecycleError, heartbeat, register as register_broker};
pub use node::{Coordinators, Node, Peers};
pub use rules::of_image as rules_of_image;
pub use told::is_loopback;

use bytes::Bytes;

/// One API that this broker serves.
#[derive(Debug, PartialEq, Eq)]
pub struct ApiRow {
    pub key: i16,
    pub name: &'static str,
    /// What ApiVersions says. Produce is listed from 0 although 0 to 2 are refused (KAFKA-18659).
    pub listed_min: i16,
    pub min: i16,
    pub max: i16,
    pub order: Order,
    pub work: Work,
    /// From this version on its bodies are trees of values, because the codec lacks the layout.
    pub values_from: Option<i16>,
}

impl ApiRow {
    pub fn serves(&self, version: i16) -> bool {
        (self.min..=self.max).contains(&version)
    }
}

/// The key of ApiVersions, which is answered even at versions that nobody serves.
pub const API_VERSIONS: i16 = 18;

macro_rules! apis {
    (@from) => { None };
    (@from $values:literal) => { Some($values) };
    ($(
        $key:literal $name:ident $module:ident
        $listed:literal $min:literal $max:literal $order:ident $work:ident
        $(, values from $values:literal)?;
    )*) => {
        $(mod $module;)*

        /// Every API of a broker's or a controller's listener, by key.
        pub const APIS: &[ApiRow] = &[$(ApiRow {
            key: $key,
            name: stringify!($name),
            listed_min: $listed,
            min: $min,
            max: $max,
            order: Order::$order,
            work: Work::$work,
            values_from: apis!(@from $($values)?),
        },)*];

        /// Runs the first stage of a request whose frame was found conforming.
        pub fn call(context: Context, body: Bytes) -> Answer {
            match context.api.key {
                $($key => {
                    $(if context.api_version >= $values {
                        return codec::run_values(context, body, $module::handle_values);
                    })?
                    codec::run(context, body, $module::handle)
                })*
                key => unreachable!("api key {key} has a row and no arm"),
            }
        }
    };
}

apis! {
    0  Produce                 produce                   0 3 13 Pipelined Short;
    1  Fetch                   fetch                     4 4 18 Pipelined Short;
    2  ListOffsets             list_offsets              1 1 11 Alone Short;
    3  Metadata                metadata                  0 0 13 Alone Long;
    8  OffsetCommit            offset_commit             2 2 10 Alone Short, values from 10;
    9  OffsetFetch             offset_fetch              1 1 10 Alone Long, values from 10;
    10 FindCoordinator         find_coordinator          0 0 6  Alone Short;
    11 JoinGroup               join_group                0 0 9  Together Short;
    12 Heartbeat               heartbeat                 0 0 4  Alone Short;
    13 LeaveGroup              leave_group               0 0 5  Alone Short;
    14 SyncGroup               sync_group                0 0 5  Together Short;
    15 DescribeGroups          describe_groups           0 0 6  Alone Long;
    16 ListGroups              list_groups               0 0 5  Alone Long;
    17 SaslHandshake           sasl_handshake            0 0 1  Alone Short;
    18 ApiVersions             api_versions              0 0 5  Alone Short, values from 5;
    19 CreateTopics            create_topics             2 2 7  Alone Long;
    20 DeleteTopics            delete_topics             1 1 6  Alone Long;
    21 DeleteRecords           delete_records            0 0 2  Alone Long;
    22 InitProducerId          init_producer_id          0 0 5  Alone Short;
    23 OffsetForLeaderEpoch    offset_for_leader_epoch   2 2 4  Alone Short;
    24 AddPartitionsToTxn      add_partitions_to_txn     0 0 5  Alone Short;
    25 AddOffsetsToTxn         add_offsets_to_txn        0 0 4  Alone Short;
    26 EndTxn                  end_txn                   0 0 5  Alone Short;
    27 WriteTxnMarkers         write_txn_markers         1 1 2  Alone Long, values from 2;
    28 TxnOffsetCommit         txn_offset_commit         0 0 6  Alone Short, values from 6;
    29 DescribeAcls            describe_acls             1 1 3  Alone Short;
    30 CreateAcls              create_acls               1 1 3  Alone Short;
    31 DeleteAcls              delete_acls               1 1 3  Alone Short;
    32 DescribeConfigs         describe_configs          1 1 4  Alone Long;
    33 AlterConfigs            alter_configs             0 0 2  Alone Long;
    34 AlterReplicaLogDirs     alter_replica_log_dirs    1 1 2  Alone Long;
    35 DescribeLogDirs         describe_log_dirs         1 1 5  Alone Long, values from 5;
    36 SaslAuthenticate        sasl_authenticate         0 0 2  Alone Short;
    37 CreatePartitions        create_partitions         0 0 3  Alone Long;
    42 DeleteGroups            delete_groups             0 0 3  Alone Long, values from 3;
    43 ElectLeaders            elect_leaders             0 0 2  Alone Long;
    44 IncrementalAlterConfigs incremental_alter_configs 0 0 1  Alone Long;
    45 AlterPartitionReassignments alter_partition_reassignments 0 0 1 Alone Long;
    46 ListPartitionReassignments list_partition_reassignments 0 0 0 Alone Long;
    47 OffsetDelete            offset_delete             0 0 0  Alone Long;
    55 DescribeQuorum          describe_quorum           0 0 2  Alone Long;
    56 AlterPartition          alter_partition           2 2 3  Alone Long;
    60 DescribeCluster         describe_cluster          0 0 2  Alone Long;
    61 DescribeProducers       describe_producers        0 0 0  Alone Long;
    62 BrokerRegistration      broker_registration       0 0 4  Alone Long;
    63 BrokerHeartbeat         broker_heartbeat          0 0 1  Alone Short;
    64 UnregisterBroker        unregister_broker         0 0 0  Alone Long;
    65 DescribeTransactions    describe_transactions     0 0 0  Alone Long;
    66 ListTransactions        list_transactions         0 0 2  Alone Long;
    67 AllocateProducerIds     allocate_producer_ids     0 0 0  Alone Long;
    68 ConsumerGroupHeartbeat  consumer_group_heartbeat  0 0 1  Alone Short;
    69 ConsumerGroupDescribe   consumer_group_describe   0 0 1  Alone Long;
    73 AssignReplicasToDirs    assign_replicas_to_dirs   0 0 0  Alone Long;
    74 ListConfigResources     list_config_resources     0 0 1  Alone Long;
    75 DescribeTopicPartitions describe_topic_partitions 0 0 0  Alone Long;
    80 AddRaftVoter            add_raft_voter            0 0 1  Alone Long, values from 1;
    81 RemoveRaftVoter         remove_raft_voter         0 0 0  Alone Long;
    82 UpdateRaftVoter         update_raft_voter         0 0 0  Alone Long;
}

impl ApiRow {
    /// Whether Kafka answers it on such a listener.
    pub fn is_answered_on(&self, kind: ConnectionKind) -> bool {
        crate::wire::api(self.key).is_some_and(|api| match kind {
            ConnectionKind::Broker => api.broker,
            ConnectionKind::Controller => api.controller,
            ConnectionKind::Local => true,
        })
    }
}

/// The row of an API, if this node serves it.
pub fn find(key: i16) -> Option<&'static ApiRow> {
    APIS.binary_search_by_key(&key, |row| row.key)
        .ok()
        .map(|at| &APIS[at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire;

    #[test]
    fn rows_are_in_order_and_within_what_can_be_encoded() {
        for pair in APIS.windows(2) {
            assert!(pair[0].key < pair[1].key);
        }
        for row in APIS {
            let layout = wire::api(row.key).expect("a Kafka API");
            assert_eq!(layout.name, row.name);
            for version in row.min..=row.max {
                assert!(layout.request(version).is_some(), "{} v{version}", row.name);
                let codec = wire::codec_version(row.key, version);
                let by_values = row.values_from.is_some_and(|from| version >= from);
                assert!(
                    codec.is_some() != by_values,
                    "{} v{version}: one codec",
                    row.name
                );
            }
        }
    }
}
