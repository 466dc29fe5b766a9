//! The table of client metrics subscriptions (KIP-714).

use super::table::config_table;

config_table! {
    /// One subscription.
    ClientMetricsConfig;

    Int "interval.ms" = "300000", [Any], Medium, Resource
        => interval_ms: i32,
        "";
    List "match" = "", [Any], Medium, Resource
        => matches: Vec<String>,
        "";
    List "metrics" = "", [Any], Medium, Resource
        => metrics: Vec<String>,
        "";
}
