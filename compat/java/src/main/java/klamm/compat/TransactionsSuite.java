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
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TransactionalIdNotFoundException;

/** Transactional producers, readers of committed records, the admin's view of transactions. */
final class TransactionsSuite {
  private static final String[] COMMITTED = {"isolation.level", "read_committed"};

  private final Context context;

  private TransactionsSuite(Context context) {
    this.context = context;
  }

  static void run(Context context, Checks checks) {
    TransactionsSuite suite = new TransactionsSuite(context);
    checks.check("committed records are read, aborted ones are not", suite::commitAndAbort);
    checks.check("many transactions, every third aborted", suite::many);
    checks.check("an open transaction holds readers back", suite::lastStableOffset);
    checks.check("overlapping transactions", suite::overlapping);
    checks.check("a second producer shuts the first one out", suite::fencing);
    checks.check("the next producer aborts what was left open", suite::takeOver);
    checks.check("a transaction that takes too long is aborted", suite::timeOut);
    checks.check("a time-out above the broker's is refused", suite::tooLongTimeOut);
    checks.check("an empty transaction", suite::empty);
    checks.check("a flush in the middle, large transaction", suite::large);
    for (String protocol : List.of("classic", "consumer")) {
      checks.check(protocol + ": consume, transform, produce", () -> suite.pipeline(protocol));
      checks.check(protocol + ": offsets of an aborted transaction", () -> suite.offsets(protocol));
    }
    checks.check("admin lists and describes transactions", suite::admin);
    checks.check("admin fences a producer", suite::adminFences);
    checks.check("admin aborts a hanging transaction", suite::adminAborts);
  }

  private KafkaProducer<byte[], byte[]> producer(String id, String... more) {
    List<String> all = new ArrayList<>(List.of("transactional.id", id));
    all.addAll(List.of(more));
    KafkaProducer<byte[], byte[]> producer = context.producer(all.toArray(String[]::new));
    producer.initTransactions();
    return producer;
  }

  private static Future<RecordMetadata> send(
      KafkaProducer<byte[], byte[]> producer, String topic, int partition, String value) {
    return producer.send(new ProducerRecord<>(topic, partition, null, value.getBytes()));
  }

