//! The windows in which quotas are measured.

use crate::config::table::config_table;

config_table! {
    /// The windows in which quotas are measured.
    QuotaConfig;

    Int "quota.window.num" = "11", [AtLeast(1)], Low, ReadOnly
        no_effect "quotas are not enforced yet",
        "How many windows the quotas of clients are measured over.";
    Int "quota.window.size.seconds" = "1", [AtLeast(1)], Low, ReadOnly
        no_effect "quotas are not enforced yet",
        "How long such a window is.";
    Int "controller.quota.window.num" = "11", [AtLeast(1)], Low, ReadOnly
        no_effect "quotas are not enforced yet",
        "How many windows the quotas of controller mutations are measured over.";
    Int "controller.quota.window.size.seconds" = "1", [AtLeast(1)], Low, ReadOnly
        no_effect "quotas are not enforced yet",
        "How long such a window is.";
    Int "replication.quota.window.num" = "11", [AtLeast(1)], Low, ReadOnly
        no_effect "quotas are not enforced yet",
        "How many windows the throttles of replication are measured over.";
    Int "replication.quota.window.size.seconds" = "1", [AtLeast(1)], Low, ReadOnly
        no_effect "quotas are not enforced yet",
        "How long such a window is.";
    Int "alter.log.dirs.replication.quota.window.num" = "11", [AtLeast(1)], Low, ReadOnly
        no_effect "the rate holds over some seconds, whatever the windows are",
        "How many windows the throttle of moves between directories is measured over.";
    Int "alter.log.dirs.replication.quota.window.size.seconds" = "1", [AtLeast(1)], Low, ReadOnly
        no_effect "the rate holds over some seconds, whatever the windows are",
        "How long such a window is.";
    Class "client.quota.callback.class" = null, [Any], Low, ReadOnly
        refused "clients would go without the quotas it sets",
        "A class that decides the quota of a client.";
}
