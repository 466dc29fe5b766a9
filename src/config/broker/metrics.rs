//! Metrics and the telemetry of clients.

use crate::config::table::config_table;

config_table! {
    /// Metrics and the telemetry of clients.
    MetricsConfig;

    String "klamm.metrics.listener" = "", [HostAndPort], Medium internal, ReadOnly
        => klamm_metrics_listener: String,
        "Klamm's own: the address that serves metrics and health over HTTP (docs/metrics.md); an empty host binds every address, nothing is served by default.";
    Int "klamm.metrics.topics.max" = "1000", [AtLeast(0)], Low internal, ReadOnly
        => klamm_metrics_topics_max: i32,
        "Klamm's own: on a broker with replicas of more topics than this no metric tells topics apart.";
    List "metric.reporters" = "org.apache.kafka.common.metrics.JmxReporter", [Any],
        Low, ClusterWide
        no_effect "metrics are served over HTTP, not by classes",
        "Classes that report metrics.";
    Int "metrics.num.samples" = "2", [AtLeast(1)], Low, ReadOnly
        no_effect "metrics are counters and histograms without samples",
        "How many samples a metric is computed from.";
    Long "metrics.sample.window.ms" = "30000", [AtLeast(1)], Low, ReadOnly
        no_effect "metrics are counters and histograms without samples",
        "How long one sample of a metric lasts.";
    String "metrics.recording.level" = "INFO", [Any], Low, ReadOnly
        no_effect "every metric is recorded",
        "How detailed the metrics are: INFO, DEBUG or TRACE.";
    List "kafka.metrics.reporters" = "", [Any], Low, ReadOnly
        no_effect "metrics are served over HTTP, not by classes",
        "Classes that report metrics of the older kind.";
    Int "kafka.metrics.polling.interval.secs" = "10", [AtLeast(1)], Low, ReadOnly
        no_effect "metrics are served over HTTP, not by classes",
        "How often those classes report.";
    Int "telemetry.max.bytes" = "1048576", [AtLeast(1)], Low, ReadOnly
        no_effect "metrics of clients are not collected yet",
        "The largest push of metrics that a client may send.";
}
