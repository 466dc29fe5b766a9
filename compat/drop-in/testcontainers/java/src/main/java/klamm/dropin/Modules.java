package klamm.dropin;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.Network;
import org.testcontainers.kafka.ConfluentKafkaContainer;
import org.testcontainers.utility.DockerImageName;

/** The three container classes of Testcontainers, started with another image and otherwise as in its examples. */
public final class Modules {
    interface Check {
        void run() throws Exception;
    }

    static boolean failed;

    static void check(String name, Check check) {
        try {
            check.run();
            System.out.println("ok java " + name);
        } catch (Throwable error) {
            failed = true;
            System.out.println("FAIL java " + name + ": " + error);
            for (Throwable at = error.getCause(); at != null; at = at.getCause()) {
                System.out.println("   " + at);
            }
        }
    }

    static DockerImageName image(String name, String instead) {
        return DockerImageName.parse(name).asCompatibleSubstituteFor(instead);
    }

    static void timed(String name, GenericContainer<?> container) {
        long before = System.nanoTime();
        container.start();
        long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - before);
        System.out.println("   java " + name + ": started in " + millis + " ms");
    }

    /** Admin, producer and a group, as the module's own test has them. */
    static void use(String bootstrap) throws Exception {
        String topic = "messages-" + UUID.randomUUID();
        try (var admin = AdminClient.create(Map.of("bootstrap.servers", bootstrap));
                var producer = new KafkaProducer<>(
                    Map.of("bootstrap.servers", bootstrap, "client.id", "c"),
                    new StringSerializer(), new StringSerializer());
                var consumer = new KafkaConsumer<>(
                    Map.of("bootstrap.servers", bootstrap, "group.id", "tc-" + topic,
                        "auto.offset.reset", "earliest"),
                    new StringDeserializer(), new StringDeserializer())) {
            admin.createTopics(Set.of(new NewTopic(topic, 1, (short) 1))).all().get(30, TimeUnit.SECONDS);
            consumer.subscribe(List.of(topic));
            producer.send(new ProducerRecord<>(topic, "testcontainers", "rulezzz")).get();
            long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
            while (System.nanoTime() < end) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    if (record.key().equals("testcontainers") && record.value().equals("rulezzz")) {
                        return;
                    }
                }
            }
            throw new AssertionError("the record did not come");
        }
    }

    public static void main(String[] args) {
        String name = args[0];
        String kcat = args[1];
        check("KafkaContainer", () -> {
            try (var kafka = new org.testcontainers.kafka.KafkaContainer(image(name, "apache/kafka"))) {
                timed("KafkaContainer", kafka);
                use(kafka.getBootstrapServers());
            }
        });
        check("KafkaContainer as apache/kafka-native", () -> {
            try (var kafka = new org.testcontainers.kafka.KafkaContainer(image(name, "apache/kafka-native"))) {
                kafka.start();
                use(kafka.getBootstrapServers());
            }
        });
        check("KafkaContainer.withListener", () -> {
            try (var network = Network.newNetwork();
                    var kafka = new org.testcontainers.kafka.KafkaContainer(image(name, "apache/kafka"))
                        .withListener("kafka:19092").withNetwork(network);
                    var client = new GenericContainer<>(DockerImageName.parse(kcat))
                        .withNetwork(network).withCommand("sleep", "600")) {
                kafka.start();
                client.start();
                var done = client.execInContainer("sh", "-c",
                    "echo a message | kcat -P -b kafka:19092 -t t && kcat -C -b kafka:19092 -t t -e -q -c 1");
                if (!done.getStdout().contains("a message")) {
                    throw new AssertionError(done.getStdout() + done.getStderr());
                }
            }
        });
        check("ConfluentKafkaContainer", () -> {
            try (var kafka = new ConfluentKafkaContainer(image(name, "confluentinc/cp-kafka"))) {
                timed("ConfluentKafkaContainer", kafka);
                use(kafka.getBootstrapServers());
            }
        });
        check("containers.KafkaContainer with its ZooKeeper", () -> {
            try (var kafka = new org.testcontainers.containers.KafkaContainer(image(name, "confluentinc/cp-kafka"))) {
                timed("containers.KafkaContainer", kafka);
                use(kafka.getBootstrapServers());
            }
        });
        check("containers.KafkaContainer.withKraft", () -> {
            try (var kafka = new org.testcontainers.containers.KafkaContainer(image(name, "confluentinc/cp-kafka"))
                    .withKraft()) {
                timed("containers.KafkaContainer.withKraft", kafka);
                use(kafka.getBootstrapServers());
            }
        });
        check("containers.KafkaContainer.withKraft.withClusterId", () -> {
            try (var kafka = new org.testcontainers.containers.KafkaContainer(image(name, "confluentinc/cp-kafka"))
                    .withKraft().withClusterId("test-cluster")) {
                kafka.start();
                use(kafka.getBootstrapServers());
            }
        });
        check("containers.KafkaContainer.withExternalZookeeper", () -> {
            try (var kafka = new org.testcontainers.containers.KafkaContainer(image(name, "confluentinc/cp-kafka"))
                    .withExternalZookeeper("zookeeper:2181")) {
                kafka.start();
                use(kafka.getBootstrapServers());
            }
        });
        System.exit(failed ? 1 : 0);
    }
}
