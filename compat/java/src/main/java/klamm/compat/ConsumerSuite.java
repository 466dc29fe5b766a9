package klamm.compat;

import static klamm.compat.Checks.fails;
import static klamm.compat.Checks.same;
import static klamm.compat.Checks.that;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.NoOffsetForPartitionException;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** KafkaConsumer with assign: positions, offsets by time, limits of a fetch, several partitions. */
final class ConsumerSuite {
  private static final int COUNT = 1000;
  private static final int PARTITIONS = 3;

  private final Context context;
  private final String topic;
  private final TopicPartition zero;

  private ConsumerSuite(Context context) throws Exception {
    this.context = context;
    this.topic = context.topic("consume", PARTITIONS);
    this.zero = new TopicPartition(topic, 0);
    fill(topic, "lz4");
  }

  static void run(Context context, Checks checks) throws Exception {
    ConsumerSuite suite = new ConsumerSuite(context);
    checks.check("seek to any offset, also inside a batch", suite::seek);
    checks.check("seekToBeginning and seekToEnd", suite::seekToEnds);
    checks.check("beginningOffsets and endOffsets", suite::ends);
    checks.check("beginningOffsets after deleteRecords", suite::endsAfterDelete);
    checks.check("offsetsForTimes", suite::offsetsForTimes);
    checks.check("position follows poll", suite::position);
    checks.check("poll across partitions keeps each one's order", suite::acrossPartitions);
    checks.check("max.poll.records", suite::maxPollRecords);
    checks.check("fetch.max.bytes of 1 still brings a batch at a time", suite::smallFetches);
    checks.check("fetch.min.bytes waits for data, fetch.max.wait.ms ends it", suite::minBytes);
    checks.check("a waiting fetch is woken by a record", suite::wakeUp);
    checks.check("auto.offset.reset none without position", suite::noPosition);
    checks.check("auto.offset.reset none beyond the end", suite::outOfRange);
    checks.check("auto.offset.reset earliest and latest", suite::resets);
    checks.check("read_committed of plain records", suite::readCommitted);
    checks.check("pause and resume", suite::pause);
    checks.check("partitionsFor and listTopics", suite::lists);
    checks.check("an unknown topic, auto-creation refused by the client", suite::unknownTopic);
    checks.check("a sessionless re-assignment goes on where it was", suite::reassign);
    checks.check("records written while polling arrive once", suite::tail);
    checks.check("lag and metrics see the end offset", suite::lag);
  }

  private void fill(String topic, String codec) throws Exception {
    try (KafkaProducer<byte[], byte[]> producer =
        context.producer("compression.type", codec, "linger.ms", "5")) {
      List<Future<RecordMetadata>> answers = new ArrayList<>();
      for (int i = 0; i < COUNT; i++) {
        for (int p = 0; p < PARTITIONS; p++) {
          answers.add(producer.send(Sample.record(topic, p, p, i)));
        }
      }
      Context.await(answers);
    }
  }

  private void seek() {
    try (var consumer = context.consumer("max.poll.records", "20")) {
      consumer.assign(List.of(zero));
      for (int offset : new int[] {0, 999, 1, 500, 123, 998, 37}) {
        consumer.seek(zero, offset);
        int i = offset;
        for (var record : Context.read(consumer, Math.min(20, COUNT - offset))) {
          Sample.sameRecord(0, i, i, record);
          i++;
        }
      }
    }
  }

  private void seekToEnds() {
    try (var consumer = context.consumer("max.poll.records", "1")) {
      consumer.assign(List.of(zero));
      consumer.seekToEnd(List.of(zero));
      same("position at the end", (long) COUNT, consumer.position(zero));
      that("nothing at the end", consumer.poll(Duration.ofMillis(100)).isEmpty());
      consumer.seekToBeginning(List.of(zero));
      same("position at the beginning", 0L, consumer.position(zero));
      Sample.sameRecord(0, 0, 0, Context.read(consumer, 1).get(0));
    }
  }

