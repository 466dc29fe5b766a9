package klamm.compat;

import static klamm.compat.Checks.fails;
import static klamm.compat.Checks.same;
import static klamm.compat.Checks.that;

import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicDeletionDisabledException;
import org.apache.kafka.common.record.TimestampType;

/**
 * A broker whose server.properties differ from the defaults (`compat/run` starts it as "strict"):
 * auto.create.topics.enable=false, delete.topic.enable=false, message.max.bytes=20000,
 * num.partitions=3, log.message.timestamp.type=LogAppendTime, log.retention.hours=5.
 */
final class StrictSuite {
  private StrictSuite() {}

  static void run(Context context, Checks checks) {
    checks.check("no topic is made by producing", () -> notCreated(context));
    checks.check("no topic is made by consuming", () -> notCreatedByConsumer(context));
    checks.check("delete.topic.enable=false", () -> notDeleted(context));
    checks.check("num.partitions", () -> partitions(context));
    checks.check("message.max.bytes", () -> maxBytes(context));
    checks.check("log.message.timestamp.type", () -> timestampType(context));
    checks.check("static configs are named as the source", () -> sources(context));
  }

  private static void notCreated(Context context) throws Exception {
    String topic = context.name("absent");
    try (var producer = context.producer("max.block.ms", "1000")) {
      fails(TimeoutException.class, () -> producer.send(Sample.record(topic, null, 1, 1)).get());
    }
    that("no topic", !context.admin.listTopics().names().get().contains(topic));
  }

  private static void notCreatedByConsumer(Context context) throws Exception {
    String topic = context.name("absent");
    try (var consumer =
        context.consumer("allow.auto.create.topics", "true", "default.api.timeout.ms", "1000")) {
      same("no partitions", List.of(), consumer.partitionsFor(topic));
    }
    that("no topic", !context.admin.listTopics().names().get().contains(topic));
  }

  private static void notDeleted(Context context) throws Exception {
    String topic = context.topic("kept", 1);
    fails(
        TopicDeletionDisabledException.class,
        () -> context.admin.deleteTopics(List.of(topic)).all().get());
    that("the topic stays", context.admin.listTopics().names().get().contains(topic));
  }

  private static void partitions(Context context) throws Exception {
    String topic = context.name("default");
    NewTopic asked = new NewTopic(topic, java.util.Optional.empty(), java.util.Optional.empty());
    same(
        "partitions",
        3,
        context.admin.createTopics(List.of(asked)).numPartitions(topic).get());
  }

  private static void maxBytes(Context context) throws Exception {
    String topic = context.topic("limited", 1);
    String wider = context.topic("wider", 1, "max.message.bytes", "50000");
    byte[] value = new byte[30_000];
    try (var producer = context.producer()) {
      fails(
          RecordTooLargeException.class,
          () -> producer.send(new ProducerRecord<>(topic, 0, null, value)).get());
      same("offset", 0L, producer.send(new ProducerRecord<>(wider, 0, null, value)).get().offset());
    }
  }

  private static void timestampType(Context context) throws Exception {
    String topic = context.topic("append", 1);
    String create = context.topic("create", 1, "message.timestamp.type", "CreateTime");
    try (var producer = context.producer()) {
      producer.send(Sample.record(topic, 0, 1, 1)).get();
      producer.send(Sample.record(create, 0, 1, 1)).get();
    }
    var appended = context.readAll(new TopicPartition(topic, 0)).get(0);
    same("timestamp type", TimestampType.LOG_APPEND_TIME, appended.timestampType());
    that("the broker's time", appended.timestamp() > Sample.timestampMs(1));
    Sample.sameRecord(1, 1, 0, context.readAll(new TopicPartition(create, 0)).get(0));
  }

  private static void sources(Context context) throws Exception {
    var topic = new ConfigResource(ConfigResource.Type.TOPIC, context.topic("sources", 1));
    var config = context.admin.describeConfigs(List.of(topic)).all().get().get(topic);
    for (var expected :
        Map.of(
                "max.message.bytes", "20000",
                "message.timestamp.type", "LogAppendTime")
            .entrySet()) {
      var entry = config.get(expected.getKey());
      same(expected.getKey(), expected.getValue(), entry.value());
      same("source", ConfigSource.STATIC_BROKER_CONFIG, entry.source());
    }
    // In hours on the broker, in milliseconds on the topic.
    same("retention.ms", "18000000", config.get("retention.ms").value());
  }
}
