//! Loading a node: layers, defaults, warnings, and what stops the start.

use super::*;

const BASE: &str = "process.roles=broker,controller\nnode.id=1\n\
    listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n\
    controller.listener.names=CONTROLLER\n\
    controller.quorum.bootstrap.servers=127.0.0.1:9093\nlog.dirs=/tmp/a\n";

type Loaded = Result<(NodeConfig, Vec<ConfigWarning>), Vec<ConfigError>>;

fn load_file(text: &str) -> Loaded {
    let file = Some(parse_properties("server.properties", text).unwrap());
    NodeConfig::load(Sources {
        file,
        ..Sources::default()
    })
}

fn load_base(more: &str) -> Loaded {
    load_file(&format!("{BASE}{more}"))
}

fn load_environment(variables: &[(&str, &str)], arguments: &[&str]) -> Loaded {
    NodeConfig::load(Sources {
        file: None,
        environment: environment_properties(variables.iter().copied()),
        arguments: argument_properties(arguments.iter().copied()).unwrap(),
    })
}

fn errors(loaded: Loaded) -> Vec<String> {
    let errors = loaded.err().unwrap_or_default();
    errors.iter().map(ConfigError::to_string).collect()
}

fn warnings(loaded: Loaded) -> Vec<String> {
    loaded
        .unwrap()
        .1
        .iter()
        .map(ConfigWarning::to_string)
        .collect()
}

