//! The tables of what clients, users and addresses may be held to.
//!
//! A name that is not set means no limit: the defaults are the largest numbers, as Kafka lists
//! them.

use super::table::config_table;

config_table! {
    /// The quota of a user, a client id, or both.
    ClientQuotaConfig;

    Long "consumer_byte_rate" = "9223372036854775807", [Any], Medium, Resource
        no_effect "quotas are not enforced yet",
        "How many bytes a second may be fetched.";
    Double "controller_mutation_rate" = "2.147483647E9", [Any], Medium, Resource
        no_effect "quotas are not enforced yet",
        "How many partitions a second may be made or deleted.";
    Long "producer_byte_rate" = "9223372036854775807", [Any], Medium, Resource
        no_effect "quotas are not enforced yet",
        "How many bytes a second may be produced.";
    Double "request_percentage" = "2.147483647E9", [Any], Medium, Resource
        no_effect "quotas are not enforced yet",
        "What share of the time of the request threads may be used, in percent of one thread.";
}

config_table! {
    /// The quota of an address.
    IpQuotaConfig;

    Int "connection_creation_rate" = "2147483647", [AtLeast(0)], Medium, Resource
        no_effect "quotas are not enforced yet",
        "How many connections a second may be opened from the address.";
}

config_table! {
    /// The SCRAM credentials of a user, as the tools write them.
    ScramConfig;

    String "SCRAM-SHA-256" = null, [Any], Medium, Resource
        no_effect "there is no SASL yet",
        "The user's credential for SCRAM-SHA-256.";
    String "SCRAM-SHA-512" = null, [Any], Medium, Resource
        no_effect "there is no SASL yet",
        "The user's credential for SCRAM-SHA-512.";
}