  private List<String> values(String topic, int partition, String... configs) {
    List<String> values = new ArrayList<>();
    TopicPartition from = new TopicPartition(topic, partition);
    try (KafkaConsumer<byte[], byte[]> consumer = context.consumer(configs)) {
      consumer.assign(List.of(from));
      consumer.seekToBeginning(List.of(from));
      long end = consumer.endOffsets(List.of(from)).get(from);
      long deadline = System.nanoTime() + Context.DEADLINE.toNanos();
      while (consumer.position(from) < end) {
        that("read to the end in time", System.nanoTime() < deadline);
        for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200))) {
          values.add(new String(r.value()));
        }
      }
    }
    return values;
  }

  private void commitAndAbort() throws Exception {
    String topic = context.topic("txn", 2);
    try (var producer = producer(context.name("id"))) {
      producer.beginTransaction();
      send(producer, topic, 0, "a");
      send(producer, topic, 1, "b");
      producer.commitTransaction();
      producer.beginTransaction();
      send(producer, topic, 0, "no");
      producer.flush();
      producer.abortTransaction();
      producer.beginTransaction();
      send(producer, topic, 0, "c");
      producer.commitTransaction();
    }
    same("committed, 0", List.of("a", "c"), values(topic, 0, COMMITTED));
    same("committed, 1", List.of("b"), values(topic, 1, COMMITTED));
    same("all", List.of("a", "no", "c"), values(topic, 0));
  }

  private void many() throws Exception {
    String topic = context.topic("txn", 3);
    Map<Integer, List<String>> expected = new HashMap<>();
    try (var producer = producer(context.name("id"))) {
      for (int t = 0; t < 100; t++) {
        boolean abort = t % 3 == 2;
        producer.beginTransaction();
        for (int i = 0; i < 10; i++) {
          int partition = (t + i) % 3;
          send(producer, topic, partition, t + "-" + i);
          if (!abort) {
            expected.computeIfAbsent(partition, p -> new ArrayList<>()).add(t + "-" + i);
          }
        }
        if (abort) {
          producer.flush();
          producer.abortTransaction();
        } else {
          producer.commitTransaction();
        }
      }
    }
    for (int p = 0; p < 3; p++) {
      same("partition " + p, expected.get(p), values(topic, p, COMMITTED));
    }
  }

  private long end(String topic, IsolationLevel isolation) throws Exception {
    TopicPartition partition = new TopicPartition(topic, 0);
    var options = new ListOffsetsOptions(isolation);
    var listed = context.admin.listOffsets(Map.of(partition, OffsetSpec.latest()), options);
    return listed.partitionResult(partition).get().offset();
  }

  private void lastStableOffset() throws Exception {
    String topic = context.topic("txn", 1);
    try (var open = producer(context.name("id")); var plain = context.producer()) {
      send(plain, topic, 0, "first").get();
      open.beginTransaction();
      send(open, topic, 0, "open").get();
      send(plain, topic, 0, "behind").get();
      same("last stable", 1L, end(topic, IsolationLevel.READ_COMMITTED));
      same("end", 3L, end(topic, IsolationLevel.READ_UNCOMMITTED));
      same("committed", List.of("first"), values(topic, 0, COMMITTED));
      open.commitTransaction();
      Context.eventually(
          () -> same("last stable", 4L, end(topic, IsolationLevel.READ_COMMITTED)));
      same("committed", List.of("first", "open", "behind"), values(topic, 0, COMMITTED));
    }
  }

  private void overlapping() throws Exception {
    String topic = context.topic("txn", 1);
    try (var a = producer(context.name("id")); var b = producer(context.name("id"))) {
      a.beginTransaction();
      b.beginTransaction();
      for (int i = 0; i < 20; i++) {
        send(a, topic, 0, "a" + i).get();
        send(b, topic, 0, "b" + i).get();
      }
      b.commitTransaction();
      a.abortTransaction();
    }
    List<String> expected = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      expected.add("b" + i);
    }
    same("committed", expected, values(topic, 0, COMMITTED));
  }

  private void fencing() throws Exception {
    String topic = context.topic("txn", 1);
    String id = context.name("id");
    try (var zombie = producer(id)) {
      zombie.beginTransaction();
      send(zombie, topic, 0, "zombie").get();
      try (var owner = producer(id)) {
        owner.beginTransaction();
        send(owner, topic, 0, "owner").get();
        fails(ProducerFencedException.class, zombie::commitTransaction);
        owner.commitTransaction();
      }
      same("committed", List.of("owner"), values(topic, 0, COMMITTED));
    }
  }

  private void takeOver() throws Exception {
    String topic = context.topic("txn", 1);
    String id = context.name("id");
    var gone = producer(id);
    gone.beginTransaction();
    send(gone, topic, 0, "left open").get();
    // As after a crash: nobody ends the transaction.
    gone.close(Duration.ZERO);
    try (var next = producer(id)) {
      next.beginTransaction();
      send(next, topic, 0, "next");
      next.commitTransaction();
    }
    same("committed", List.of("next"), values(topic, 0, COMMITTED));
  }

  private void timeOut() throws Exception {
    String topic = context.topic("txn", 1);
    try (var slow = producer(context.name("id"), "transaction.timeout.ms", "1000")) {
      slow.beginTransaction();
      send(slow, topic, 0, "slow").get();
      same("last stable", 0L, end(topic, IsolationLevel.READ_COMMITTED));
      Context.eventually(
          () -> that("it was ended", end(topic, IsolationLevel.READ_COMMITTED) >= 2));
      same("committed", List.of(), values(topic, 0, COMMITTED));
      try {
        slow.commitTransaction();
        throw new AssertionError("an aborted transaction was committed");
      } catch (KafkaException expected) {
        that("not a time-out of the client", expected.getMessage() != null);
      }
    }
    same("committed", List.of(), values(topic, 0, COMMITTED));
  }

  private void tooLongTimeOut() {
    var producer =
        context.producer("transactional.id", context.name("id"), "transaction.timeout.ms", "900001");
    try (producer) {
      var thrown = fails(KafkaException.class, producer::initTransactions);
      that("it names the reason", thrown.getMessage().contains("larger than the maximum value"));
    }
  }

  private void empty() throws Exception {
    String topic = context.topic("txn", 1);
    try (var producer = producer(context.name("id"))) {
      producer.beginTransaction();
      producer.commitTransaction();
      producer.beginTransaction();
      producer.abortTransaction();
      producer.beginTransaction();
      send(producer, topic, 0, "x");
      producer.commitTransaction();
    }
    same("committed", List.of("x"), values(topic, 0, COMMITTED));
  }

  private void large() throws Exception {
    String topic = context.topic("txn", 1, "segment.bytes", "1048576");
    String filler = "x".repeat(4000);
    try (var producer = producer(context.name("id"))) {
      for (int t = 0; t < 4; t++) {
        producer.beginTransaction();
        for (int i = 0; i < 300; i++) {
          send(producer, topic, 0, t + filler);
        }
        producer.flush();
        if (t % 2 == 0) {
          producer.abortTransaction();
        } else {
          producer.commitTransaction();
        }
      }
    }
    List<String> read = values(topic, 0, COMMITTED);
    same("records", 600, read.size());
    that("only committed ones", read.stream().noneMatch(v -> (v.charAt(0) - '0') % 2 == 0));
  }

  private KafkaConsumer<byte[], byte[]> member(String group, String protocol) {
    return context.consumer(
        "group.id", group, "group.protocol", protocol, "auto.offset.reset", "earliest",
        "isolation.level", "read_committed");
  }

  private void pipeline(String protocol) throws Exception {
    String in = context.topic("txn-in", 2);
    String out = context.topic("txn-out", 1);
    String group = context.name("group");
    try (var source = context.producer()) {
      for (int i = 0; i < 100; i++) {
        send(source, in, i % 2, "v" + i);
      }
    }
    int rounds = 0;
    List<String> taken = new ArrayList<>();
    try (var producer = producer(context.name("id")); var consumer = member(group, protocol)) {
      consumer.subscribe(List.of(in));
      long deadline = System.nanoTime() + Context.DEADLINE.toNanos();
      while (taken.size() < 100) {
        that("done in time", System.nanoTime() < deadline);
        var records = consumer.poll(Duration.ofMillis(500));
        if (records.isEmpty()) {
          continue;
        }
        boolean abort = rounds++ == 0;
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (var record : records) {
          send(producer, out, 0, "out " + new String(record.value()));
          offsets.put(
              new TopicPartition(in, record.partition()),
              new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        if (abort) {
          producer.abortTransaction();
          for (TopicPartition partition : consumer.assignment()) {
            var committed = consumer.committed(java.util.Set.of(partition)).get(partition);
            same("committed before", null, committed);
          }
          consumer.seekToBeginning(consumer.assignment());
          continue;
        }
        producer.commitTransaction();
        records.forEach(record -> taken.add("out " + new String(record.value())));
      }
    }
    same("output", taken.stream().sorted().toList(),
        values(out, 0, COMMITTED).stream().sorted().toList());
    try (var next = member(group, protocol)) {
      for (int p = 0; p < 2; p++) {
        TopicPartition partition = new TopicPartition(in, p);
        var committed = next.committed(java.util.Set.of(partition)).get(partition);
        same("committed offset", 50L, committed.offset());
      }
    }
  }

  private void offsets(String protocol) throws Exception {
    String topic = context.topic("txn", 1);
    TopicPartition partition = new TopicPartition(topic, 0);
    String group = context.name("group");
    try (var producer = producer(context.name("id")); var reader = member(group, protocol)) {
      var metadata = new org.apache.kafka.clients.consumer.ConsumerGroupMetadata(group);
      producer.beginTransaction();
      producer.sendOffsetsToTransaction(
          Map.of(partition, new OffsetAndMetadata(7, "seven")), metadata);
      producer.commitTransaction();
      var found = reader.committed(java.util.Set.of(partition)).get(partition);
      same("committed", new OffsetAndMetadata(7, "seven"), found);
      producer.beginTransaction();
      producer.sendOffsetsToTransaction(Map.of(partition, new OffsetAndMetadata(9)), metadata);
      producer.abortTransaction();
      found = reader.committed(java.util.Set.of(partition)).get(partition);
      same("committed after the abort", 7L, found.offset());
    }
  }

  private void admin() throws Exception {
    String topic = context.topic("txn", 2);
    TopicPartition partition = new TopicPartition(topic, 0);
    String id = context.name("id");
    try (var producer = producer(id, "transaction.timeout.ms", "45000")) {
      producer.beginTransaction();
      send(producer, topic, 0, "x").get();
      var described = context.admin.describeTransactions(List.of(id)).description(id).get();
      same("state", TransactionState.ONGOING, described.state());
      same("time-out", 45000L, described.transactionTimeoutMs());
      same("partitions", java.util.Set.of(partition), described.topicPartitions());
      that("it has begun", described.transactionStartTimeMs().isPresent());
      var options = new ListTransactionsOptions();
      options.filterStates(List.of(TransactionState.ONGOING));
      var listed = context.admin.listTransactions(options).all().get();
      that("listed", listed.stream().anyMatch(l -> l.transactionalId().equals(id)));
      var producers = context.admin.describeProducers(List.of(partition));
      ProducerState state = producers.partitionResult(partition).get().activeProducers().get(0);
      same("producer", described.producerId(), state.producerId());
      same("since", 0L, state.currentTransactionStartOffset().getAsLong());
      producer.commitTransaction();
    }
    Context.eventually(
        () -> {
          var described = context.admin.describeTransactions(List.of(id)).description(id).get();
          same("state", TransactionState.COMPLETE_COMMIT, described.state());
        });
    String unknown = context.name("nobody");
    fails(
        TransactionalIdNotFoundException.class,
        () -> context.admin.describeTransactions(List.of(unknown)).description(unknown).get());
  }

  private void adminFences() throws Exception {
    String topic = context.topic("txn", 1);
    String id = context.name("id");
    try (var producer = producer(id)) {
      producer.beginTransaction();
      send(producer, topic, 0, "x").get();
      context.admin.fenceProducers(List.of(id)).all().get();
      fails(ProducerFencedException.class, producer::commitTransaction);
    }
    same("committed", List.of(), values(topic, 0, COMMITTED));
  }

  private void adminAborts() throws Exception {
    String topic = context.topic("txn", 1);
    TopicPartition partition = new TopicPartition(topic, 0);
    try (var producer = producer(context.name("id"))) {
      producer.beginTransaction();
      send(producer, topic, 0, "hangs").get();
      var producers = context.admin.describeProducers(List.of(partition));
      ProducerState state = producers.partitionResult(partition).get().activeProducers().get(0);
      int coordinatorEpoch = state.coordinatorEpoch().orElse(0);
      var spec =
          new AbortTransactionSpec(
              partition, state.producerId(), (short) state.producerEpoch(), coordinatorEpoch);
      context.admin.abortTransaction(spec).all().get();
      same("last stable", 2L, end(topic, IsolationLevel.READ_COMMITTED));
      same("committed", List.of(), values(topic, 0, COMMITTED));
      try {
        producer.abortTransaction();
      } catch (KafkaException e) {
        // Its marker is refused in that partition; what counts is what readers see.
      }
    }
  }
}
