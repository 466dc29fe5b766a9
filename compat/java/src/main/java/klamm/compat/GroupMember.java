package klamm.compat;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of a group that tell what they read and commit; see python/group_member.py.
 *
 * <p>GroupMember HOST:PORT TOPIC GROUP MODE COUNT NAME
 */
public final class GroupMember implements Runnable {
  private static volatile boolean stopping;

  private final String topic;
  private final String name;
  private final Properties configs = new Properties();

  private GroupMember(String[] args, String name) {
    this.topic = args[1];
    this.name = name;
    configs.put("bootstrap.servers", args[0]);
    configs.put("group.id", args[2]);
    configs.put("client.id", name);
    configs.put("auto.offset.reset", "earliest");
    configs.put("enable.auto.commit", "false");
    configs.put("metadata.max.age.ms", "1000");
    configs.put("fetch.max.wait.ms", "100");
    configs.put("max.poll.records", "100");
    configs.put("key.deserializer", ByteArrayDeserializer.class.getName());
    configs.put("value.deserializer", ByteArrayDeserializer.class.getName());
    String assignors = "org.apache.kafka.clients.consumer.";
    switch (args[3]) {
      case "consumer" -> configs.put("group.protocol", "consumer");
      case "cooperative" -> classic(assignors + "CooperativeStickyAssignor");
      case "static" -> {
        classic(assignors + "RangeAssignor");
        configs.put("group.instance.id", name);
      }
      default -> classic(assignors + "RangeAssignor");
    }
  }

  private void classic(String assignor) {
    configs.put("session.timeout.ms", "6000");
    configs.put("heartbeat.interval.ms", "500");
    configs.put("partition.assignment.strategy", assignor);
  }

  @Override
  public void run() {
    try (var consumer = new KafkaConsumer<byte[], byte[]>(configs)) {
      consumer.subscribe(List.of(topic));
      while (!stopping) {
        var records = consumer.poll(Duration.ofMillis(100));
        if (!records.isEmpty()) {
          commit(consumer, read(records));
        }
      }
    }
  }

  private Map<TopicPartition, OffsetAndMetadata> read(ConsumerRecords<byte[], byte[]> records) {
    long ns = now();
    var lines = new StringBuilder();
    var ends = new HashMap<TopicPartition, OffsetAndMetadata>();
    for (TopicPartition partition : records.partitions()) {
      var own = records.records(partition);
      long first = own.get(0).offset();
      line(lines, 'R', ns, partition.partition() + " " + first + " " + own.size());
      ends.put(partition, new OffsetAndMetadata(own.get(own.size() - 1).offset() + 1));
    }
    say(lines);
    return ends;
  }

  private void commit(
      KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, OffsetAndMetadata> ends) {
    try {
      consumer.commitSync(ends);
    } catch (KafkaException e) {
      System.err.println("# " + name + ": " + e);
      return;
    }
    var lines = new StringBuilder();
    long ns = now();
    ends.forEach((p, end) -> line(lines, 'C', ns, p.partition() + " " + end.offset()));
    say(lines);
  }

  private void line(StringBuilder lines, char kind, long ns, String rest) {
    lines.append(kind).append(' ').append(ns).append(' ').append(name).append(' ').append(rest);
    lines.append('\n');
  }

  private static long now() {
    Instant now = Instant.now();
    return now.getEpochSecond() * 1_000_000_000L + now.getNano();
  }

  private static void say(StringBuilder lines) {
    synchronized (System.out) {
      System.out.print(lines);
      System.out.flush();
    }
  }

  public static void main(String[] args) throws Exception {
    int count = Integer.parseInt(args[4]);
    var ended = new CountDownLatch(count);
    List<Thread> members = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      var member = new GroupMember(args, args[5] + "-" + i);
      members.add(
          new Thread(
              () -> {
                try {
                  member.run();
                } finally {
                  ended.countDown();
                }
              }));
    }
    members.forEach(Thread::start);
    // The virtual machine ends when this hook does; SIGTERM starts it.
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  stopping = true;
                  try {
                    ended.await();
                  } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                  }
                }));
    ended.await();
  }
}
