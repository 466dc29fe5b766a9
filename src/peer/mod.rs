//! The client side: dial, negotiate versions, pipeline requests. The commands of `cli/` use it, and
//! brokers among themselves.
//!
//! ```text
//! Client      bootstrap list, one connection per broker, metadata, leaders, coordinators, retries
//!   Connection  one socket: requests go out at once, answers come back in the same order
//!     Versions    what the other side serves, held against what this side can write and read
//! ```
//!
//! 1. No answer is trusted: its length is bounded before it is read, its layout is walked before
//!    it is decoded (docs/decisions/0001-wire-layouts-as-a-table.md), its correlation id must be
//!    the one that is due. Whatever does not fit ends the connection with a typed error.
//! 2. A request that is not answered in time ends its connection: answers come in order, so
//!    everything behind it is late as well.
//! 3. An error code inside an answer is the caller's to read; only the codes that say "ask another
//!    broker" are acted upon here, and only where a method says so.

mod address;
mod broker;
mod broker_channels;
mod client;
mod connection;
mod controller_channel;
mod error;
mod frames;
mod log_ends;
mod metadata;
mod private;
mod probe;
mod replica_fetch;
mod retry;
mod transactions;
mod versions;

pub use address::{Address, AddressError, parse_bootstrap};
pub use broker::Broker;
pub use broker_channels::{BrokerChannels, BrokerFinder};
pub use client::{Client, ClientConfig, CoordinatorKind, OnUnreachable};
pub use connection::{Connection, Pending};
pub use controller_channel::{
    ControllerChannel, ControllerFinder, ControllerPlace, ControllerRequest, Forwarded,
    LocalAnswer, LocalController,
};
pub use error::PeerError;
pub use log_ends::LogEnds;
pub use metadata::{ClusterView, PartitionView, TopicView};
pub use private::{
    FORWARD, LOG_ENDS, METADATA_FETCH, OWN_VERSIONS, PRIVATE_APIS, PrivateApi, PrivateRequest,
    QUORUM_HELLO, QUORUM_JOIN, QUORUM_PRE_VOTE, RAFT_APPEND_ENTRIES, RAFT_INSTALL_SNAPSHOT,
    RAFT_VOTE, own_versions, private_api,
};
pub use probe::{Sign, is_gone, listens, sign_of_life};
pub use replica_fetch::{FetchedFromLeader, ReplicaFetchAnswer, ReplicaFetchCall, WantedPartition};
pub use retry::Backoff;
pub use transactions::{AddPartitionsCall, MarkerCall, PartitionErrors};
pub use versions::{Range, Versions};

#[cfg(test)]
mod tests;
