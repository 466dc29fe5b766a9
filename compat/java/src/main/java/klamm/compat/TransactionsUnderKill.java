package klamm.compat;

import static klamm.compat.Checks.same;
import static klamm.compat.Checks.that;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * `HOST:PORT SECONDS`: transactions over several partitions while somebody kills the broker. Each
 * one must be read whole or not at all, and as its producer was told.
 */
public final class TransactionsUnderKill {
  private static final int WRITERS = 3;
  private static final int PARTITIONS = 4;
  private static final int RECORDS = 6;

  /** What a producer was told; UNKNOWN when it was told nothing. */
  enum Outcome { COMMITTED, ABORTED, UNKNOWN }

  private final Context context;
  private final long end;
  private final Map<String, Outcome> outcomes = new ConcurrentHashMap<>();
  private final AtomicInteger fatal = new AtomicInteger();
  private String topic;

  private TransactionsUnderKill(Context context, int seconds) {
    this.context = context;
    this.end = System.nanoTime() + Duration.ofSeconds(seconds).toNanos();
  }

  public static void main(String[] args) throws Exception {
    Checks checks = new Checks("transactions-under-kill");
    try (Context context = new Context(args[0])) {
      var run = new TransactionsUnderKill(context, Integer.parseInt(args[1]));
      run.topic = context.topic("killed", PARTITIONS);
      System.out.println("topic " + run.topic);
      System.out.flush();
      List<Thread> writers = new ArrayList<>();
      for (int w = 0; w < WRITERS; w++) {
        int writer = w;
        writers.add(new Thread(() -> run.write(writer)));
        writers.get(w).start();
      }
      for (Thread writer : writers) {
        writer.join();
      }
      checks.check("every transaction as its producer was told", run::compare);
      checks.check("nothing hangs", run::nothingHangs);
    }
    System.exit(checks.failed() == 0 ? 0 : 1);
  }

  private void write(int writer) {
    String id = context.name("writer");
    Random random = new Random(writer);
    int n = 0;
    while (System.nanoTime() < end) {
      try (KafkaProducer<byte[], byte[]> producer =
          context.producer("transactional.id", id, "transaction.timeout.ms", "20000")) {
        Context.untilDone(producer::initTransactions);
        while (System.nanoTime() < end) {
          transaction(producer, "w" + writer + "t" + n++, random.nextInt(4) == 0);
        }
      } catch (KafkaException e) {
        // A producer that cannot go on; the next one of the same id does.
        fatal.incrementAndGet();
      }
    }
  }

  private void transaction(KafkaProducer<byte[], byte[]> producer, String name, boolean abort) {
    outcomes.put(name, Outcome.UNKNOWN);
    producer.beginTransaction();
    try {
      for (int i = 0; i < RECORDS; i++) {
        int partition = i % PARTITIONS;
        producer.send(new ProducerRecord<>(topic, partition, null, (name + "." + i).getBytes()));
      }
      if (!abort) {
        Context.untilDone(producer::commitTransaction);
        outcomes.put(name, Outcome.COMMITTED);
        return;
      }
      producer.flush();
    } catch (KafkaException e) {
      // Fatal ones are thrown again by the abort.
    }
    Context.untilDone(producer::abortTransaction);
    outcomes.put(name, Outcome.ABORTED);
  }

  private void compare() throws Exception {
    Context.eventually(this::noneOpen);
    Map<String, Integer> read = new HashMap<>();
    for (int p = 0; p < PARTITIONS; p++) {
      try (var consumer = context.consumer("isolation.level", "read_committed")) {
        TopicPartition from = new TopicPartition(topic, p);
        consumer.assign(List.of(from));
        consumer.seekToBeginning(List.of(from));
        long last = consumer.endOffsets(List.of(from)).get(from);
        while (consumer.position(from) < last) {
          for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200))) {
            String name = new String(r.value());
            read.merge(name.substring(0, name.indexOf('.')), 1, Integer::sum);
          }
        }
      }
    }
    int committed = 0;
    for (Map.Entry<String, Outcome> entry : outcomes.entrySet()) {
      int records = read.getOrDefault(entry.getKey(), 0);
      String what = entry.getKey() + " " + entry.getValue();
      switch (entry.getValue()) {
        case COMMITTED -> same(what, RECORDS, records);
        case ABORTED -> same(what, 0, records);
        default -> that(what + ": " + records, records == 0 || records == RECORDS);
      }
      committed += entry.getValue() == Outcome.COMMITTED ? 1 : 0;
    }
    that("transactions of all kinds", committed > 10);
    long unknown = outcomes.values().stream().filter(o -> o == Outcome.UNKNOWN).count();
    System.out.println(
        "# " + outcomes.size() + " transactions, " + committed + " committed, " + unknown
            + " unknown, " + fatal + " producers given up");
  }

  private long end(int partition, IsolationLevel isolation) throws Exception {
    TopicPartition at = new TopicPartition(topic, partition);
    var options = new ListOffsetsOptions(isolation);
    var listed = context.admin.listOffsets(Map.of(at, OffsetSpec.latest()), options);
    return listed.partitionResult(at).get().offset();
  }

  private void noneOpen() throws Exception {
    for (int p = 0; p < PARTITIONS; p++) {
      long stable = end(p, IsolationLevel.READ_COMMITTED);
      same("stable end of " + p, end(p, IsolationLevel.READ_UNCOMMITTED), stable);
    }
  }

  private void nothingHangs() throws Exception {
    noneOpen();
    for (int p = 0; p < PARTITIONS; p++) {
      TopicPartition at = new TopicPartition(topic, p);
      var producers = context.admin.describeProducers(List.of(at)).partitionResult(at).get();
      that(
          "an open transaction",
          producers.activeProducers().stream()
              .allMatch(s -> s.currentTransactionStartOffset().isEmpty()));
    }
  }
}
