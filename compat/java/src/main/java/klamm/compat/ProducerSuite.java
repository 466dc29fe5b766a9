package klamm.compat;

import static klamm.compat.Checks.same;
import static klamm.compat.Checks.that;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.TimestampType;

/** KafkaProducer: every acks, codec and idempotence; what was sent is read back and compared. */
final class ProducerSuite {
  private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
  private static final int COUNT = 300;

  private ProducerSuite() {}

  static void run(Context context, Checks checks) {
    for (String acks : new String[] {"0", "1", "all"}) {
      for (String codec : CODECS) {
        checks.check("acks=" + acks + " " + codec, () -> roundTrip(context, acks, codec, false));
      }
    }
    for (String codec : CODECS) {
      checks.check("idempotent " + codec, () -> roundTrip(context, "all", codec, true));
    }
    checks.check("partitions chosen by the caller", () -> chosenPartitions(context));
    checks.check("partitions chosen by the key", () -> keyedPartitions(context));
    checks.check("callbacks name offset, partition, timestamp and sizes", () -> callbacks(context));
    checks.check("records of 900,000 bytes", () -> largeRecords(context));
    checks.check("records of 4 MiB where max.message.bytes allows", () -> raisedLimit(context));
    checks.check("log append time", () -> logAppendTime(context));
    checks.check("partitionsFor", () -> partitionsFor(context));
    for (String codec : new String[] {"uncompressed", "gzip", "zstd"}) {
      checks.check("broker recompresses to " + codec, () -> recompress(context, codec));
    }
    checks.check("topic made by the first record", () -> autoCreated(context));
    checks.check("flush and close deliver everything", () -> closeDelivers(context));
    checks.check("two producers interleave in one partition", () -> interleaved(context));
  }

  private static void roundTrip(Context context, String acks, String codec, boolean idempotent)
      throws Exception {
    String topic = context.topic("produce", 1);
    List<Future<RecordMetadata>> answers = new ArrayList<>();
    try (KafkaProducer<byte[], byte[]> producer =
        context.producer(
            "acks", acks,
            "compression.type", codec,
            "enable.idempotence", Boolean.toString(idempotent),
            "linger.ms", "5")) {
      for (int i = 0; i < COUNT; i++) {
        answers.add(producer.send(Sample.record(topic, 0, 1, i)));
      }
    }
    for (int i = 0; i < COUNT; i++) {
      RecordMetadata answer = answers.get(i).get();
      same("acknowledged offset", acks.equals("0") ? -1L : i, answer.offset());
      same("acknowledged timestamp", Sample.timestampMs(i), answer.timestamp());
    }
    TopicPartition partition = new TopicPartition(topic, 0);
    if (acks.equals("0")) {
      awaitEnd(context, partition, COUNT);
    }
    List<ConsumerRecord<byte[], byte[]>> records = context.readAll(partition);
    same("records", COUNT, records.size());
    for (int i = 0; i < COUNT; i++) {
      Sample.sameRecord(1, i, i, records.get(i));
    }
  }

  /** With acks=0 nothing tells when the last record has arrived; its end offset does. */
  private static void awaitEnd(Context context, TopicPartition partition, long end) {
    long deadline = System.nanoTime() + Context.DEADLINE.toNanos();
    try (var consumer = context.consumer()) {
      while (consumer.endOffsets(List.of(partition)).get(partition) < end) {
        that("all records arrive in time", System.nanoTime() < deadline);
      }
    }
  }

  private static void chosenPartitions(Context context) throws Exception {
    String topic = context.topic("chosen", 5);
    try (KafkaProducer<byte[], byte[]> producer = context.producer()) {
      List<Future<RecordMetadata>> answers = new ArrayList<>();
      for (int i = 0; i < COUNT; i++) {
        answers.add(producer.send(Sample.record(topic, i % 5, 2, i)));
      }
      Context.await(answers);
    }
    for (int p = 0; p < 5; p++) {
      var records = context.readAll(new TopicPartition(topic, p));
      same("records of partition " + p, COUNT / 5, records.size());
      for (int n = 0; n < records.size(); n++) {
        Sample.sameRecord(2, n * 5 + p, n, records.get(n));
      }
    }
  }