#[test]
fn without_a_file_a_node_works_alone() {
    let (node, warnings) = load_environment(&[], &[]).unwrap();
    assert_eq!(warnings, []);
    assert!(node.broker.is_broker() && node.broker.is_controller());
    assert_eq!(node.broker.identity.node_id, 1);
    assert_eq!(node.broker.identity.broker_id, 1);
    assert_eq!(node.broker.log_dirs(), ["./klamm-data"]);
    assert_eq!(node.broker.metadata_log_dir(), Some("./klamm-data"));
    let shown = |listeners: Vec<&Listener>| {
        listeners
            .iter()
            .map(|listener| listener.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        shown(node.listeners.broker().collect()),
        ["PLAINTEXT://localhost:9092"]
    );
    assert_eq!(
        shown(node.listeners.controller().collect()),
        ["CONTROLLER://localhost:9093"]
    );
    assert_eq!(node.broker.group.offsets_topic_replication_factor, 1);
    assert_eq!(node.broker.transaction.transaction_state_log_min_isr, 1);
    // The rest is Kafka's.
    assert_eq!(node.broker.group.group_initial_rebalance_delay_ms, 3000);
    assert_eq!(node.topic_defaults.retention_ms, 168 * 60 * 60 * 1000);
}

#[test]
fn the_built_in_list_fills_only_gaps() {
    let variables = [("KAFKA_BROKER_ID", "7"), ("KAFKA_NUM_PARTITIONS", "3")];
    let (node, _) = load_environment(&variables, &["log.dirs=/data"]).unwrap();
    assert_eq!(node.broker.identity.node_id, 7);
    assert_eq!(node.broker.topics.num_partitions, 3);
    assert_eq!(node.broker.log_dirs(), ["/data"]);
    assert_eq!(node.broker.group.offsets_topic_replication_factor, 1);
    let (node, _) = load_environment(&[], &["log.dir=/one"]).unwrap();
    assert_eq!(node.broker.log_dirs(), ["/one"]);
    // A node that is told of a quorum is not alone: Kafka's factors count.
    let quorum = [(
        "KAFKA_CONTROLLER_QUORUM_VOTERS",
        "1@localhost:9093,2@b:9093,3@c:9093",
    )];
    let (node, _) = load_environment(&quorum, &[]).unwrap();
    assert_eq!(node.broker.group.offsets_topic_replication_factor, 3);
}

#[test]
fn later_sources_win() {
    let file = parse_properties("f", &format!("{BASE}num.partitions=2\nnum.partitions=3\n"));
    let sources = |environment: &[(&str, &str)], arguments: &[&str]| Sources {
        file: Some(file.clone().unwrap()),
        environment: environment_properties(environment.iter().copied()),
        arguments: argument_properties(arguments.iter().copied()).unwrap(),
    };
    let partitions = |sources| {
        let (node, _) = NodeConfig::load(sources).unwrap();
        node.broker.topics.num_partitions
    };
    assert_eq!(partitions(sources(&[], &[])), 3);
    let environment = [("KAFKA_NUM_PARTITIONS", "4")];
    assert_eq!(partitions(sources(&environment, &[])), 4);
    assert_eq!(partitions(sources(&environment, &["num.partitions=5"])), 5);
}

#[test]
fn dynamic_values_come_over_static_ones() {
    let (node, _) = load_base("message.max.bytes=5\nlog.retention.hours=1\n").unwrap();
    assert_eq!(node.topic_defaults.max_message_bytes, 5);
    assert_eq!(node.topic_defaults.retention_ms, 3_600_000);
    let set = |name: &str, value: &str| Overrides::from([(name.to_owned(), value.to_owned())]);
    let (all, warnings) = node.with_dynamic(set("message.max.bytes", " 6 "), Overrides::new());
    assert_eq!(
        (all.topic_defaults.max_message_bytes, warnings),
        (6, vec![])
    );
    let (one, _) = node.with_dynamic(set("message.max.bytes", "6"), set("message.max.bytes", "7"));
    assert_eq!(one.topic_defaults.max_message_bytes, 7);
    let value = one.value("message.max.bytes").unwrap();
    assert_eq!(value.source, ConfigSource::DynamicBroker);
    // What cannot be read falls through to the next layer.
    let wrong = set("message.max.bytes", "x");
    let (fallen, warnings) = node.with_dynamic(set("message.max.bytes", "6"), wrong);
    assert_eq!(fallen.topic_defaults.max_message_bytes, 6);
    assert_eq!(
        warnings[0].to_string(),
        "dynamic value ignored: Invalid value x for configuration message.max.bytes: Not a number \
         of type INT"
    );
    let (lasting, _) = node.with_dynamic(set("log.retention.ms", "9"), Overrides::new());
    assert_eq!(lasting.topic_defaults.retention_ms, 9);
}

#[test]
fn a_topic_has_its_own_values_then_the_brokers() {
    let (node, _) = load_base(
        "log.retention.minutes=2\nlog.retention.hours=1\nlog.roll.jitter.hours=1\n\
         log.flush.scheduler.interval.ms=8\nlog.cleanup.policy=compact\n",
    )
    .unwrap();
    let plain = node.topic(&Overrides::new());
    assert_eq!(plain, node.topic_defaults);
    assert_eq!(plain.retention_ms, 120_000);
    assert_eq!(plain.segment_jitter_ms, 3_600_000);
    assert_eq!(plain.flush_ms, 8);
    assert_eq!(
        plain.cleanup_policy,
        CleanupPolicies {
            compact: true,
            delete: false
        }
    );
    let overrides = [
        ("retention.ms", " 5 "),
        ("cleanup.policy", ""),
        ("compression.type", "zstd"),
        ("message.timestamp.type", "LogAppendTime"),
        ("leader.replication.throttled.replicas", "0:1,1:2"),
        ("follower.replication.throttled.replicas", "*"),
        ("segment.bytes", "not a number"),
        ("no.such.name", "x"),
    ];
    let overrides: Overrides = overrides
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect();
    let own = node.topic(&overrides);
    assert_eq!(own.retention_ms, 5);
    assert_eq!(
        own.cleanup_policy,
        CleanupPolicies {
            compact: false,
            delete: false
        }
    );
    assert_eq!(own.compression_type, CompressionType::Zstd);
    assert_eq!(own.message_timestamp_type, TimestampType::LogAppendTime);
    assert!(own.leader_replication_throttled_replicas.contains(1, 2));
    assert!(!own.leader_replication_throttled_replicas.contains(1, 1));
    assert_eq!(
        own.follower_replication_throttled_replicas,
        ThrottledReplicas::All
    );
    assert_eq!(own.segment_bytes, plain.segment_bytes);
    assert_eq!(own.segment_bytes_max(), plain.segment_bytes);
}

#[test]
fn unlimited_retention_survives_its_unit() {
    let (node, _) = load_base("log.retention.hours=-1\n").unwrap();
    assert_eq!(node.topic_defaults.retention_ms, -1);
}

#[test]
fn a_group_has_its_own_values_then_the_brokers() {
    let (node, _) = load_base("group.consumer.session.timeout.ms=50000\n").unwrap();
    assert_eq!(node.group_defaults.consumer_session_timeout_ms, 50_000);
    assert_eq!(
        node.group_defaults.streams_assignor_name.as_deref(),
        Some("sticky")
    );
    let set = [("share.auto.offset.reset", "by_duration:PT1M")];
    let overrides = set
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect();
    let group = node.group(&overrides);
    assert_eq!(
        group.share_auto_offset_reset,
        ShareAutoOffsetReset::ByDurationMs(60_000)
    );
}

#[test]
fn values_that_people_write_are_read() {
    let (node, _) = load_base(
        "auto.create.topics.enable= True \nbroker.rack=\nlog.dirs=/a, /b ,\n\
         listeners=PLAINTEXT://127.0.0.1:9092, CONTROLLER://127.0.0.1:9093,\n\
         process.roles=broker , controller\n",
    )
    .unwrap();
    assert!(node.broker.topics.auto_create_topics_enable);
    assert_eq!(node.broker.log_dirs(), ["/a", "/b"]);
    assert_eq!(node.listeners.bound.len(), 2);
    assert_eq!(node.broker.identity.broker_rack.as_deref(), Some(""));
}

#[test]
fn wrong_values_say_where_they_stand() {
    assert_eq!(
        errors(load_base("num.partitions=abc\nlog.segment.bytes=5\n")),
        [
            "Invalid value 5 for configuration log.segment.bytes: Value must be at least 1048576 \
             (server.properties:8)",
            "Invalid value abc for configuration num.partitions: Not a number of type INT \
             (server.properties:7)",
        ]
    );
    let variables = [("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "yes")];
    assert_eq!(
        errors(load_environment(&variables, &["num.io.threads=0"])),
        [
            "Invalid value yes for configuration auto.create.topics.enable: Expected value to be \
             either true or false (environment KAFKA_AUTO_CREATE_TOPICS_ENABLE)",
            "Invalid value 0 for configuration num.io.threads: Value must be at least 1 \
             (--override)",
        ]
    );
}

#[test]
fn what_must_be_set_is_asked_for() {
    let errors = errors(load_file("log.dirs=/a\n"));
    let missing = |name: &str| format!("Missing required configuration \"{name}\" which has no");
    let names = ["controller.listener.names", "node.id", "process.roles"];
    assert_eq!(errors.len(), names.len());
    for (error, name) in errors.iter().zip(names) {
        assert!(error.starts_with(&missing(name)), "{error}");
    }
    assert!(errors[2].contains("Set process.roles=broker,controller"));
}

#[test]
fn strangers_are_named_once_and_do_not_stop() {
    assert_eq!(
        warnings(load_base(
            "listeners.security.protocol.map=A:PLAINTEXT\nzookeeper.connect=zk:2181\n\
             listener.name.plaintext.ssl.key.password=secret\nnum.io.threads=9\n\
             num.network.threads=3\n"
        )),
        [
            "listener.name.plaintext.ssl.key.password=(hidden) has no effect: a listener has no \
             configuration of its own (server.properties:9)",
            "listeners.security.protocol.map is unknown and ignored; did you mean \
             listener.security.protocol.map? (server.properties:7)",
            "num.io.threads=9 has no effect: connections share one pool of threads, one a core \
             (server.properties:10)",
            "zookeeper.connect is unknown and ignored (server.properties:8)",
        ]
    );
}

#[test]
fn what_would_be_unsafe_to_ignore_is_refused() {
    let refused = |more: &str| {
        let errors = errors(load_base(more));
        assert_eq!(errors.len(), 1, "{more}: {errors:?}");
        errors[0].clone()
    };
    let class = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    assert_eq!(
        refused(&format!("authorizer.class.name={class}\n")),
        format!(
            "authorizer.class.name={class} is not supported: requests would be served that the \
             authorizer forbids (server.properties:7)"
        )
    );
    refused("remote.log.storage.system.enable=true\n");
    refused("create.topic.policy.class.name=a.B\n");
    refused("config.providers=file\n");
    let secure = refused(
        "listeners=SECURE://:9094,CONTROLLER://127.0.0.1:9093\n\
         inter.broker.listener.name=SECURE\n\
         listener.security.protocol.map=SECURE:SASL_SSL,CONTROLLER:PLAINTEXT\n",
    );
    assert!(
        secure.starts_with("listeners=SECURE://:9094 is not supported"),
        "{secure}"
    );
    // Their defaults are not.
    assert!(
        errors(load_base(
            "authorizer.class.name=\nremote.log.storage.system.enable=false\n"
        ))
        .is_empty()
    );
}

/// A line, and how the error begins; Kafka 4.4 refuses each, in most cases with the same words.
const CONFLICTS: &[(&str, &str)] = &[
    (
        "log.roll.ms=0",
        "log.roll.ms must be greater than or equal to 1",
    ),
    (
        "log.retention.hours=0",
        "log.retention.ms must be unlimited (-1) or, greater than",
    ),
    (
        "replica.fetch.wait.max.ms=40000",
        "replica.socket.timeout.ms should always be at least",
    ),
    (
        "replica.lag.time.max.ms=100",
        "replica.fetch.wait.max.ms should always be less than",
    ),
    (
        "queued.max.request.bytes=100",
        "queued.max.request.bytes must be larger or equal to",
    ),
    (
        "max.connections.per.ip=0",
        "max.connections.per.ip can be set to zero only if",
    ),
    (
        "log.cleaner.dedupe.buffer.size=100",
        "log.cleaner.dedupe.buffer.size must be at least",
    ),
    (
        "advertised.listeners=PLAINTEXT://0.0.0.0:9092",
        "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0.",
    ),
    (
        "listeners=PLAINTEXT://127.0.0.1:9092",
        "controller.listener.names must contain at least one value appearing in the \
         'listeners' configuration when running the KRaft controller role",
    ),
    (
        "listeners=PLAINTEXT://:9092,PLAINTEXT://:9093,CONTROLLER://:9094",
        "Each listener must have a different name",
    ),
    (
        "listeners=PLAINTEXT://:9092,X://:9093,CONTROLLER://:9094",
        "Invalid value X://:9093 for configuration listeners: No security protocol defined \
         for listener X",
    ),
    (
        "inter.broker.listener.name=EXTERNAL",
        "inter.broker.listener.name must be a listener name defined in advertised.listeners",
    ),
    (
        "security.inter.broker.protocol=SSL",
        "inter.broker.listener.name must be a listener name defined in advertised.listeners",
    ),
    (
        "controller.listener.names=",
        "controller.listener.names must not be empty",
    ),
    ("process.roles=", "process.roles must not be empty"),
    (
        "process.roles=controller",
        "The listeners config must only contain KRaft controller",
    ),
    (
        "process.roles=foo",
        "Invalid value foo for configuration process.roles: String must be",
    ),
    (
        "node.id=-1",
        "Invalid value -1 for configuration node.id: Value must be at least 0",
    ),
    ("broker.id=7", "node.id=1 and broker.id=7 must be the same"),
    (
        "controller.quorum.bootstrap.servers=",
        "Either controller.quorum.bootstrap.servers must",
    ),
    (
        "controller.quorum.bootstrap.servers=foo",
        "controller.quorum.bootstrap.servers: \"foo\"",
    ),
    (
        "controller.quorum.voters=localhost:9093",
        "controller.quorum.voters: \"localhost:9093\"",
    ),
    (
        "controller.quorum.voters=2@localhost:9093",
        "If process.roles contains the 'controller' role, the node id 1 must be included in \
         the set of voters controller.quorum.voters=2@localhost:9093",
    ),
    ("log.dirs=", "At least one log directory must be defined"),
    (
        "group.consumer.session.timeout.ms=10",
        "group.consumer.session.timeout.ms must be greater than or equal to \
         group.consumer.min.session.timeout.ms",
    ),
    (
        "group.consumer.heartbeat.interval.ms=45000",
        "group.consumer.heartbeat.interval.ms must be less than or equal to \
         group.consumer.max.heartbeat.interval.ms",
    ),
    (
        "group.coordinator.rebalance.protocols=consumer",
        "group.coordinator.rebalance.protocols: disabling the 'classic' protocol is",
    ),
    (
        "max.connections.per.ip.overrides=foo",
        "max.connections.per.ip.overrides must be",
    ),
];

#[test]
fn values_that_do_not_go_together_stop_the_start() {
    for (more, start) in CONFLICTS {
        let errors = errors(load_base(&format!("{more}\n")));
        let found = errors.iter().find(|error| error.starts_with(start));
        // Each says where the value was written, which is the line after the base.
        assert!(
            found.is_some_and(|error| error.contains("server.properties:7")),
            "{more}: {errors:?}"
        );
    }
    for accepted in [
        "queued.max.request.bytes=0",
        "advertised.listeners=PLAINTEXT://:9092",
        "controller.quorum.voters=1@localhost:9093",
        "log.cleanup.policy=",
        "listeners=plaintext://:21300,controller://:21301",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,",
        "socket.send.buffer.bytes=-5",
    ] {
        let errors = errors(load_base(&format!("{accepted}\n")));
        assert_eq!(errors, [""; 0], "{accepted}");
    }
}

#[test]
fn an_error_between_values_names_the_place_of_each() {
    let loaded = NodeConfig::load(Sources {
        file: Some(parse_properties("server.properties", BASE).unwrap()),
        environment: Vec::new(),
        arguments: argument_properties(["broker.id=9"]).unwrap(),
    });
    assert_eq!(
        errors(loaded),
        [
            "node.id=1 and broker.id=9 must be the same; leave out broker.id. (node.id: \
             server.properties:2, broker.id: --override)"
        ]
    );
}

#[test]
fn a_name_with_a_typo_is_named_beside_what_is_missing_for_it() {
    let errors = errors(load_file(&BASE.replace("process.roles", "proces.roles")));
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("Missing required configuration \"process.roles\""));
    assert_eq!(
        errors[1],
        "proces.roles is unknown and ignored; did you mean process.roles? (server.properties:1)"
    );
}

#[test]
fn listeners_are_bound_and_advertised() {
    let (node, _) = load_base(
        "listeners=INTERNAL://[::1]:9094,external://:9092,CONTROLLER://127.0.0.1:9093\n\
         advertised.listeners=EXTERNAL://broker.example:19092\n\
         listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,\
         CONTROLLER:PLAINTEXT\n\
         inter.broker.listener.name=EXTERNAL\n",
    )
    .unwrap();
    let listeners = &node.listeners;
    let shown: Vec<String> = listeners.bound.iter().map(Listener::to_string).collect();
    assert_eq!(
        shown,
        [
            "INTERNAL://[::1]:9094",
            "EXTERNAL://:9092",
            "CONTROLLER://127.0.0.1:9093"
        ]
    );
    assert_eq!(listeners.bound[0].host, "::1");
    let told: Vec<String> = listeners
        .advertised_broker()
        .map(Listener::to_string)
        .collect();
    assert_eq!(told, ["EXTERNAL://broker.example:19092"]);
    let told: Vec<String> = listeners
        .advertised_controller()
        .map(Listener::to_string)
        .collect();
    assert_eq!(told, ["CONTROLLER://127.0.0.1:9093"]);
    assert_eq!(listeners.inter_broker_name, "EXTERNAL");
    assert!(listeners.is_controller("CONTROLLER"));
}

#[test]
fn addresses_that_are_none_are_refused() {
    for bad in [
        "PLAINTEXT",
        "PLAINTEXT:9092",
        "://:9092",
        "PLAINTEXT://host",
        "PLAINTEXT://host:",
        "PLAINTEXT://host:x",
        "PLAINTEXT://host:70000",
        "PLAINTEXT://ho st:9092",
    ] {
        let errors = errors(load_base(&format!("listeners={bad},CONTROLLER://:9093\n")));
        assert!(errors[0].starts_with("Invalid value "), "{bad}: {errors:?}");
    }
    assert_eq!(parse_voter("3@[::1]:9093"), Some((3, "::1", 9093)));
    assert_eq!(parse_voter("3@host"), None);
}

/// A broker without the controller role names a controller listener that it does not have.
#[test]
fn a_broker_of_its_own() {
    let broker = "process.roles=broker\nnode.id=4\nlisteners=PLAINTEXT://h:9092\n\
        controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@c:9093\n";
    let (node, _) = load_file(broker).unwrap();
    assert!(node.broker.is_broker() && !node.broker.is_controller());
    assert_eq!(node.listeners.controller().count(), 0);
    let shared = errors(load_file(
        &broker.replace("h:9092", "h:9092,CONTROLLER://h:9093"),
    ));
    assert!(
        shared[0].contains("this node is no controller"),
        "{shared:?}"
    );
    let voter = errors(load_file(&broker.replace("node.id=4", "node.id=1")));
    assert!(
        voter[0].contains("must not be included in the set of voters"),
        "{voter:?}"
    );
}

#[test]
fn secrets_are_not_shown() {
    let (node, _) = load_base("ssl.key.password=secret\nunknown.password=secret\n").unwrap();
    let shown = |wanted: &str| node.given().find(|(name, _, _)| *name == wanted).unwrap().1;
    assert_eq!(shown("ssl.key.password"), "(hidden)");
    assert_eq!(shown("unknown.password"), "(hidden)");
    assert_eq!(shown("log.dirs"), "/tmp/a");
}
