//! What a consumer or a follower may ask for.

use crate::config::table::config_table;

config_table! {
    /// What a consumer or a follower may ask for.
    FetchConfig;

    Int "fetch.max.bytes" = "57671680", [AtLeast(1024)], Medium, ReadOnly
        => fetch_max_bytes: i32,
        "The most that one Fetch answers.";
    Int "max.incremental.fetch.session.cache.slots" = "1000", [AtLeast(0)], Medium, ReadOnly
        => max_incremental_fetch_session_cache_slots: i32,
        "How many fetch sessions are kept at once.";
    Int "fetch.purgatory.purge.interval.requests" = "1000", [Any], Medium, ReadOnly
        no_effect "a waiter is removed when it is done",
        "After how many waiting Fetches the finished ones are swept up.";
    Int "producer.purgatory.purge.interval.requests" = "1000", [Any], Medium, ReadOnly
        no_effect "a waiter is removed when it is done",
        "After how many waiting Produces the finished ones are swept up.";
    Int "delete.records.purgatory.purge.interval.requests" = "1", [Any], Medium, ReadOnly
        no_effect "a waiter is removed when it is done",
        "After how many waiting DeleteRecords the finished ones are swept up.";
}
