"""The checks of each compose file in cases/."""


def tools(case, service, address, topic, dot_sh=True):
    name = "kafka-topics.sh" if dot_sh else "kafka-topics"
    case.tool(service, f"{name} --bootstrap-server {address} --create --topic {topic}")


def described(case, service, address, topic):
    line = f"kafka-topics --bootstrap-server {address} --describe --topic {topic}"
    return case.tool(service, line)


def apache_nothing(case):
    case.up()
    case.check("health goes green", lambda: case.healthy("kafka"))
    case.check("a client on the host", lambda: expect(
        case.host("localhost:9092", "a", "roundtrip", "metadata"), "1@localhost:9092"))
    case.check("transactions", lambda: case.host("localhost:9092", "tx", "transaction") and None)
    case.check("the tool by its path, without --partitions", lambda: contains(
        case.tool("kafka", "/opt/kafka/bin/kafka-topics.sh --bootstrap-server localhost:9092 "
                           "--create --topic notes"), "Created topic notes."))
    case.check("a command of one's own", lambda: expect(case.engine.docker(
        "run", "--rm", "klamm:drop-in", "sh", "-c", "echo hi").stdout, "hi"))
    case.compose("stop")
    case.compose("start")

    def kept():
        case.healthy("kafka")
        expect(case.host("localhost:9092", "a", "committed"), "10")
        assert len(case.host("localhost:9092", "a", "read").split("\n")) == 11
    case.check("stop and start keep topics, records and commits", kept)


def apache_volume(case):
    case.up()
    case.check("health goes green", lambda: case.healthy("kafka"))
    case.check("the neighbour waited and got its record", lambda: case.ended("probe"))
    case.check("a client in the network", lambda: case.network("kafka:9092", "net"))
    case.check("log.dirs is the image's", lambda: contains(
        case.tool("kafka", "cat /opt/kafka/config/server.properties"),
        "log.dirs=/tmp/kraft-combined-logs"))
    case.check("the volume holds the data", lambda: contains(
        case.tool("kafka", "ls /var/lib/kafka/data"), "spans-0"))


def apache_actions(case):
    case.up()
    case.check("health by a bare name goes green", lambda: case.healthy("kafka"))
    case.check("the published port", lambda: expect(
        case.host("localhost:9092", "a", "roundtrip", "metadata"), "1@localhost:9092"))
    case.check("a step's tool", lambda: contains(
        case.tool("kafka", "/opt/kafka/bin/kafka-topics.sh --bootstrap-server localhost:9092 "
                           "--create --topic jobs --partitions 2"), "Created topic jobs."))
    case.check("a line says what is bound", lambda: contains(
        case.logs("kafka"), "listens on every address"))


def bitnami_actions(case):
    case.up()
    case.check("health goes green", lambda: case.healthy("kafka"))
    case.check("the host's listener, groups", lambda: expect(
        case.host("localhost:9094", "a", "roundtrip", "metadata"), "0@localhost:9094"))
    case.check("the network's listener", lambda: case.network("kafka:9092", "net"))
    case.check("the cluster id", lambda: contains(case.tool(
        "kafka", "kafka-cluster.sh cluster-id --bootstrap-server localhost:9092"),
        "my-ci-cluster-0001"))
    case.check("a producer on an empty input", lambda: case.tool(
        "kafka", "kafka-console-producer.sh --bootstrap-server kafka:9092 --topic t < /dev/null")
        and None)


def cp_two_clusters(case):
    case.up()
    case.check("init ends with 0", lambda: case.ended("init"))
    case.check("its topics and records", lambda: (
        contains(described(case, "kafka0", "localhost:29092", "users.log"), "PartitionCount: 3"),
        expect(str(len(case.host("localhost:29092", "users.log", "read").split())), "2")) and None)
    case.check("they are in one cluster only", lambda: expect(
        case.tool("kafka1", "kafka-topics --bootstrap-server kafka1:29092 --list"), ""))
    case.check("the host reaches both", lambda: (
        expect(case.host("localhost:29092", "a", "roundtrip", "metadata"), "1@localhost:29092"),
        expect(case.host("localhost:29093", "a", "roundtrip", "metadata"), "1@localhost:29093"))
        and None)
    case.check("the network reaches both", lambda: (
        case.network("kafka0:29092", "n"), case.network("kafka1:29092", "n")) and None)
    case.check("JMX_PORT does not disturb a tool", lambda: contains(
        case.tool("kafka0", "kafka-topics --bootstrap-server localhost:9092 --list"), "users.two"))


