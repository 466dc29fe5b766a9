"""The rows of `short`: a family of images, a way to start it, and what must work then."""

import json
import time

CP = {"KAFKA_NODE_ID": "1", "KAFKA_PROCESS_ROLES": "broker,controller",
      "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
      "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092",
      "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
      "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
      "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
      "CLUSTER_ID": "any text at all"}
CP_RUN = "/etc/confluent/docker/run"
BITNAMI = ["/opt/bitnami/scripts/kafka/entrypoint.sh", "/opt/bitnami/scripts/kafka/run.sh"]
PLAIN = {"ALLOW_PLAINTEXT_LISTENER": "yes"}
B = "--bootstrap-server localhost:9092"


def has(text, *parts):
    for part in parts:
        assert part in text, f"no {part!r} in {text[-1500:]!r}"


def lacks(text, part):
    assert part not in text, f"{part!r} in {text[-1500:]!r}"


def works(c, at=B, topic="t"):
    """A record and a group, by the tools of the image."""
    c.exec(f"echo one | kafka-console-producer {at} --topic {topic}")
    has(c.exec(f"kafka-console-consumer {at} --topic {topic} --group g --from-beginning "
               "--max-messages 1 --timeout-ms 20000"), "one")


def apache_nothing(row):
    c = row.box()
    c.start()
    seconds = c.ready()
    # What the proposal of apache/kafka-native (KIP-974) measured on its machine. No limit here: a
    # busy machine is no bug.
    print(f"   start script to ready: {seconds:.2f} s (the broker alone, KIP-974: 1.15 s in a JVM, "
          "0.13 s native)")
    row.check("each line that is waited for, once", lambda: [
        has(str(c.log().count(line)), "1") for line in (
            "Transitioning from RECOVERY to RUNNING", "[KafkaServer id=1] started",
            "Kafka Server started", "Creating new log file", "Kafka broker started",
            "Checking need to trigger auto leader balancing")] and None)
    row.check("a record, a group", lambda: works(c))
    row.check("health commands end with 0", lambda: [c.exec(line) for line in HEALTH] and None)
    row.check("a tool wherever images have it", lambda: [
        c.exec(f"{place}kafka-topics{end} {B} --list", user=user) for place, end, user in (
            ("/opt/kafka/bin/", ".sh", None), ("", ".sh", None), ("", "", None),
            ("/usr/bin/", "", None), ("/bin/", "", None), ("./opt/kafka/bin/", ".sh", None),
            ("/opt/bitnami/kafka/bin/", ".sh", "1001:0"), ("/kafka/bin/", ".sh", "0:0"),
            ("/opt/kafka_2.11-0.10.1.0/bin/", ".sh", "0:0"))] and None)
    row.check("a health command behind another program", lambda: c.exec(
        "set -e; timeout 5 nc -z localhost 9092; env A=b nc -z localhost 9092; "
        "echo localhost 9092 | xargs nc -z; ! curl -sf http://localhost:1/; ! wget -q -O - http://localhost:1/") and None)
    row.check("no --partitions, one dash, the equals form", lambda: (
        has(c.exec("kafka-topics -bootstrap-server=localhost:9092 -create -topic notes"),
            "Created topic notes.")))
    row.check("JMX_PORT does not disturb a tool", lambda: has(
        c.exec(f"kafka-topics {B} --list", env={"JMX_PORT": "9092"}), "notes"))
    row.check("the programs that scripts call", lambda: c.exec(
        "for p in sh bash sed cat echo chmod sleep hostname nc grep awk wget ps curl route "
        "netstat id mktemp date head tail cut tr find xargs env timeout nslookup; do "
        "command -v $p > /dev/null || echo missing $p; done") or None)
    row.check("SIGTERM ends it with 0", lambda: (c.signal("TERM"), c.end() or None)[1])
    row.check("nothing in its log but what there is to say", lambda: lacks(c.log(), " WARN "))


