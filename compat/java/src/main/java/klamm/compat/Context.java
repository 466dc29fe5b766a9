package klamm.compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What every suite needs: clients of one broker, names that no other run has used, full reads. */
final class Context implements AutoCloseable {
  /** How long anything may take that is expected to happen. */
  static final Duration DEADLINE = Duration.ofSeconds(30);

  private static final String RUN = Long.toString(System.nanoTime(), 36);
  private static final AtomicInteger NAMES = new AtomicInteger();

  final String bootstrap;
  final Admin admin;

  Context(String bootstrap) {
    this.bootstrap = bootstrap;
    this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
  }

  String name(String prefix) {
    return "java-" + prefix + "-" + RUN + "-" + NAMES.incrementAndGet();
  }

  /** A new topic whose partitions serve. `configs` are key, value, key, value. */
  String topic(String prefix, int partitions, String... configs) throws Exception {
    String topic = name(prefix);
    create(topic, partitions, configs);
    return topic;
  }

  /** The same with a name of one's own. */
  void create(String topic, int partitions, String... configs) throws Exception {
    Map<String, String> map = new HashMap<>();
    for (int i = 0; i < configs.length; i += 2) {
      map.put(configs[i], configs[i + 1]);
    }
    // As many replicas as default.replication.factor says.
    NewTopic created =
        new NewTopic(topic, Optional.of(partitions), Optional.empty()).configs(map);
    admin.createTopics(List.of(created)).all().get();
    serves(topic, partitions);
  }

  /**
   * Waits until the partitions serve: Kafka answers before they do. Its own producer, when a first
   * batch is refused for that, has been seen to sit on the following ones until they expire.
   */
  void serves(String topic, int partitions) throws Exception {
    Map<TopicPartition, OffsetSpec> all = new HashMap<>();
    for (int p = 0; p < partitions; p++) {
      all.put(new TopicPartition(topic, p), OffsetSpec.latest());
    }
    eventually(() -> admin.listOffsets(all).all().get());
  }

  /** Repeats what becomes true a moment after the answer that promised it. */
  static void eventually(Checks.Body body) throws Exception {
    long deadline = System.nanoTime() + DEADLINE.toNanos();
    while (true) {
      try {
        body.run();
        return;
      } catch (Exception | AssertionError e) {
        if (System.nanoTime() > deadline) {
          throw e;
        }
      }
    }
  }

  /** Repeats a call that may be repeated when it times out. */
  static void untilDone(Runnable call) {
    while (true) {
      try {
        call.run();
        return;
      } catch (TimeoutException e) {
        // The broker is down for longer than the client waits.
      }
    }
  }

  private static void put(Properties properties, String... configs) {
    for (int i = 0; i < configs.length; i += 2) {
      properties.put(configs[i], configs[i + 1]);
    }
  }

  KafkaProducer<byte[], byte[]> producer(String... configs) {
    Properties properties = new Properties();
    put(properties, "bootstrap.servers", bootstrap, "linger.ms", "0");
    put(properties, "max.block.ms", "15000", "delivery.timeout.ms", "30000");
    String timeoutMs = System.getenv().getOrDefault("COMPAT_REQUEST_TIMEOUT_MS", "15000");
    put(properties, "request.timeout.ms", timeoutMs);
    put(properties, configs);
    return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
  }

  KafkaConsumer<byte[], byte[]> consumer(String... configs) {
    Properties properties = new Properties();
    put(properties, "bootstrap.servers", bootstrap, "auto.offset.reset", "none");
    put(properties, "enable.auto.commit", "false", "allow.auto.create.topics", "false");
    put(properties, configs);
    return new KafkaConsumer<>(
        properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  /** Every record was acknowledged; the first that was not fails the check with its error. */
  static void await(List<Future<RecordMetadata>> answers) throws Exception {
    for (Future<RecordMetadata> answer : answers) {
      answer.get();
    }
  }

  /** Polls until `count` records have come, or fails at the deadline. */
  static List<ConsumerRecord<byte[], byte[]>> read(
      KafkaConsumer<byte[], byte[]> consumer, int count) {
    List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
    long deadline = System.nanoTime() + DEADLINE.toNanos();
    while (records.size() < count) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError("read " + records.size() + " of " + count + " records in time");
      }
      consumer.poll(Duration.ofMillis(500)).forEach(records::add);
    }
    Checks.same("records read", count, records.size());
    return records;
  }

  /** All records of one partition from `offset` up to its end, with a consumer of its own. */
  List<ConsumerRecord<byte[], byte[]>> readAll(TopicPartition partition, String... configs) {
    try (KafkaConsumer<byte[], byte[]> consumer = consumer(configs)) {
      consumer.assign(List.of(partition));
      consumer.seekToBeginning(List.of(partition));
      long start = consumer.position(partition);
      long end = consumer.endOffsets(List.of(partition)).get(partition);
      return read(consumer, (int) (end - start));
    }
  }

  static List<ConsumerRecord<byte[], byte[]>> of(
      Collection<ConsumerRecord<byte[], byte[]>> records, int partition) {
    return records.stream().filter(r -> r.partition() == partition).toList();
  }

  @Override
  public void close() {
    admin.close(Duration.ofSeconds(5));
  }
}