def cp_patched(case):
    case.up()
    case.check("starts", lambda: case.ready("kafka0"))
    case.check("the host", lambda: expect(
        case.host("localhost:9092", "a", "roundtrip", "metadata"), "1@localhost:9092"))
    case.check("the network", lambda: case.network("kafka0:29092", "n"))
    case.check("the id of the appended line", lambda: contains(
        case.tool("kafka0", "cat /tmp/kraft-combined-logs/meta.properties"),
        "cluster.id=q1Sh-9_ISia_zwGINzRvyQ"))
    case.compose("stop")
    case.up()
    case.check("patched twice", lambda: case.wait_log("kafka0", "Kafka Server started", times=2))
    case.check("the data is kept", lambda: expect(
        case.host("localhost:9092", "a", "committed"), "10"))


def cp_three_without_names(case):
    """Nothing says where the peers are: refused, rather than three clusters."""
    case.up()
    for service in ("kafka1", "kafka2", "kafka3"):
        case.check(f"{service} is refused in one line", lambda service=service: (
            case.ended(service, 1),
            contains(case.logs(service), "name the controllers in KAFKA_CONTROLLER_QUORUM_VOTERS"))
            and None)


def cp_server(case):
    case.up()
    case.check("starts", lambda: case.ready("broker"))
    case.check("the host", lambda: expect(
        case.host("localhost:9092", "a", "roundtrip", "metadata"), "1@localhost:9092"))
    case.check("transactions", lambda: case.host("localhost:9092", "tx", "transaction"))
    case.check("a registry's topic", lambda: (
        case.tool("broker", "kafka-topics --bootstrap-server broker:29092 --create --topic _schemas "
                            "--partitions 1 --replication-factor 1 --config cleanup.policy=compact"),
        case.network("broker:29092", "_schemas", "key", "-K:")) and None)
    case.check("Connect's topics", lambda: case.tool(
        "broker", "for t in configs offsets status; do kafka-topics --bootstrap-server broker:29092 "
        "--create --topic connect-$t --replication-factor 1 --config cleanup.policy=compact "
        "|| exit 1; done") and None)
    case.check("vendor names in one line", lambda: expect(
        str(case.logs("broker").count("accepted without effect")), "1"))


def cp_formats_itself(case):
    case.up()
    case.check("health by nc goes green", lambda: case.healthy("broker"))
    case.check("the host, 4 MB", lambda: expect(
        case.host("localhost:9092", "a", "roundtrip", "metadata"), "1@localhost:9092")
        or case.host("localhost:9092", "big", "large") and None)
    case.check("the network", lambda: case.network("broker:29092", "n"))
    case.check("its own cluster id", lambda: case.tool(
        "broker", "grep -q \"cluster.id=$(cat /var/lib/kafka/data/clusterID)\" "
        "/var/lib/kafka/data/meta.properties") and None)
    case.compose("down", "-t", "10")
    case.up()
    case.check("a second up on the volume", lambda: case.healthy("broker"))
    case.check("the data is kept", lambda: expect(
        case.host("localhost:9092", "a", "committed"), "10"))


def cp_ui(case):
    case.up()
    case.check("starts", lambda: case.ready("kafka"))
    case.check("12 partitions by default", lambda: (
        case.network("kafka:9092", "auto"),
        contains(described(case, "kafka", "kafka:9092", "auto"), "PartitionCount: 12")) and None)
    case.check("gzip", lambda: contains(case.tool(
        "kafka", "echo x | kafka-console-producer --bootstrap-server kafka:9092 --topic auto "
        "--compression-codec snappy; for d in /var/lib/kafka/data/auto-*; do kafka-dump-log "
        "--files $d/00000000000000000000.log; done"), "compresscodec: gzip"))
    case.check("what a UI does", lambda: case.tool(
        "kafka", "B='--bootstrap-server kafka:9092'; set -e; kafka-topics $B --create --topic ui; "
        "kafka-configs $B --alter --topic ui --add-config retention.ms=5000; "
        "kafka-configs $B --describe --topic ui | grep -q retention.ms=5000; "
        "echo '{\"partitions\":[{\"topic\":\"auto\",\"partition\":0,\"offset\":-1}],\"version\":1}' "
        "> /tmp/d.json; kafka-delete-records $B --offset-json-file /tmp/d.json; "
        "kafka-consumer-groups $B --list; kafka-topics $B --delete --topic ui") and None)
    case.check("the log is quiet", lambda: absent(case.logs("kafka"), " INFO "))
    case.check("the authorizer without ACLs is said", lambda: contains(
        case.logs("kafka"), "everyone is let in"))