HEALTH = [
    f"kafka-topics {B} --list", "kafka-topics.sh --list --bootstrap-server=localhost:9092",
    f"kafka-broker-api-versions {B}", f"kafka-broker-api-versions.sh {B} --version",
    "kafka-cluster.sh cluster-id --bootstrap-server :9092", f"kafka-log-dirs {B} --describe",
    f"kafka-metadata-quorum.sh {B} describe --status", "nc -z localhost 9092",
    "nc -vz localhost 9092", "exec 3<>/dev/tcp/localhost/9092",
    "cub kafka-ready -b localhost:9092 1 30", "cub kafka-ready 1 30 -b localhost:9092",
    "ps ax | grep -i [k]afka", "jps | grep Kafka", "jps | grep -q SupportedKafka",
    "kafka-topics --zookeeper zookeeper:2181 --list", "ub kafka-ready -b localhost:9092 1 30",
]


def apache_before(row):
    """A health command before there is a broker: some wait, as Kafka's tools do, none says yes."""
    c = row.box()
    lines = [line for line in HEALTH if "--version" not in line]
    row.check("no health command says yes", lambda: [
        line for line in lines
        if c.exec(f"timeout 1 bash -c '{line}' > /dev/null 2>&1 && echo yes", code=None)] or None)


def apache_ways(row):
    c = row.box({"TRACE": "true"}, cwd="/")
    c.start("/etc/kafka/docker/run", "KAFKA_NUM_PARTITIONS=3", "KAFKA_MIN_INSYNC_REPLICAS=2")
    row.check("NAME=VALUE words of run", lambda: (c.ready(), works(c), has(
        c.exec(f"kafka-topics {B} --describe --topic t"), "PartitionCount: 3",
        "min.insync.replicas=2")) and None)
    c = row.box({"KAFKA_LOG_RETENTION_HOURS": "5", "KAFKA_X__Y___Z": "harmless"})
    c.write("/mnt/shared/config/server.properties",
            "process.roles=to be overridden\nnode.id=99\nlog.retention.hours=2\nnum.partitions=4\n")
    c.env["KAFKA_PROCESS_ROLES"] = "broker,controller"
    c.env["KAFKA_NODE_ID"] = "1"
    c.start()
    row.check("a mounted file below the environment", lambda: (c.ready(), works(c), has(
        c.exec("cat /opt/kafka/config/server.properties"), "log.retention.hours=5",
        "num.partitions=4", "node.id=1", "x.y-z=harmless".replace(".y-z", "_y-z"))) and None)
    c = row.box({"KAFKA_ADVERTISED_LISTENERS": "DOCKER://kafka:9092,HOST://localhost:29092,",
                 "KAFKA_LISTENERS": "DOCKER://kafka:9092,HOST://:29092,CONTROLLER://:9093,",
                 "KAFKA_INTER_BROKER_LISTENER_NAME": "DOCKER",
                 "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":
                     "CONTROLLER:PLAINTEXT,DOCKER:PLAINTEXT,HOST:PLAINTEXT",
                 "KAFKA_PORT": "tcp://10.0.0.1:9092", "KAFKA_SERVICE_HOST": "10.0.0.1",
                 "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1", "CLUSTER_ID": "free text, 25 characters"})
    c.start()
    row.check("an alias as host, trailing commas, Kubernetes' variables", lambda: (
        c.ready(), works(c, "--bootstrap-server localhost:29092"),
        has(c.exec("cat /tmp/kraft-combined-logs/meta.properties"), "free text, 25 characters"))
        and None)
    c = row.box()
    row.check("a format and a start of one's own", lambda: (
        c.exec("kafka-storage.sh random-uuid > /tmp/id; cp /opt/kafka/config/server.properties "
               "/tmp/f; /opt/kafka/bin/kafka-storage.sh format -t $(cat /tmp/id) -c /tmp/f"),
        has(c.exec("kafka-storage.sh format -t $(cat /tmp/id) -c /tmp/f", code=1), "already"),
        c.exec("kafka-storage.sh format -g -t $(cat /tmp/id) -c /tmp/f"),
        c.start("sh", "-c", "cd /opt/kafka && bin/kafka-server-start.sh /tmp/f --override "
                            "listeners=PLAINTEXT://:9092,CONTROLLER://:9093 --override "
                            "advertised.listeners=PLAINTEXT://localhost:9092"),
        c.ready(), works(c)) and None)


