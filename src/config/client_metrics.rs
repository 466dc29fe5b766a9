//! The table of client metrics subscriptions (KIP-714).

use super::table::config_table;

config_table! {
    /// One subscription.
    ClientMetricsConfig;

    Int "interval.ms" = "300000", [Any], Medium, Resource
        no_effect "metrics of clients are not collected yet",
        "How often a client that matches sends its metrics.";
    List "match" = "", [Any], Medium, Resource
        no_effect "metrics of clients are not collected yet",
        "Which clients send metrics, as name=pattern; empty for all.";
    List "metrics" = "", [Any], Medium, Resource
        no_effect "metrics of clients are not collected yet",
        "Which metrics they send, by the beginnings of their names; empty for none.";
}