def confluent_local(case):
    case.up()
    case.check("health goes green", lambda: case.healthy("broker"))
    case.check("the host", lambda: expect(
        case.host("localhost:9092", "a", "roundtrip", "metadata"), "1@localhost:9092"))
    case.check("one name only", lambda: (case.ready("simple"), expect(
        case.host("localhost:29094", "a", "roundtrip", "metadata"), "1@localhost:29094")) and None)
    case.check("the network", lambda: case.network("broker:19092", "n"))
    case.check("the image's cluster id and place", lambda: contains(
        case.tool("broker", "cat /tmp/kraft-combined-logs/meta.properties"),
        "cluster.id=4L6g3nShT-eMCtK--X86sw"))
    case.check("the REST proxy is said to be missing", lambda: contains(
        case.logs("simple"), "REST proxy"))
    case.check("SIGINT stops it", lambda: (
        case.engine.docker("kill", "-s", "INT", case.id("broker")),
        case.ended("broker", 0)) and None)


def bitnami_minimal(case):
    case.up()
    case.check("starts", lambda: case.ready("kafka"))
    case.check("the network", lambda: case.network("kafka:9092", "n"))
    case.check("advertised as its own host name", lambda: expect(
        case.brokers("kafka:9092")[0][1].split(":")[0], case.id("kafka")[:12]))
    case.check("a bare tool, and the file in both places", lambda: contains(case.tool(
        "kafka", "kafka-topics.sh --bootstrap-server localhost:9092 --list && cat "
        "/opt/bitnami/kafka/config/server.properties "
        "/opt/bitnami/kafka/config/kraft/server.properties"), "log.dirs=/bitnami/kafka/data"))
    line = "grep cluster.id /bitnami/kafka/data/meta.properties"
    before = case.tool("kafka", line)
    case.compose("down", "-t", "10")
    case.up()
    case.check("down and up keep id and topics", lambda: (
        case.ready("kafka"), expect(case.tool("kafka", line), before.strip()),
        contains(case.tool("kafka", "kafka-topics.sh --bootstrap-server localhost:9092 --list"),
                 "n")) and None)
    case.check("the lines of its log", lambda: contains(
        case.logs("kafka"), "** Kafka setup finished! **"))


def bitnami_analytics(case):
    case.up()
    case.check("health goes green", lambda: case.healthy("kafka"))
    case.check("node 1001, the network", lambda: (
        case.network("kafka:9092", "n"),
        expect(str(case.brokers("kafka:9092")), "[('1001', 'kafka:9092')]")) and None)
    case.check("retention", lambda: contains(case.tool(
        "kafka", "kafka-configs.sh --bootstrap-server localhost:9092 --describe --all "
        "--entity-type topics --entity-name n"), "retention.ms=3600000"))
    case.check("--zookeeper in the broker's container", lambda: case.tool(
        "kafka", "kafka-topics.sh --create --if-not-exists --topic events --partitions 1 "
        "--replication-factor 1 --zookeeper zookeeper:2181") and None)
    case.check("starts without the ZooKeeper", lambda: (
        case.compose("stop", "zookeeper", "kafka"), case.compose("start", "kafka"),
        case.healthy("kafka")) and None)


def soldevelo(case):
    case.up()
    case.check("starts", lambda: case.ready("kafka"))
    case.check("node 0, a topic made by asking", lambda: (
        case.network("kafka:9092", "async-topic"),
        expect(str(case.brokers("kafka:9092")), "[('0', 'kafka:9092')]")) and None)
    case.check("a group", lambda: contains(case.tool(
        "kafka", "kafka-console-consumer.sh --bootstrap-server kafka:9092 --topic async-topic "
        "--group g --from-beginning --max-messages 1"), "one"))