def follows(row):
    """What is told follows the way a client came, unless somebody has said it."""
    def told(c, address):
        # The addresses of a box: its loopback, and one more on it that is no loopback address.
        c.exec("ip addr add 172.30.0.5/24 dev lo 2> /dev/null; true", user="0:0")
        c.ready()
        return c.exec(f"kafka-broker-api-versions --bootstrap-server {address}").split()[0]
    c = row.box()
    c.start()
    row.check("by the loopback", lambda: has(told(c, "127.0.0.1:9092"), "localhost:9092"))
    row.check("by another address", lambda: has(told(c, "172.30.0.5:9092"), "172.30.0.5:9092"))
    c = row.box({"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092"})
    c.start()
    row.check("what is said is told to all", lambda: has(
        told(c, "172.30.0.5:9092"), "localhost:9092"))


def files(row):
    """Files that people name, copy out, or change by sed before the start."""
    c = row.box()
    row.check("are there, and may be changed", lambda: c.exec(
        "set -e; for d in /opt/kafka/config /etc/kafka; do for f in producer.properties "
        "consumer.properties log4j2.yaml tools-log4j2.yaml log4j.properties server.properties; do "
        "sed -i 's/nothing/else/' $d/$f; done; done; cd /opt/kafka/config; "
        "sed -i 's/:9092/:19092/g' server.properties; test -f kraft/server.properties; "
        "test -f kraft/broker.properties; test -f kraft/controller.properties; "
        "test -d /opt/kafka/logs; test -d /opt/kafka/libs; test -d /etc/kafka/secrets") and None)
    c.start("sh", "-c", "cd /opt/kafka && id=$(bin/kafka-storage.sh random-uuid) && "
            "bin/kafka-storage.sh format -t=$id -c config/server.properties && "
            "exec bin/kafka-server-start.sh config/server.properties")
    row.check("the sample as it was changed", lambda: (
        c.ready(), works(c, "--bootstrap-server localhost:19092")) and None)
    row.check("a client's file", lambda: c.exec(
        "echo x | kafka-console-producer.sh --bootstrap-server localhost:19092 --topic f "
        "--command-config /opt/kafka/config/producer.properties") and None)
    c = row.box()
    c.start("sh", "-c", "cd /opt/kafka/config && kafka-server-start.sh controller.properties & "
            "kafka-server-start.sh /opt/kafka/config/broker.properties")
    row.check("a controller and a broker by their samples", lambda: (
        c.wait_log("(?s)(Kafka Server started.*){2}"), c.exec(
            f"kafka-metadata-quorum.sh {B} describe --status")) and None)


