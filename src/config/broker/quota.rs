//! The windows in which quotas are measured.

use crate::config::table::config_table;

config_table! {
    /// The windows in which quotas are measured.
    QuotaConfig;

    Int "quota.window.num" = "11", [AtLeast(1)], Low, ReadOnly
        => quota_window_num: i32,
        "";
    Int "quota.window.size.seconds" = "1", [AtLeast(1)], Low, ReadOnly
        => quota_window_size_seconds: i32,
        "";
    Int "controller.quota.window.num" = "11", [AtLeast(1)], Low, ReadOnly
        => controller_quota_window_num: i32,
        "";
    Int "controller.quota.window.size.seconds" = "1", [AtLeast(1)], Low, ReadOnly
        => controller_quota_window_size_seconds: i32,
        "";
    Int "replication.quota.window.num" = "11", [AtLeast(1)], Low, ReadOnly
        => replication_quota_window_num: i32,
        "";
    Int "replication.quota.window.size.seconds" = "1", [AtLeast(1)], Low, ReadOnly
        => replication_quota_window_size_seconds: i32,
        "";
    Int "alter.log.dirs.replication.quota.window.num" = "11", [AtLeast(1)], Low, ReadOnly
        no_effect "replicas are not moved between directories",
        "";
    Int "alter.log.dirs.replication.quota.window.size.seconds" = "1", [AtLeast(1)], Low, ReadOnly
        no_effect "replicas are not moved between directories",
        "";
    Class "client.quota.callback.class" = null, [Any], Low, ReadOnly
        refused "clients would go without the quotas it sets",
        "";
}