def bitnami_job(case):
    case.up()
    case.check("the job ends with 0", lambda: case.ended("topics"))
    case.check("its topics", lambda: (
        contains(described(case, "kafka", "kafka:9092", "orders"), "PartitionCount: 3"),
        contains(described(case, "kafka", "kafka:9092", "prices"), "cleanup.policy=compact"))
        and None)
    case.check("the mounted file wins", lambda: (
        case.ready("filed"), case.network("filed:9192", "n"),
        contains(described(case, "filed", "filed:9192", "n"), "PartitionCount: 7")) and None)
    case.check("the host", lambda: case.host(
        "localhost:9094", "h", "create:1:1", "roundtrip") and None)
    case.check("no topic is made by asking", lambda: contains(
        case.tool("kafka", "cat /opt/bitnami/kafka/config/server.properties"),
        "auto.create.topics.enable=false"))


def wurstmeister_streams(case):
    case.up()
    case.check("starts", lambda: case.ready("kafka"))
    case.check("the topics are there", lambda: case.wait("topics", lambda: case.tool(
        "kafka", "kafka-topics.sh --bootstrap-server localhost:9092 --list").split()
        == ["input", "output"]))
    case.check("two partitions", lambda: contains(
        described(case, "kafka", "localhost:9092", "output"), "PartitionCount: 2"))
    case.check("the network is told the container's name", lambda: (
        case.network("kafka:9092", "input"),
        expect(case.brokers("kafka:9092")[0][1], case.id("kafka")[:12] + ":9092")) and None)
    case.check("the other port is open on the host", lambda: expect(
        str(case.engine.host("nc", "-z", "localhost", "9094").returncode), "0"))
    case.compose("restart")
    case.check("a second start", lambda: case.wait_log("kafka", "Kafka Server started", times=2))


def wurstmeister_lines(case):
    case.up()
    case.check("starts", lambda: case.ready("kafka"))
    case.check("the topics are there", lambda: case.wait("topics", lambda: case.tool(
        "kafka", "kafka-topics.sh --bootstrap-server localhost:9092 --list").split()
        == ["events", "orders", "prices"]))
    case.check("their configurations", lambda: (
        contains(described(case, "kafka", "localhost:9092", "orders"), "PartitionCount: 3"),
        contains(described(case, "kafka", "localhost:9092", "prices"), "cleanup.policy=compact"),
        contains(described(case, "kafka", "localhost:9092", "events"), "compression.type=snappy"))
        and None)
    case.check("the host", lambda: expect(
        case.host("localhost:9092", "a", "roundtrip", "metadata"), "7@localhost:9092"))
    case.check("the init script ran", lambda: case.tool("kafka", "test -f /tmp/touched") or None)
    case.check("--zookeeper by $KAFKA_HOME", lambda: contains(case.exec(
        "kafka", "bash", "-c", "$KAFKA_HOME/bin/kafka-topics.sh --zookeeper zookeeper:2181 --list"),
        "orders"))


def spotify(case):
    case.up()
    case.check("starts", lambda: case.ready("kafka"))
    case.check("the host", lambda: expect(
        case.host("localhost:9092", "a", "roundtrip", "metadata"), "1@localhost:9092"))
    case.check("three partitions", lambda: contains(
        described(case, "kafka", "localhost:9092", "a"), "PartitionCount: 3"))
    case.check("the old path, --zookeeper", lambda: case.tool(
        "kafka", "/opt/kafka_2.11-0.10.1.0/bin/kafka-topics.sh --create --zookeeper localhost:2181 "
        "--replication-factor 1 --partitions 1 --topic bucketevents") and None)
    case.check("port 2181 answers ruok", lambda: contains(case.engine.host(
        "bash", "-c", "exec 3<>/dev/tcp/localhost/2181; printf ruok >&3; timeout 3 cat <&3").stdout,
        "imok"))
    case.check("a client of 0.10", lambda: contains(case.engine.host(
        "bash", "-c", "echo old | kcat -P -b localhost:9092 -t old -X api.version.request=false -X "
        "broker.version.fallback=0.10.2 && kcat -C -b localhost:9092 -t old -e -q").stdout, "old"))
    case.compose("down", "-t", "10")
    case.up()
    case.check("the volume keeps the data", lambda: (case.ready("kafka"), expect(
        case.host("localhost:9092", "a", "committed"), "10")) and None)


def fast_data_dev(case):
    case.up()
    case.check("health by nc on 2181 goes green", lambda: case.healthy("fdd"))
    case.check("the host", lambda: (case.ready("fdd"), expect(
        case.host("localhost:9092", "a", "create:1:1", "metadata"), "1@localhost:9092")) and None)
    case.check("a tool without .sh", lambda: contains(case.exec(
        "fdd", "kafka-topics", "--bootstrap-server", "localhost:9092", "--list"), "a"))
    case.check("a variable of Kafka", lambda: contains(case.tool(
        "fdd", "kafka-configs --bootstrap-server localhost:9092 --describe --all --entity-type "
        "brokers --entity-name 1"), "log.retention.ms=1000"))
    case.check("what is missing is said", lambda: contains(
        case.logs("fdd"), "only the broker is here"))


