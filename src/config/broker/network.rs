//! Listeners, connections and the limits on requests.

use crate::config::table::config_table;

config_table! {
    /// Listeners, connections and the limits on requests.
    NetworkConfig;

    List "listeners" = "PLAINTEXT://:9092", [Any], High, PerBroker
        => listeners: Vec<String>,
        "The addresses to bind, as NAME://host:port; an empty host binds every address.";
    List "advertised.listeners" = null, [Any], High, ReadOnly
        => advertised_listeners: Option<Vec<String>>,
        "The addresses that clients and other brokers are told; else the listeners themselves.";
    String "klamm.advertised.mode" = "fixed", [OneOf(&["fixed", "follow"])], Medium internal, ReadOnly
        => klamm_advertised_mode: String,
        "Klamm's own: with `follow` a loopback address is told only to clients that can use it, others get the address that they reached.";
    Boolean "klamm.advertised.dynamic" = "false", [Any], Low internal, ReadOnly
        => klamm_advertised_dynamic: bool,
        "Klamm's own: `advertised.listeners` of a broker can be altered while it runs, as with ZooKeeper.";
    String "listener.security.protocol.map" = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", [Any],
        Low, PerBroker
        => listener_security_protocol_map: String,
        "Which security protocol each listener name speaks, as NAME:PROTOCOL.";
    String "inter.broker.listener.name" = null, [Any], Medium, ReadOnly
        => inter_broker_listener_name: Option<String>,
        "The listener that brokers use among themselves.";
    String "security.inter.broker.protocol" = "PLAINTEXT", [OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])],
        Medium, ReadOnly
        => security_inter_broker_protocol: String,
        "The protocol, and listener name, brokers use among themselves where no listener is named for it.";
    List "controller.listener.names" = required, [Any], High, ReadOnly
        => controller_listener_names: Vec<String>,
        "Names of the listeners that serve the quorum; brokers dial the first of them.";
    List "early.start.listeners" = null, [Any], High, ReadOnly
        no_effect "every listener opens when the broker is ready to answer",
        "Listeners that open before the others.";
    Int "num.network.threads" = "3", [AtLeast(1)], High, ClusterWide
        no_effect "connections share one pool of threads, one a core",
        "Threads that read requests from sockets and write answers, for each listener.";
    Int "num.io.threads" = "8", [AtLeast(1)], High, ClusterWide
        no_effect "connections share one pool of threads, one a core",
        "Threads that work on requests.";
    Int "background.threads" = "10", [AtLeast(1)], High, ClusterWide
        no_effect "background work shares one pool of threads",
        "Threads for periodic work such as retention.";
    Int "queued.max.requests" = "500", [AtLeast(1)], High, ReadOnly
        no_effect "requests are limited by their bytes",
        "How many requests may wait before no more are read from the sockets.";
    Long "queued.max.request.bytes" = "-1", [Any], Medium, ReadOnly
        => queued_max_request_bytes: i64,
        "How many bytes of requests may be in memory at once; -1 for no limit.";
    Int "request.timeout.ms" = "30000", [Any], High, ReadOnly
        no_effect "each kind of request to another node has its own time-out",
        "How long this node waits for the answer to a request that it sent.";
    Int "socket.request.max.bytes" = "104857600", [AtLeast(1)], High, ReadOnly
        => socket_request_max_bytes: i32,
        "The longest request; a connection that announces a longer one is closed.";
    Int "socket.send.buffer.bytes" = "102400", [Any], High, ReadOnly
        no_effect "the kernel sizes the buffers of a connection to its need",
        "SO_SNDBUF of the sockets of clients; -1 leaves it to the system.";
    Int "socket.receive.buffer.bytes" = "102400", [Any], High, ReadOnly
        no_effect "the kernel sizes the buffers of a connection to its need",
        "SO_RCVBUF of the sockets of clients; -1 leaves it to the system.";
    Int "socket.listen.backlog.size" = "50", [AtLeast(1)], Medium, ReadOnly
        => socket_listen_backlog_size: i32,
        "How many connections the system may hold that are not yet accepted.";
    Long "socket.connection.setup.timeout.ms" = "10000", [Any], Medium, ReadOnly
        no_effect "a try to connect to another node has a fixed time",
        "How long the first try to connect to another node may take.";
    Long "socket.connection.setup.timeout.max.ms" = "30000", [Any], Medium, ReadOnly
        no_effect "a try to connect to another node has a fixed time",
        "How long a try may take after several have failed.";
    Long "connections.max.idle.ms" = "600000", [Any], Medium, ReadOnly
        => connections_max_idle_ms: i64,
        "A connection without a request for this long is closed.";
    Long "connections.max.reauth.ms" = "0", [Any], Medium, ReadOnly
        no_effect "there is no authentication to repeat",
        "How long an authentication lasts before the client has to repeat it; 0 for ever.";
    Int "connection.failed.authentication.delay.ms" = "100", [AtLeast(0)], Low, ReadOnly
        no_effect "there is no authentication that could fail",
        "How long to wait before a connection is closed that failed to authenticate.";
    Int "max.connections" = "2147483647", [AtLeast(0)], Medium, ClusterWide
        => max_connections: i32,
        "How many connections may be open at once on this broker.";
    Int "max.connections.per.ip" = "2147483647", [AtLeast(0)], Medium, ClusterWide
        => max_connections_per_ip: i32,
        "How many connections may be open at once from one address.";
    String "max.connections.per.ip.overrides" = "", [Any], Medium, ClusterWide
        => max_connections_per_ip_overrides: String,
        "Other limits for single addresses, as host:count, separated by commas.";
    Int "max.connection.creation.rate" = "2147483647", [AtLeast(0)], Medium, ClusterWide
        no_effect "connections are accepted as fast as they come",
        "How many connections may be accepted in a second.";
    Int "max.request.partition.size.limit" = "2000", [AtLeast(1)], Medium, ReadOnly
        => max_request_partition_size_limit: i32,
        "The most partitions one DescribeTopicPartitions answers.";
}