def cp_scripts(row):
    c = row.box(CP)
    c.start("bash", "-c", "echo '' > /etc/confluent/docker/ensure; "
            "sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure; "
            "echo 'kafka-storage format --ignore-formatted -t \"$(kafka-storage random-uuid)\" -c "
            "/etc/kafka/kafka.properties' >> /etc/confluent/docker/configure; " + CP_RUN)
    row.check("scripts that were edited", lambda: (c.ready(), works(c)) and None)
    c = row.box({**CP, "KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN"})
    c.start("sh", "-c", ". /etc/confluent/docker/bash-config; /etc/confluent/docker/configure && "
            "exec /etc/confluent/docker/launch")
    row.check("configure and launch alone, by sh", lambda: (c.ready(), works(c)) and None)
    row.check("the level of the log", lambda: lacks(c.log(), " INFO "))
    c = row.box({"KAFKA_BROKER_ID": "1", "KAFKA_ZOOKEEPER_CONNECT": "nobody:2181",
                 "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092",
                 "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9093,BROKER://localhost:9092",
                 "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                 "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER"})
    c.start("bash", "-c", "printf 'clientPort=2181\\n' > zookeeper.properties; "
            "zookeeper-server-start zookeeper.properties & " + CP_RUN)
    row.check("ZooKeeper's days", lambda: (c.wait_log(r"\[KafkaServer id=1\] started"),
                                           works(c)) and None)
    row.check("its port answers", lambda: has(
        c.exec("printf ruok | nc -w 2 localhost 2181"), "imok"))
    row.check("a user by --zookeeper", lambda: c.exec(
        "kafka-configs --alter --zookeeper localhost:2181 --entity-type users --entity-name app "
        "--add-config 'SCRAM-SHA-512=[password=pw]'") and None)
    row.check("an address that is altered while it runs", lambda: (
        c.exec("kafka-configs --alter --bootstrap-server 0.0.0.0:9092 --entity-type brokers "
               "--entity-name 1 --add-config 'advertised.listeners=[PLAINTEXT://127.0.0.1:9093,"
               "BROKER://localhost:9092]'"),
        has(c.exec("kafka-broker-api-versions --bootstrap-server localhost:9093").split()[0],
            "127.0.0.1:9093")) and None)
    row.check("checks of Confluent's scripts", lambda: c.exec(
        "set -e; cub zk-ready nobody:2181 1 || true; dub ensure KAFKA_BROKER_ID; "
        "dub path /var/lib/kafka/data writable; dub wait localhost 9092 5; "
        "dub ensure-atleast-one A KAFKA_BROKER_ID; ub ensure KAFKA_BROKER_ID; "
        "ub path /var/lib/kafka/data writable; ub wait localhost 9092 5; ! dub ensure NOBODY") and None)


def confluent_local(row):
    c = row.box({"KAFKA_ADVERTISED_LISTENERS":
                 "PLAINTEXT://localhost:29092,PLAINTEXT_HOST://localhost:9092",
                 "KAFKA_REST_HOST_NAME": "rest-proxy", "KLAMM_DIALECT": "confluent-local"})
    c.start(CP_RUN)
    row.check("one name, the rest is the image's", lambda: (c.ready(), works(c), has(
        c.exec("cat /etc/kafka/kafka.properties"), "log.dirs=/tmp/kraft-combined-logs"), lacks(
        c.exec("cat /etc/kafka/kafka.properties"), "rest")) and None)
    row.check("SIGINT ends it with 0", lambda: (c.signal("INT"), c.end() or None)[1])


def bitnami(row):
    for user in ("1001:0", "12345:0", "0:0"):
        c = row.box(PLAIN, user=user, cwd="/")
        c.start(*BITNAMI)
        row.check(f"as {user}", lambda c=c: (c.ready(), works(c), has(
            c.log(), "** Starting Kafka setup **", "** Kafka setup finished! **",
            "** Starting Kafka **")) and None)
    c = row.box({**PLAIN, "KAFKA_CFG_AUTO.CREATE.TOPICS.ENABLE": "false",
                 "KAFKA_KRAFT_CLUSTER_ID_FILE": "/run/id", "KAFKA_NUM_PARTITIONS": "2",
                 "KAFKA_NODE_ID_COMMAND": "echo 7", "KAFKA_JVM_OPTS": "-XX:+UseG1GC",
                 "KAFKA_OPTS": "-javaagent:/nowhere.jar=7071", "KAFKA_EXTRA_FLAGS":
                     "--override log.retention.ms=77777"}, user="1001:0", cwd="/")
    c.write("/run/id", "id-of-a-file")
    c.write("/docker-entrypoint-initdb.d/a.sh", """
. /opt/bitnami/scripts/libkafka.sh
. /opt/bitnami/scripts/libos.sh
kafka_server_conf_set message.max.bytes 2000000
export KAFKA_CFG_LOG_RETENTION_HOURS=9
kafka_configure_from_environment_variables
replace_in_file "$KAFKA_CONF_FILE" 'num.partitions=.*' num.partitions=5
retry_while true 1 1 && is_boolean_yes yes && info sourced
""")
    c.start(*BITNAMI)
    row.check("an init script with the image's libraries", lambda: (
        c.ready(), has(c.log(), "sourced"),
        has(c.exec("kafka-configs.sh --bootstrap-server localhost:9092 --describe --all "
                   "--entity-type brokers --entity-name 7"), "message.max.bytes=2000000",
            "log.retention.hours=9", "num.partitions=5", "log.retention.ms=77777",
            "auto.create.topics.enable=false"),
        has(c.exec("cat /bitnami/kafka/data/meta.properties"), "cluster.id=id-of-a-file"))
        and None)
    c = row.box({**PLAIN, "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9292"}, user="1001:0", cwd="/")
    c.write("/bitnami/kafka/config/server.properties",
            "process.roles=broker,controller\nnode.id=3\nlisteners=PLAINTEXT://:9192,"
            "CONTROLLER://:9193\ncontroller.listener.names=CONTROLLER\n"
            "controller.quorum.voters=3@localhost:9193\nlog.dirs=/bitnami/kafka/data\n"
            "offsets.topic.replication.factor=1\n")
    c.start(*BITNAMI)
    row.check("a mounted file is all there is", lambda: (
        c.ready(), works(c, "--bootstrap-server localhost:9192")) and None)
    c = row.box(PLAIN, user="1001:0", cwd="/")
    c.start(BITNAMI[0], "sh", "-c", "echo as it is")
    row.check("any other command is run as it is", lambda: (
        c.wait_log("as it is"), c.end(), lacks(c.log(), "Kafka setup")) and None)


def wurstmeister(row):
    c = row.box({"KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181", "KAFKA_PORT": "9092",
                 "KAFKA_ADVERTISED_HOST_NAME": "localhost", "BROKER_ID_COMMAND": "echo 7",
                 "KAFKA_CREATE_TOPICS": "input:2:1, output:1:1:compact --config=segment.ms=1000",
                 "CUSTOM_INIT_SCRIPT": "touch /tmp/touched", "LOG4J_LOGGER_KAFKA": "DEBUG"},
                user="0:0", cwd="/")
    c.start("start-kafka.sh")

    def topics():
        c.ready()
        for _ in range(100):
            found = c.exec(f"kafka-topics.sh {B} --list").split()
            if found == ["input", "output"]:
                return has(c.exec(f"kafka-topics.sh {B} --describe --topic output"),
                           "cleanup.policy=compact", "segment.ms=1000")
            time.sleep(0.1)
        return found
    row.check("its topics", topics)
    row.check("the init script, the id, the data's place", lambda: (
        c.exec("test -f /tmp/touched && test -d /kafka/kafka-logs-c0ffee/input-0"),
        has(c.exec("cat /kafka/kafka-logs-c0ffee/meta.properties"), "node.id=7")) and None)
    row.check("--zookeeper by $KAFKA_HOME", lambda: has(c.exec(
        "$KAFKA_HOME/bin/kafka-topics.sh --zookeeper zookeeper:2181 --list"), "input"))


def old_ones(row):
    c = row.box({"ADVERTISED_HOST": "localhost", "ADVERTISED_PORT": "9092", "NUM_PARTITIONS": "3"},
                user="0:0", cwd="/")
    c.start()
    row.check("spotify/kafka", lambda: (
        c.ready(), works(c), has(c.exec(f"kafka-topics.sh {B} --describe --topic t"),
                                 "PartitionCount: 3"),
        has(c.exec("printf ruok | nc -w 2 localhost 2181"), "imok"),
        c.exec("test -d /tmp/kafka-logs/t-0")) and None)
    c = row.box({"ADV_HOST": "localhost", "REST_PORT": "0", "KAFKA_LOG_RETENTION_MS": "1000",
                 "KAFKA_PORT": "tcp://10.0.0.9:9092", "BROKER_PORT": "9092"}, user="0:0", cwd="/")
    c.start()
    row.check("fast-data-dev", lambda: (
        c.ready(), has(c.log(), "only the broker is here"), c.exec("nc -z localhost 2181"),
        has(c.exec("cat /opt/kafka/config/server.properties"), "log.retention.ms=1000",
            "log.dirs=/data/kafka/logdir")) and None)
    c = row.box({"ZOOKEEPER_CONNECT": "zookeeper:2181", "BROKER_ID": "1", "KAFKA_BROKER":
                 "localhost:9092", "CREATE_TOPICS": "audit:2:1:compact", "LOG_LEVEL": "WARN",
                 "HEAP_OPTS": "-Xmx1G", "ZOOKEEPER_PORT_2181_TCP_ADDR": "10.1.2.3",
                 "ADVERTISED_HOST_NAME": "localhost"}, cwd="/")
    c.start("/docker-entrypoint.sh", "start")
    row.check("debezium/kafka and its commands", lambda: (
        c.ready(), c.exec("/docker-entrypoint.sh create-topic -p 3 -r 1 extra"),
        has(c.exec("/docker-entrypoint.sh list-topics"), "extra"), works(c),
        has(c.exec("/docker-entrypoint.sh watch-topic -a -k -m 1 t"), "one"),
        has(c.exec("ls /kafka/data/1"), "audit-1")) and None)
    c = row.box({"KAFKA_LISTENERS": "PLAINTEXT://:9092", "KAFKA_RESTART_ATTEMPTS": "10",
                 "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092",
                 "KAFKA_ZOOKEEPER_SESSION_TIMEOUT": "6000"}, cwd="/")
    c.start()
    row.check("obsidiandynamics/kafka", lambda: (c.ready(), works(c)) and None)
    c = row.box({"LOG_DIR": "/tmp/logs", "L": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093"},
                cwd="/opt/kafka")
    c.start("sh", "-c", "bin/kafka-server-start.sh config/server.properties --override "
            "listeners=$L --override advertised.listeners=PLAINTEXT://localhost:9092")
    row.check("strimzi/kafka", lambda: (c.ready(), works(c)) and None)


def klamm_itself(row):
    c = row.box()

    def json_lines():
        lines = c.exec("klamm --log-json --override listeners=foo --override node.id=x",
                       code=2).splitlines()
        assert len(lines) >= 2, lines
        assert all(json.loads(line)["level"] == "ERROR" for line in lines), lines
        has(lines[0], "--override")
    row.check("what stops a start is JSON where the log is", json_lines)
    row.check("an error between values names both places", lambda: has(
        c.exec("klamm --override node.id=3 --override broker.id=9", code=2),
        "node.id: --override", "broker.id: --override"))
    c.start("klamm", "--log-json", "--as-kafka", "/opt/kafka/config/server.properties")
    row.check("the lines that scripts wait for too", lambda: (c.ready(), [
        json.loads(line) for line in c.log().splitlines()]) and None)
    row.check("another id than that of the data is refused", lambda: (
        c.signal("TERM"), c.end(), has(c.exec(
            "klamm --override broker.id=9 --override log.dirs=/tmp/kraft-combined-logs", code=1),
            "belongs to node.id=1")) and None)
    row.check("a directory of root's: the error says what to do", lambda: (
        c.exec("mkdir -p /srv/data", user="0:0"), has(c.exec(
            "klamm --override log.dirs=/srv/data", code=1), "chown"))[1])


def volumes(row):
    c = row.box({**CP, "KAFKA_LOG_DIRS": "/var/lib/kafka/data"})
    c.exec("mkdir /var/lib/kafka/data/lost+found && echo x > /var/lib/kafka/data/clusterID")
    c.start(CP_RUN)
    row.check("foreign entries in the data", lambda: (c.ready(), works(c)) and None)
    row.check("stop and start keep the data", lambda: (
        c.signal("TERM"), c.end(), c.start(CP_RUN),
        c.wait_log("(?s)Kafka Server started.*Kafka Server started"),
        has(c.exec(f"kafka-consumer-groups {B} --describe --group g"), "t")) and None)


def refusals(row):
    for what, env in {
        "needs TLS": {"KAFKA_ADVERTISED_LISTENERS": "SSL://localhost:9093"},
        "needs SASL": {"KAFKA_ADVERTISED_LISTENERS": "SASL_PLAINTEXT://localhost:9093",
                       "KAFKA_OPTS": "-Djava.security.auth.login.config=/x"},
        "name the controllers in KAFKA_CONTROLLER_QUORUM_VOTERS": {
            "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181", "KAFKA_BROKER_ID": "2",
            "KAFKA_DEFAULT_REPLICATION_FACTOR": "3"},
    }.items():
        c = row.box(env)
        c.start()
        row.check(what, lambda c=c, what=what: (
            None if c.end() == 1 else "exit code", has(c.log(), what))[0])


ROWS = {
    "apache": apache_nothing,
    "apache before": apache_before,
    "apache ways": apache_ways,
    "advertised": follows,
    "files": files,
    "cp": cp_scripts,
    "confluent-local": confluent_local,
    "bitnami": bitnami,
    "wurstmeister": wurstmeister,
    "old ones": old_ones,
    "klamm": klamm_itself,
    "volumes": volumes,
    "refusals": refusals,
}