def debezium(case):
    case.up()
    case.check("starts", lambda: case.ready("kafka"))
    case.check("the ordered topic", lambda: case.wait("audit", lambda: "PartitionCount: 2" in
               case.tool("kafka", "kafka-topics.sh --bootstrap-server localhost:9092 --describe "
                                  "--topic audit || true")))
    case.check("the network", lambda: case.network("kafka:9092", "n"))
    case.check("create-topic", lambda: case.compose(
        "run", "--rm", "kafka", "create-topic", "-p", "3", "-r", "1", "extra") and None)
    case.check("list-topics", lambda: contains(case.compose(
        "run", "--rm", "kafka", "list-topics").stdout, "extra"))
    case.check("watch-topic", lambda: contains(case.compose(
        "run", "--rm", "kafka", "watch-topic", "-a", "-k", "-m", "1", "n").stdout, "one"))
    case.check("its place", lambda: case.tool("kafka", "test -d /kafka/data/1/audit-0") or None)


def apache_cluster(case):
    case.up()
    brokers = ("broker-4", "broker-5", "broker-6")
    for service in brokers:
        case.check(f"{service} starts", lambda service=service: case.ready(service))
    case.check("the host: three replicas, two in sync", lambda: expect(" ".join(sorted(
        case.host("localhost:29092", "r", "create:3:3", "roundtrip", "metadata").split())),
        "4@localhost:29092 5@localhost:39092 6@localhost:49092"))
    case.check("the network is told names", lambda: expect(
        " ".join(sorted(address for _, address in case.brokers("broker-4:19092"))),
        "broker-4:19092 broker-5:19092 broker-6:19092"))
    case.check("the quorum", lambda: contains(case.tool(
        "broker-4", "/opt/kafka/bin/kafka-metadata-quorum.sh --bootstrap-server broker-4:19092 "
        "describe --status"), "LeaderId"))
    case.compose("kill", "controller-1")
    case.compose("kill", "broker-5")
    case.check("without a controller and a broker it goes on", lambda: case.host(
        "localhost:29092", "r", "more") and None)
    case.compose("start", "controller-1", "broker-5")
    case.check("both come back", lambda: case.wait("three in sync", lambda: described(
        case, "broker-4", "broker-4:19092", "r").count("Isr: ") == 3 and all(
        len(line.split("Isr: ")[1].split()[0].split(",")) == 3 for line in described(
            case, "broker-4", "broker-4:19092", "r").splitlines() if "Isr: " in line)))


def apache_statefulset(case):
    case.up()
    for service in ("kafka-0", "kafka-1", "kafka-2"):
        case.check(f"{service} starts", lambda service=service: case.ready(service))
    case.check("a topic with three replicas", lambda: (
        case.network("kafka-0:9092", "r"),
        contains(described(case, "kafka-1", "kafka-1:9092", "r"), "ReplicationFactor: 3")) and None)
    case.check("a random id is a word of 22 characters", lambda: expect(
        str(len(case.tool("kafka-0", "kafka-storage.sh random-uuid").strip())), "22"))
    case.check("a formatted directory is not formatted again", lambda: contains(case.tool(
        "kafka-0", "kafka-storage.sh format -t Qw3rT5y7U1OpAsDfGhJkLg -c /tmp/server-0.properties "
        "2>&1", code=1), "already formatted"))
    case.check("unless it is to be passed over", lambda: case.tool(
        "kafka-0", "kafka-storage.sh format -g -t Qw3rT5y7U1OpAsDfGhJkLg -c "
        "/tmp/server-0.properties") and None)
    case.compose("rm", "-s", "-f", "kafka-1")
    case.up()
    case.check("a deleted pod comes back with its data", lambda: (
        case.ready("kafka-1"), case.wait("its replica", lambda: "r-0" in case.tool(
            "kafka-1", "ls /var/lib/kafka/data/kraft"))) and None)


