package klamm.compat;

import static klamm.compat.Checks.fails;
import static klamm.compat.Checks.same;
import static klamm.compat.Checks.that;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;

/** KafkaConsumer with subscribe, in both group protocols; run only with `--groups`. */
final class GroupsSuite {
  private static final int PARTITIONS = 6;
  private static final int COUNT = 600;

  private final Context context;
  private final String protocol;
  private final String[] configs;

  private GroupsSuite(Context context, String protocol, String... configs) {
    this.context = context;
    this.protocol = protocol;
    this.configs = configs;
  }

  static void run(Context context, Checks checks) {
    String cooperative = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";
    List<GroupsSuite> suites =
        List.of(
            new GroupsSuite(context, "classic"),
            new GroupsSuite(context, "classic", "partition.assignment.strategy", cooperative),
            new GroupsSuite(context, "consumer"));
    for (GroupsSuite suite : suites) {
      String name = suite.protocol + (suite.configs.length > 0 ? " cooperative" : "");
      checks.check(name + ": one member reads everything", suite::oneMember);
      checks.check(name + ": commits are where the next member starts", suite::commits);
      checks.check(name + ": members share the partitions and take over", suite::rebalance);
      checks.check(name + ": a static member comes back to its partitions", suite::staticMember);
      checks.check(name + ": commit and fetch of metadata", suite::metadata);
      checks.check(name + ": admin sees the group", suite::admin);
    }
  }

  private KafkaConsumer<byte[], byte[]> member(String group, String... more) {
    List<String> all =
        new ArrayList<>(
            List.of("group.id", group, "auto.offset.reset", "earliest", "group.protocol", protocol));
    all.addAll(List.of(configs));
    all.addAll(List.of(more));
    return context.consumer(all.toArray(String[]::new));
  }

  private String filled() throws Exception {
    String topic = context.topic("groups", PARTITIONS);
    try (var producer = context.producer()) {
      List<Future<RecordMetadata>> answers = new ArrayList<>();
      for (int i = 0; i < COUNT; i++) {
        answers.add(producer.send(Sample.record(topic, i % PARTITIONS, 1, i)));
      }
      Context.await(answers);
    }
    return topic;
  }

  private void oneMember() throws Exception {
    String topic = filled();
    try (var consumer = member(context.name("group"))) {
      consumer.subscribe(List.of(topic));
      var records = Context.read(consumer, COUNT);
      for (int p = 0; p < PARTITIONS; p++) {
        var own = Context.of(records, p);
        for (int n = 0; n < own.size(); n++) {
          Sample.sameRecord(1, n * PARTITIONS + p, n, own.get(n));
        }
      }
      same("assignment", PARTITIONS, consumer.assignment().size());
    }
  }

  private void commits() throws Exception {
    String topic = filled();
    String group = context.name("group");
    Set<String> seen = new TreeSet<>();
    int read = 0;
    while (read < COUNT) {
      try (var consumer = member(group, "max.poll.records", "100")) {
        consumer.subscribe(List.of(topic));
        for (var record : Context.read(consumer, 100)) {
          that("read once", seen.add(record.partition() + "@" + record.offset()));
        }
        consumer.commitSync();
        read += 100;
      }
    }
    same("records", COUNT, seen.size());
  }

  private void rebalance() throws Exception {
    String topic = filled();
    String group = context.name("group");
    Map<Integer, KafkaConsumer<byte[], byte[]>> members = new HashMap<>();
    try {
      for (int m = 0; m < 3; m++) {
        members.put(m, member(group));
        members.get(m).subscribe(List.of(topic));
        settle(members, PARTITIONS / members.size());
      }
      members.remove(0).close();
      settle(members, PARTITIONS / 2);
    } finally {
      members.values().forEach(KafkaConsumer::close);
    }
  }

  /** Polls every member until each has `each` partitions and none is had twice. */
  private void settle(Map<Integer, KafkaConsumer<byte[], byte[]>> members, int each) {
    long deadline = System.nanoTime() + Context.DEADLINE.toNanos() * 2;
    while (true) {
      Set<TopicPartition> all = new java.util.HashSet<>();
      boolean even = true;
      for (var consumer : members.values()) {
        consumer.poll(Duration.ofMillis(50));
        all.addAll(consumer.assignment());
        even &= consumer.assignment().size() == each;
      }
      if (even && all.size() == PARTITIONS) {
        return;
      }
      that("the group settles in time", System.nanoTime() < deadline);
    }
  }

  private void staticMember() throws Exception {
    String topic = filled();
    String group = context.name("group");
    var one = Map.of(0, member(group, "group.instance.id", "one"));
    try (var two = member(group, "group.instance.id", "two")) {
      one.get(0).subscribe(List.of(topic));
      two.subscribe(List.of(topic));
      settle(Map.of(0, one.get(0), 1, two), PARTITIONS / 2);
      Set<TopicPartition> before = one.get(0).assignment();
      one.get(0).close();
      try (var again = member(group, "group.instance.id", "one")) {
        again.subscribe(List.of(topic));
        settle(Map.of(0, again, 1, two), PARTITIONS / 2);
        same("the same partitions", before, again.assignment());
      }
    }
  }

  private void metadata() throws Exception {
    String topic = context.topic("metadata", 1);
    var partition = new TopicPartition(topic, 0);
    String group = context.name("group");
    try (var consumer = member(group)) {
      consumer.assign(List.of(partition));
      same("none yet", null, consumer.committed(Set.of(partition)).get(partition));
      var offset = new OffsetAndMetadata(42, java.util.Optional.of(0), "so far é");
      consumer.commitSync(Map.of(partition, offset));
      same("committed", offset, consumer.committed(Set.of(partition)).get(partition));
    }
    var listed = context.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata();
    same("offset", 42L, listed.get().get(partition).offset());
    same("metadata", "so far é", listed.get().get(partition).metadata());
  }

  private void admin() throws Exception {
    String topic = filled();
    String group = context.name("group");
    try (var consumer = member(group)) {
      consumer.subscribe(List.of(topic));
      Context.read(consumer, COUNT);
      consumer.commitSync();
      var description =
          context.admin.describeConsumerGroups(List.of(group)).all().get().get(group);
      same("state", GroupState.STABLE, description.groupState());
      same("members", 1, description.members().size());
      same(
          "assignment",
          consumer.assignment(),
          description.members().iterator().next().assignment().topicPartitions());
      fails(
          org.apache.kafka.common.errors.GroupNotEmptyException.class,
          () -> context.admin.deleteConsumerGroups(List.of(group)).all().get());
    }
    that(
        "listed",
        context.admin.listGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)));
    context.admin.deleteConsumerGroups(List.of(group)).all().get();
    that(
        "gone",
        context.admin.listGroups().all().get().stream().noneMatch(g -> g.groupId().equals(group)));
  }
}
