package klamm.compat;

import static klamm.compat.Checks.fails;
import static klamm.compat.Checks.same;
import static klamm.compat.Checks.that;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** What a producer is told when its records are refused, and that nothing else is lost by it. */
final class ProducerErrorsSuite {
  private static final long DAY_MS = 86_400_000;

  private ProducerErrorsSuite() {}

  static void run(Context context, Checks checks) {
    for (String idempotent : new String[] {"false", "true"}) {
      checks.check(
          "RecordTooLarge above max.message.bytes, idempotence " + idempotent,
          () -> tooLarge(context, idempotent));
      checks.check(
          "InvalidTimestamp two hours ahead, idempotence " + idempotent,
          () -> timestampAhead(context, idempotent));
    }
    checks.check("InvalidTimestamp before the bound of the topic", () -> timestampOld(context));
    checks.check("only the bad records of a batch are refused", () -> someBad(context));
    checks.check("InvalidRecord without key in a compacted topic", () -> keyless(context));
    checks.check("InvalidTopic for a bad name", () -> badName(context));
    checks.check("an unknown partition times out", () -> unknownPartition(context));
    checks.check("internal topics refuse records", () -> internalTopic(context));
    checks.check("a deleted topic is made anew", () -> deletedTopic(context));
  }

  private static void tooLarge(Context context, String idempotent) throws Exception {
    String topic = context.topic("too-large", 1, "max.message.bytes", "2000");
    try (KafkaProducer<byte[], byte[]> producer =
        context.producer("enable.idempotence", idempotent)) {
      producer.send(new ProducerRecord<>(topic, 0, null, new byte[100])).get();
      fails(
          RecordTooLargeException.class,
          () -> producer.send(new ProducerRecord<>(topic, 0, null, new byte[5000])).get());
      long offset = producer.send(new ProducerRecord<>(topic, 0, null, new byte[101])).get().offset();
      same("the next record's offset", 1L, offset);
    }
    var records = context.readAll(new TopicPartition(topic, 0));
    same("records", 2, records.size());
    same("second record", 101, records.get(1).value().length);
  }

  private static void timestampAhead(Context context, String idempotent) throws Exception {
    String topic = context.topic("ahead", 1);
    long ahead = System.currentTimeMillis() + 2 * 3_600_000L;
    try (KafkaProducer<byte[], byte[]> producer =
        context.producer("enable.idempotence", idempotent)) {
      var error =
          fails(
              InvalidTimestampException.class,
              () -> producer.send(new ProducerRecord<>(topic, 0, ahead, null, new byte[1])).get());
      that("the error has a text", error.getMessage() != null && !error.getMessage().isEmpty());
      same("offset", 0L, producer.send(Sample.record(topic, 0, 1, 1)).get().offset());
    }
  }

  private static void timestampOld(Context context) throws Exception {
    String topic = context.topic("old", 1, "message.timestamp.before.max.ms", "" + DAY_MS);
    long old = System.currentTimeMillis() - 2 * DAY_MS;
    try (KafkaProducer<byte[], byte[]> producer = context.producer()) {
      fails(
          InvalidTimestampException.class,
          () -> producer.send(new ProducerRecord<>(topic, 0, old, null, new byte[1])).get());
    }
    String open = context.topic("old-open", 1, "retention.ms", "-1");
    try (KafkaProducer<byte[], byte[]> producer = context.producer()) {
      producer.send(new ProducerRecord<>(open, 0, old, null, new byte[1])).get();
    }
    same("timestamp", old, context.readAll(new TopicPartition(open, 0)).get(0).timestamp());
  }

  private static void someBad(Context context) throws Exception {
    String topic = context.topic("some-bad", 1);
    long now = System.currentTimeMillis();
    try (KafkaProducer<byte[], byte[]> producer =
        context.producer("linger.ms", "10000", "enable.idempotence", "false")) {
      var good = producer.send(new ProducerRecord<>(topic, 0, now, null, new byte[] {1}));
      var bad = producer.send(new ProducerRecord<>(topic, 0, now + DAY_MS, null, new byte[] {2}));
      producer.flush();
      fails(InvalidTimestampException.class, bad::get);
      // The whole batch is refused; the good record gets the error that says so.
      fails(org.apache.kafka.common.KafkaException.class, good::get);
    }
    try (var consumer = context.consumer()) {
      var partition = new TopicPartition(topic, 0);
      same("end", 0L, consumer.endOffsets(java.util.List.of(partition)).get(partition));
    }
  }

  private static void keyless(Context context) throws Exception {
    String topic = context.topic("keyless", 1, "cleanup.policy", "compact");
    try (KafkaProducer<byte[], byte[]> producer = context.producer()) {
      fails(
          InvalidRecordException.class,
          () -> producer.send(new ProducerRecord<>(topic, 0, null, new byte[1])).get());
      producer.send(new ProducerRecord<>(topic, 0, new byte[1], new byte[1])).get();
    }
    same("records", 1, context.readAll(new TopicPartition(topic, 0)).size());
  }

  private static void badName(Context context) {
    try (KafkaProducer<byte[], byte[]> producer = context.producer()) {
      fails(
          InvalidTopicException.class,
          () -> producer.send(new ProducerRecord<>("not a topic!", new byte[1])).get());
    }
  }

  private static void unknownPartition(Context context) throws Exception {
    String topic = context.topic("partition", 1);
    try (KafkaProducer<byte[], byte[]> producer = context.producer("max.block.ms", "700")) {
      fails(
          TimeoutException.class,
          () -> producer.send(new ProducerRecord<>(topic, 7, null, new byte[1])).get());
    }
  }

  private static void internalTopic(Context context) {
    // Whether the topic exists yet or not, a client may not write to it.
    try (KafkaProducer<byte[], byte[]> producer =
        context.producer("max.block.ms", "2000", "delivery.timeout.ms", "5000",
            "request.timeout.ms", "5000")) {
      try {
        producer.send(new ProducerRecord<>("__transaction_state", 0, null, new byte[1])).get();
      } catch (Exception e) {
        Throwable cause = e.getCause() == null ? e : e.getCause();
        that(
            "refused, not " + cause,
            cause instanceof InvalidTopicException
                || cause instanceof TimeoutException
                || cause instanceof UnknownTopicOrPartitionException
                || cause instanceof TopicAuthorizationException);
        return;
      }
      throw new AssertionError("an internal topic took a record");
    }
  }

  private static void deletedTopic(Context context) throws Exception {
    String topic = context.topic("deleted", 1);
    try (KafkaProducer<byte[], byte[]> producer = context.producer("metadata.max.age.ms", "500")) {
      same("offset", 0L, producer.send(Sample.record(topic, 0, 1, 1)).get().offset());
      context.admin.deleteTopics(java.util.List.of(topic)).all().get();
      // The topic comes back by auto-creation, under a new id and from offset 0.
      same("offset", 0L, producer.send(Sample.record(topic, 0, 1, 2)).get().offset());
    }
    var records = context.readAll(new TopicPartition(topic, 0));
    same("records", 1, records.size());
    Sample.sameRecord(1, 2, 0, records.get(0));
  }
}