def cp_host_network(case):
    case.up("controller", "kafka-2", "kafka-3", "kafka-4")
    for service in ("kafka-2", "kafka-3", "kafka-4"):
        case.check(f"{service} starts", lambda service=service: case.ready(service))
    case.check("the host sees three", lambda: expect(" ".join(sorted(
        case.host("localhost:19092", "r", "create:3:3", "roundtrip", "metadata").split())),
        "2@localhost:19092 3@localhost:29092 4@localhost:39092"))
    case.check("only the named ports are open", lambda: expect(" ".join(sorted(set(
        line.split()[3].rsplit(":", 1)[1] for line in case.engine.host("ss", "-ltnH").stdout
        .splitlines()), key=int)), "9093 19092 29092 39092"))
    case.check("a broker of another cluster is refused", lambda: (
        case.compose("--profile", "later", "up", "-d", "stranger"),
        case.wait_said("stranger", "cluster")) and None)


def refused(what):
    def run(case):
        case.up("kafka")
        case.check("is refused in one sentence", lambda: (
            case.ended("kafka", 1), contains(case.logs("kafka"), what)) and None)
    return run


class Difference(AssertionError):
    pass


def expect(found, wanted):
    if found.strip() != wanted:
        raise Difference(f"{found.strip()!r}, not {wanted!r}")


def contains(text, part):
    if part not in text:
        raise Difference(f"no {part!r} in {text[-1200:]!r}")


def absent(text, part):
    if part in text:
        raise Difference(f"{part!r} in {text[-1200:]!r}")


def deploy_single(case):
    """Klamm's own example, word for word; of stack.yml the broker."""
    case.up("kafka")
    case.check("health goes green", lambda: case.healthy("kafka"))
    case.check("a client on the host", lambda: expect(
        case.host("localhost:9092", "a", "roundtrip", "metadata"), "1@localhost:9092"))
    case.check("a client in the network", lambda: case.network("kafka:19092", "net"))
    case.compose("down")
    case.up("kafka")

    def kept():
        case.healthy("kafka")
        assert len(case.host("localhost:9092", "a", "read").split("\n")) == 11
    case.check("a new container on the volume keeps records", kept)


def deploy_three(case):
    case.up()
    nodes = ["kafka-1", "kafka-2", "kafka-3"]
    for node in nodes:
        case.check(f"health of {node} goes green", lambda: case.healthy(node))
    case.check("a client on the host", lambda: case.host(
        "localhost:29092", "a", "roundtrip") and None)
    case.check("a client in the network", lambda: case.network("kafka-2:19092", "net"))
    case.check("three replicas, two of them needed", lambda: [
        contains(described(case, "kafka-1", "kafka-3:19092", "a"), part)
        for part in ("ReplicationFactor: 3", "min.insync.replicas=2")] and None)
    case.compose("stop", "kafka-3")
    case.check("with one of them stopped", lambda: case.host(
        "localhost:39092", "b", "roundtrip") and None)


CASES = {
    "deploy-single": deploy_single,
    "deploy-stack": deploy_single,
    "deploy-three-nodes": deploy_three,
    "01-apache-nothing": apache_nothing,
    "05-apache-cluster": apache_cluster,
    "07-apache-volume": apache_volume,
    "09-apache-statefulset": apache_statefulset,
    "11-apache-actions": apache_actions,
    "13-bitnami-actions": bitnami_actions,
    "15-cp-two-clusters": cp_two_clusters,
    "17-cp-patched-scripts": cp_patched,
    "21-cp-zookeeper-three-brokers": cp_three_without_names,
    "23-cp-server": cp_server,
    "25-cp-formats-itself": cp_formats_itself,
    "31-cp-ui": cp_ui,
    "33-confluent-local": confluent_local,
    "35-bitnami-minimal": bitnami_minimal,
    "39-bitnami-analytics": bitnami_analytics,
    "43-soldevelo": soldevelo,
    "45-bitnami-job-and-file": bitnami_job,
    "47-wurstmeister-streams": wurstmeister_streams,
    "49-wurstmeister-lines": wurstmeister_lines,
    "51-spotify": spotify,
    "53-fast-data-dev": fast_data_dev,
    "55-debezium": debezium,
    "57-cp-host-network": cp_host_network,
    "19-cp-tls-credentials": refused("the listener SSL needs TLS"),
    "27-cp-sasl": refused("the listener INSIDE needs SASL"),
    "03-apache-tls": refused("the listener SSL needs TLS"),
    "29-cp-three-protocols": refused("the listener SSL needs TLS"),
    "37-bitnami-sasl": refused("the listener SASL needs SASL"),
}