  private void ends() throws Exception {
    var one = new TopicPartition(topic, 1);
    String empty = context.topic("empty", 1);
    var none = new TopicPartition(empty, 0);
    try (var consumer = context.consumer()) {
      var all = List.of(zero, one, none);
      same("beginning", Map.of(zero, 0L, one, 0L, none, 0L), consumer.beginningOffsets(all));
      same("end", Map.of(zero, 1000L, one, 1000L, none, 0L), consumer.endOffsets(all));
    }
  }

  private void endsAfterDelete() throws Exception {
    String topic = context.topic("trimmed", PARTITIONS);
    var partition = new TopicPartition(topic, 1);
    fill(topic, "none");
    context.admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(417))).all().get();
    try (var consumer = context.consumer("max.poll.records", "5")) {
      consumer.assign(List.of(partition));
      same("beginning", Map.of(partition, 417L), consumer.beginningOffsets(List.of(partition)));
      same("end", Map.of(partition, 1000L), consumer.endOffsets(List.of(partition)));
      consumer.seekToBeginning(List.of(partition));
      Sample.sameRecord(1, 417, 417, Context.read(consumer, 5).get(0));
      consumer.seek(partition, 416);
      var error =
          fails(OffsetOutOfRangeException.class, () -> consumer.poll(Context.DEADLINE));
      same("out of range", Map.of(partition, 416L), error.offsetOutOfRangePartitions());
    }
  }

  private void offsetsForTimes() {
    try (var consumer = context.consumer()) {
      for (int i : new int[] {0, 1, 2, 100, 500, 997}) {
        long time = Sample.timestampMs(i) - 3;
        // The answer is the first offset whose timestamp is not below the one asked for.
        int expected = 0;
        while (Sample.timestampMs(expected) < time) {
          expected++;
        }
        Map<TopicPartition, OffsetAndTimestamp> found = consumer.offsetsForTimes(Map.of(zero, time));
        same("offset for time of " + i, (long) expected, found.get(zero).offset());
        same("timestamp", Sample.timestampMs(expected), found.get(zero).timestamp());
      }
      long late = Sample.timestampMs(COUNT) + 1000;
      same("beyond the last", null, consumer.offsetsForTimes(Map.of(zero, late)).get(zero));
      same("before the first", 0L, consumer.offsetsForTimes(Map.of(zero, 0L)).get(zero).offset());
    }
  }

  private void position() {
    try (var consumer = context.consumer("max.poll.records", "10")) {
      consumer.assign(List.of(zero));
      consumer.seek(zero, 40);
      same("position", 40L, consumer.position(zero));
      long expected = 40;
      while (expected < 200) {
        expected += consumer.poll(Duration.ofMillis(500)).count();
        same("position", expected, consumer.position(zero));
      }
    }
  }

  private void acrossPartitions() {
    List<TopicPartition> all =
        List.of(zero, new TopicPartition(topic, 1), new TopicPartition(topic, 2));
    // Small fetches, so that the partitions of one answer take turns.
    for (String bytes : new String[] {"5000", "1048576"}) {
      try (var consumer =
          context.consumer("max.partition.fetch.bytes", bytes, "fetch.max.bytes", "20000")) {
        consumer.assign(all);
        consumer.seekToBeginning(all);
        var records = Context.read(consumer, COUNT * PARTITIONS);
        for (int p = 0; p < PARTITIONS; p++) {
          List<ConsumerRecord<byte[], byte[]>> own = Context.of(records, p);
          same("records of partition " + p, COUNT, own.size());
          for (int i = 0; i < COUNT; i++) {
            Sample.sameRecord(p, i, i, own.get(i));
          }
        }
      }
    }
  }

  private void maxPollRecords() {
    try (var consumer = context.consumer("max.poll.records", "7")) {
      consumer.assign(List.of(zero));
      consumer.seek(zero, 0);
      int seen = 0;
      while (seen < 70) {
        var records = consumer.poll(Duration.ofMillis(500));
        that("at most 7 records", records.count() <= 7);
        for (var record : records) {
          Sample.sameRecord(0, seen, seen, record);
          seen++;
        }
      }
    }
  }

  private void smallFetches() {
    try (var consumer =
        context.consumer("fetch.max.bytes", "1", "max.partition.fetch.bytes", "1")) {
      consumer.assign(List.of(zero));
      consumer.seek(zero, 990);
      var records = Context.read(consumer, 10);
      for (int i = 0; i < 10; i++) {
        Sample.sameRecord(0, 990 + i, 990 + i, records.get(i));
      }
    }
  }

  private void minBytes() throws Exception {
    String topic = context.topic("min-bytes", 1);
    var partition = new TopicPartition(topic, 0);
    try (var producer = context.producer();
        var consumer =
            context.consumer("fetch.min.bytes", "100000", "fetch.max.wait.ms", "1500")) {
      producer.send(Sample.record(topic, 0, 1, 1)).get();
      consumer.assign(List.of(partition));
      consumer.seek(partition, 0);
      long start = System.nanoTime();
      same("the one record comes at last", 1, Context.read(consumer, 1).size());
      long waitedMs = (System.nanoTime() - start) / 1_000_000;
      that("the fetch waited " + waitedMs + " ms", waitedMs >= 1300 && waitedMs < 10_000);
    }
  }

  private void wakeUp() throws Exception {
    String topic = context.topic("wake-up", 1);
    var partition = new TopicPartition(topic, 0);
    try (var producer = context.producer();
        var consumer = context.consumer("fetch.max.wait.ms", "20000")) {
      producer.partitionsFor(topic);
      consumer.assign(List.of(partition));
      consumer.seek(partition, 0);
      that("nothing yet", consumer.poll(Duration.ofMillis(300)).isEmpty());
      long start = System.nanoTime();
      producer.send(Sample.record(topic, 0, 1, 1)).get();
      Sample.sameRecord(1, 1, 0, Context.read(consumer, 1).get(0));
      long waitedMs = (System.nanoTime() - start) / 1_000_000;
      that("woken, not timed out: " + waitedMs + " ms", waitedMs < 5000);
      // A patient close would wait for the next fetch to come back.
      consumer.close(CloseOptions.timeout(Duration.ofMillis(1)));
    }
  }

  private void noPosition() {
    try (var consumer = context.consumer()) {
      consumer.assign(List.of(zero));
      fails(NoOffsetForPartitionException.class, () -> consumer.poll(Context.DEADLINE));
    }
  }

  private void outOfRange() {
    try (var consumer = context.consumer()) {
      consumer.assign(List.of(zero));
      consumer.seek(zero, COUNT + 1);
      var error =
          fails(OffsetOutOfRangeException.class, () -> consumer.poll(Context.DEADLINE));
      same("partitions", Map.of(zero, COUNT + 1L), error.offsetOutOfRangePartitions());
    }
  }

  private void resets() {
    try (var consumer = context.consumer("auto.offset.reset", "earliest", "max.poll.records", "1")) {
      consumer.assign(List.of(zero));
      consumer.seek(zero, 5_000_000);
      Sample.sameRecord(0, 0, 0, Context.read(consumer, 1).get(0));
    }
    try (var consumer = context.consumer("auto.offset.reset", "latest")) {
      consumer.assign(List.of(zero));
      consumer.seek(zero, 5_000_000);
      that("nothing at the end", consumer.poll(Duration.ofMillis(500)).isEmpty());
      same("position", (long) COUNT, consumer.position(zero));
    }
    // By duration: the first record that is no older than the one at index 500, or a later one,
    // since the consumer counts back from a later now.
    int first = 0;
    while (Sample.timestampMs(first) < Sample.timestampMs(500)) {
      first++;
    }
    long age = System.currentTimeMillis() - Sample.timestampMs(500);
    try (var consumer =
        context.consumer("auto.offset.reset", "by_duration:PT" + (age / 1000.0) + "S")) {
      consumer.assign(List.of(zero));
      long position = consumer.position(zero);
      that("position by duration " + position, position >= first && position <= COUNT);
    }
  }

  private void readCommitted() {
    var records = context.readAll(zero, "isolation.level", "read_committed");
    same("records", COUNT, records.size());
    for (int i = 0; i < COUNT; i++) {
      Sample.sameRecord(0, i, i, records.get(i));
    }
  }

  private void pause() {
    var one = new TopicPartition(topic, 1);
    try (var consumer = context.consumer()) {
      consumer.assign(List.of(zero, one));
      consumer.seekToBeginning(List.of(zero, one));
      consumer.pause(List.of(zero));
      var records = Context.read(consumer, COUNT);
      same("only the other partition", COUNT, Context.of(records, 1).size());
      consumer.resume(List.of(zero));
      same("then the paused one", COUNT, Context.of(Context.read(consumer, COUNT), 0).size());
    }
  }

  private void lists() {
    try (var consumer = context.consumer()) {
      var infos = consumer.partitionsFor(topic);
      same("partitions", PARTITIONS, infos.size());
      infos.forEach(info -> same("leader", 1, info.leader().id()));
      var topics = consumer.listTopics();
      same("partitions in the list", PARTITIONS, topics.get(topic).size());
    }
  }

  private void unknownTopic() {
    var missing = new TopicPartition(context.name("missing"), 0);
    try (var consumer = context.consumer("default.api.timeout.ms", "1500")) {
      same("no partitions", List.of(), consumer.partitionsFor(missing.topic()));
      fails(TimeoutException.class, () -> consumer.endOffsets(List.of(missing)));
    }
    fails(
        UnknownTopicOrPartitionException.class,
        () ->
            context.admin.describeTopics(List.of(missing.topic())).allTopicNames().get());
  }

  private void reassign() {
    try (var consumer = context.consumer("max.poll.records", "50")) {
      Map<Integer, Integer> next = new HashMap<>();
      for (int round = 0; round < 6; round++) {
        // Partitions come and go, so the fetch session forgets and adds them.
        int p = round % PARTITIONS;
        var partition = new TopicPartition(topic, p);
        consumer.assign(List.of(partition));
        consumer.seek(partition, next.getOrDefault(p, 0));
        for (var record : Context.read(consumer, 50)) {
          int i = next.merge(p, 1, Integer::sum) - 1;
          Sample.sameRecord(p, i, i, record);
        }
      }
    }
  }

  private void tail() throws Exception {
    String topic = context.topic("tail", 1);
    var partition = new TopicPartition(topic, 0);
    try (var producer = context.producer("linger.ms", "1");
        KafkaConsumer<byte[], byte[]> consumer = context.consumer()) {
      consumer.assign(List.of(partition));
      consumer.seekToBeginning(List.of(partition));
      int read = 0;
      long deadline = System.nanoTime() + Context.DEADLINE.toNanos();
      for (int sent = 0; read < 3000; ) {
        for (int n = 0; n < 100 && sent < 3000; n++) {
          producer.send(Sample.record(topic, 0, 9, sent++));
        }
        for (var record : consumer.poll(Duration.ofMillis(50))) {
          Sample.sameRecord(9, read, read, record);
          read++;
        }
        that("all arrive in time", System.nanoTime() < deadline);
      }
    }
  }

  private void lag() {
    try (var consumer = context.consumer("max.poll.records", "10")) {
      consumer.assign(List.of(zero));
      consumer.seek(zero, 100);
      Context.read(consumer, 10);
      same("lag", COUNT - 110L, consumer.currentLag(zero).getAsLong());
    }
  }
}