  private static void keyedPartitions(Context context) throws Exception {
    String topic = context.topic("keyed", 4);
    Map<String, Integer> partitions = new HashMap<>();
    try (KafkaProducer<byte[], byte[]> producer = context.producer()) {
      for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 40; i++) {
          String key = "key" + i;
          var answer =
              producer.send(new ProducerRecord<>(topic, key.getBytes(), new byte[] {1})).get();
          Integer before = partitions.put(key, answer.partition());
          that("a key stays in its partition", before == null || before == answer.partition());
        }
      }
    }
    that("keys spread over the partitions", partitions.values().stream().distinct().count() == 4);
    for (int p = 0; p < 4; p++) {
      for (var record : context.readAll(new TopicPartition(topic, p))) {
        same("partition of a key", partitions.get(new String(record.key())), record.partition());
      }
    }
  }

  private static void callbacks(Context context) throws Exception {
    String topic = context.topic("callbacks", 1);
    List<RecordMetadata> seen = new ArrayList<>();
    try (KafkaProducer<byte[], byte[]> producer = context.producer("acks", "all")) {
      for (int i = 0; i < 50; i++) {
        producer.send(
            Sample.record(topic, 0, 3, i),
            (metadata, error) -> {
              if (error == null) {
                seen.add(metadata);
              }
            });
      }
      producer.flush();
    }
    same("callbacks", 50, seen.size());
    for (int i = 0; i < 50; i++) {
      RecordMetadata metadata = seen.get(i);
      byte[] key = Sample.key(3, i);
      byte[] value = Sample.value(3, i);
      same("topic", topic, metadata.topic());
      same("partition", 0, metadata.partition());
      same("offset", (long) i, metadata.offset());
      same("timestamp", Sample.timestampMs(i), metadata.timestamp());
      same("key size", key == null ? -1 : key.length, metadata.serializedKeySize());
      same("value size", value == null ? -1 : value.length, metadata.serializedValueSize());
    }
  }

  private static void largeRecords(Context context) throws Exception {
    String topic = context.topic("large", 1);
    for (String codec : CODECS) {
      sendLarge(context, topic, 900_000, "compression.type", codec);
    }
    var records = context.readAll(new TopicPartition(topic, 0));
    same("records", CODECS.length * 3, records.size());
    for (int i = 0; i < records.size(); i++) {
      same("value " + i, largeValue(900_000, i % 3), records.get(i).value());
    }
  }

  private static void raisedLimit(Context context) throws Exception {
    String topic = context.topic("larger", 1, "max.message.bytes", "5000000");
    sendLarge(context, topic, 4 << 20, "max.request.size", "5000000");
    // The first batch of an answer always comes whole, whatever the limits of the fetch.
    var records =
        context.readAll(
            new TopicPartition(topic, 0),
            "fetch.max.bytes", "1000",
            "max.partition.fetch.bytes", "1000");
    same("records", 3, records.size());
    for (int i = 0; i < 3; i++) {
      same("value " + i, largeValue(4 << 20, i), records.get(i).value());
    }
  }

  private static void sendLarge(Context context, String topic, int bytes, String... configs)
      throws Exception {
    try (KafkaProducer<byte[], byte[]> producer = context.producer(configs)) {
      for (int i = 0; i < 3; i++) {
        producer.send(new ProducerRecord<>(topic, 0, null, largeValue(bytes, i))).get();
      }
    }
  }

  private static byte[] largeValue(int bytes, int i) {
    byte[] value = new byte[bytes];
    new java.util.Random(i).nextBytes(value);
    return value;
  }

  private static void logAppendTime(Context context) throws Exception {
    String topic = context.topic("append-time", 1, "message.timestamp.type", "LogAppendTime");
    long before = System.currentTimeMillis();
    long acknowledged;
    try (KafkaProducer<byte[], byte[]> producer = context.producer("compression.type", "lz4")) {
      acknowledged = producer.send(Sample.record(topic, 0, 4, 1)).get().timestamp();
    }
    long after = System.currentTimeMillis();
    that("the broker's time is acknowledged", acknowledged >= before && acknowledged <= after);
    var record = context.readAll(new TopicPartition(topic, 0)).get(0);
    same("timestamp type", TimestampType.LOG_APPEND_TIME, record.timestampType());
    same("timestamp", acknowledged, record.timestamp());
    same("value", Sample.value(4, 1), record.value());
  }

  private static void partitionsFor(Context context) throws Exception {
    String topic = context.topic("infos", 3);
    try (KafkaProducer<byte[], byte[]> producer = context.producer()) {
      List<PartitionInfo> infos = producer.partitionsFor(topic);
      same("partitions", 3, infos.size());
      for (PartitionInfo info : infos) {
        same("leader", 1, info.leader().id());
        same("replicas", 1, info.replicas().length);
        same("in-sync replicas", 1, info.inSyncReplicas().length);
        same("offline replicas", 0, info.offlineReplicas().length);
      }
    }
  }

  private static void recompress(Context context, String codec) throws Exception {
    String topic = context.topic("recompress", 1, "compression.type", codec);
    try (KafkaProducer<byte[], byte[]> producer =
        context.producer("compression.type", "snappy", "linger.ms", "20")) {
      List<Future<RecordMetadata>> answers = new ArrayList<>();
      for (int i = 0; i < COUNT; i++) {
        answers.add(producer.send(Sample.record(topic, 0, 5, i)));
      }
      Context.await(answers);
    }
    var records = context.readAll(new TopicPartition(topic, 0));
    same("records", COUNT, records.size());
    for (int i = 0; i < COUNT; i++) {
      Sample.sameRecord(5, i, i, records.get(i));
    }
  }

  private static void autoCreated(Context context) throws Exception {
    String topic = context.name("auto");
    try (KafkaProducer<byte[], byte[]> producer = context.producer()) {
      RecordMetadata answer = producer.send(Sample.record(topic, null, 6, 1)).get();
      same("offset", 0L, answer.offset());
      same("partitions", 1, producer.partitionsFor(topic).size());
    }
    Sample.sameRecord(6, 1, 0, context.readAll(new TopicPartition(topic, 0)).get(0));
  }

  private static void closeDelivers(Context context) throws Exception {
    String topic = context.topic("close", 2);
    int count = 20_000;
    List<Future<RecordMetadata>> answers = new ArrayList<>();
    try (KafkaProducer<byte[], byte[]> producer =
        context.producer("linger.ms", "50", "compression.type", "zstd")) {
      for (int i = 0; i < count; i++) {
        answers.add(producer.send(Sample.record(topic, i % 2, 7, i)));
      }
    }
    Context.await(answers);
    for (int p = 0; p < 2; p++) {
      var records = context.readAll(new TopicPartition(topic, p));
      same("records", count / 2, records.size());
      for (int n = 0; n < records.size(); n++) {
        Sample.sameRecord(7, n * 2 + p, n, records.get(n));
      }
    }
  }

  private static void interleaved(Context context) throws Exception {
    String topic = context.topic("interleaved", 1);
    try (KafkaProducer<byte[], byte[]> one = context.producer();
        KafkaProducer<byte[], byte[]> two = context.producer()) {
      for (int i = 0; i < 500; i++) {
        one.send(new ProducerRecord<>(topic, 0, new byte[] {1}, ("" + i).getBytes()));
        two.send(new ProducerRecord<>(topic, 0, new byte[] {2}, ("" + i).getBytes()));
      }
    }
    int[] next = new int[3];
    for (var record : context.readAll(new TopicPartition(topic, 0))) {
      int producer = record.key()[0];
      same("order within a producer", "" + next[producer]++, new String(record.value()));
    }
    same("records of the first", 500, next[1]);
    same("records of the second", 500, next[2]);
  }
}
