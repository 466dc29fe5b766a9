//! Listeners, connections and the limits on requests.

use crate::config::table::config_table;

config_table! {
    /// Listeners, connections and the limits on requests.
    NetworkConfig;

    List "listeners" = "PLAINTEXT://:9092", [Any], High, PerBroker
        => listeners: Vec<String>,
        "";
    List "advertised.listeners" = null, [Any], High, ReadOnly
        => advertised_listeners: Option<Vec<String>>,
        "";
    String "listener.security.protocol.map" = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", [Any],
        Low, PerBroker
        => listener_security_protocol_map: String,
        "";
    String "inter.broker.listener.name" = null, [Any], Medium, ReadOnly
        => inter_broker_listener_name: Option<String>,
        "";
    String "security.inter.broker.protocol" = "PLAINTEXT", [OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])],
        Medium, ReadOnly
        => security_inter_broker_protocol: String,
        "";
    List "controller.listener.names" = required, [Any], High, ReadOnly
        => controller_listener_names: Vec<String>,
        "";
    List "early.start.listeners" = null, [Any], High, ReadOnly
        no_effect "every listener opens when the broker is ready to answer",
        "";
    Int "num.network.threads" = "3", [AtLeast(1)], High, ClusterWide
        no_effect "connections share one pool of threads, one a core",
        "";
    Int "num.io.threads" = "8", [AtLeast(1)], High, ClusterWide
        no_effect "connections share one pool of threads, one a core",
        "";
    Int "background.threads" = "10", [AtLeast(1)], High, ClusterWide
        no_effect "background work shares one pool of threads",
        "";
    Int "queued.max.requests" = "500", [AtLeast(1)], High, ReadOnly
        no_effect "requests are limited by their bytes",
        "";
    Long "queued.max.request.bytes" = "-1", [Any], Medium, ReadOnly
        => queued_max_request_bytes: i64,
        "";
    Int "request.timeout.ms" = "30000", [Any], High, ReadOnly
        => request_timeout_ms: i32,
        "";
    Int "socket.request.max.bytes" = "104857600", [AtLeast(1)], High, ReadOnly
        => socket_request_max_bytes: i32,
        "";
    Int "socket.send.buffer.bytes" = "102400", [Any], High, ReadOnly
        => socket_send_buffer_bytes: i32,
        "";
    Int "socket.receive.buffer.bytes" = "102400", [Any], High, ReadOnly
        => socket_receive_buffer_bytes: i32,
        "";
    Int "socket.listen.backlog.size" = "50", [AtLeast(1)], Medium, ReadOnly
        => socket_listen_backlog_size: i32,
        "";
    Long "socket.connection.setup.timeout.ms" = "10000", [Any], Medium, ReadOnly
        => socket_connection_setup_timeout_ms: i64,
        "";
    Long "socket.connection.setup.timeout.max.ms" = "30000", [Any], Medium, ReadOnly
        => socket_connection_setup_timeout_max_ms: i64,
        "";
    Long "connections.max.idle.ms" = "600000", [Any], Medium, ReadOnly
        => connections_max_idle_ms: i64,
        "";
    Long "connections.max.reauth.ms" = "0", [Any], Medium, ReadOnly
        no_effect "there is no authentication to repeat",
        "";
    Int "connection.failed.authentication.delay.ms" = "100", [AtLeast(0)], Low, ReadOnly
        no_effect "there is no authentication that could fail",
        "";
    Int "max.connections" = "2147483647", [AtLeast(0)], Medium, ClusterWide
        => max_connections: i32,
        "";
    Int "max.connections.per.ip" = "2147483647", [AtLeast(0)], Medium, ClusterWide
        => max_connections_per_ip: i32,
        "";
    String "max.connections.per.ip.overrides" = "", [Any], Medium, ClusterWide
        => max_connections_per_ip_overrides: String,
        "";
    Int "max.connection.creation.rate" = "2147483647", [AtLeast(0)], Medium, ClusterWide
        => max_connection_creation_rate: i32,
        "";
    Int "max.request.partition.size.limit" = "2000", [AtLeast(1)], Medium, ReadOnly
        => max_request_partition_size_limit: i32,
        "";
}
