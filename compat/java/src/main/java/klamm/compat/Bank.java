package klamm.compat;

import static klamm.compat.Checks.same;
import static klamm.compat.Checks.that;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * A bank in a topic, while somebody kills the broker and the workers.
 *
 * <pre>
 * HOST:PORT work TOPIC NAME OWNER...   moves money until a line comes in; prints `begun`,
 *                                      `committed` and `aborted TRANSFER`
 * HOST:PORT read                       makes the topic, prints its name, reads it in several ways
 *                                      until a line names a file of what the workers printed
 * </pre>
 */
public final class Bank {
  private static final int READERS = 2;
  private static final Duration DEADLINE = Duration.ofSeconds(120);

  private final Context context;
  private final String topic;
  private final AtomicBoolean stopping = new AtomicBoolean();
  private final AtomicLong moments = new AtomicLong();
  private final AtomicLong fresh = new AtomicLong();
  private final List<Throwable> broken = new ArrayList<>();

  private Bank(Context context, String topic) {
    this.context = context;
    this.topic = topic;
  }

  static synchronized void print(String line) {
    System.out.println(line);
    System.out.flush();
  }

  static List<TopicPartition> partitions(String topic) {
    List<TopicPartition> all = new ArrayList<>();
    for (int p = 0; p < BankEntry.PARTITIONS; p++) {
      all.add(new TopicPartition(topic, p));
    }
    return all;
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    try (Context context = new Context(args[0])) {
      if (args[1].equals("work")) {
        AtomicBoolean stopping = new AtomicBoolean();
        List<Thread> threads = new ArrayList<>();
        for (int i = 4; i < args.length; i++) {
          int owner = Integer.parseInt(args[i]);
          threads.add(new Thread(new BankWorker(context, args[2], args[3], owner, stopping)));
        }
        threads.forEach(Thread::start);
        in.readLine();
        stopping.set(true);
        for (Thread thread : threads) {
          thread.join();
        }
        return;
      }
      Bank bank = new Bank(context, context.topic("bank", BankEntry.PARTITIONS));
      Checks checks = new Checks("bank");
      checks.check("total, balances and transfers for every reader", () -> bank.read(in));
      System.exit(checks.failed() == 0 ? 0 : 1);
    }
  }

  private void open() {
    try (var producer = context.producer("transactional.id", context.name("opening"))) {
      producer.initTransactions();
      producer.beginTransaction();
      int here = BankEntry.ACCOUNTS / BankEntry.PARTITIONS;
      for (int account = 0; account < BankEntry.ACCOUNTS; account++) {
        long balance = BankEntry.FIRST_BALANCE;
        var entry = new BankEntry(
            BankEntry.OPENING, BankEntry.ACCOUNTS, here, account, balance, balance);
        int partition = BankEntry.partitionOf(account);
        producer.send(new ProducerRecord<>(topic, partition, null, entry.bytes()));
      }
      producer.commitTransaction();
    }
  }

  private void read(BufferedReader in) throws Exception {
    open();
    List<Thread> threads = new ArrayList<>();
    threads.add(new Thread(guarded(this::readAnew)));
    List<BankReader> readers = new ArrayList<>();
    for (int i = 0; i < READERS; i++) {
      BankReader reader = new BankReader(context, topic);
      readers.add(reader);
      threads.add(new Thread(guarded(() -> {
        while (!stopping.get()) {
          reader.poll();
        }
      })));
    }
    threads.forEach(Thread::start);
    print("topic " + topic);
    String told = in.readLine();
    Map<TopicPartition, Long> ends = new HashMap<>();
    Context.eventually(() -> ends.putAll(settled()));
    stopping.set(true);
    for (Thread thread : threads) {
      thread.join();
    }
    for (Throwable thrown : broken) {
      throw new AssertionError(thrown.toString(), thrown);
    }
    readers.add(new BankReader(context, topic));
    int committed = 0;
    for (BankReader reader : readers) {
      reader.readTo(ends, DEADLINE);
      same("transfers of which a part is missing", 0, reader.openTransfers());
      committed = compare(reader, Files.readAllLines(Path.of(told)));
      moments.addAndGet(reader.moments);
      reader.close();
    }
    print("# " + committed + " transfers committed, " + moments.get() + " moments looked at, "
        + fresh.get() + " readers from the beginning");
  }

  private Runnable guarded(Checks.Body body) {
    return () -> {
      try {
        body.run();
      } catch (Throwable t) {
        synchronized (broken) {
          broken.add(t);
        }
      }
    };
  }

  /** One reader after the other, each from the beginning to what is stable when it starts. */
  private void readAnew() {
    while (!stopping.get()) {
      try (BankReader reader = new BankReader(context, topic)) {
        reader.readTo(reader.stableEnds(), DEADLINE);
        moments.addAndGet(reader.moments);
        fresh.incrementAndGet();
      } catch (TimeoutException e) {
        // The broker was down when it began.
      }
    }
  }

  /** The ends, when no transaction is open any more. */
  private Map<TopicPartition, Long> settled() {
    List<TopicPartition> all = partitions(topic);
    try (KafkaConsumer<byte[], byte[]> plain = context.consumer();
        KafkaConsumer<byte[], byte[]> stable =
            context.consumer("isolation.level", "read_committed")) {
      Map<TopicPartition, Long> ends = plain.endOffsets(all);
      same("stable ends", ends, stable.endOffsets(all));
      return ends;
    }
  }

  /** What the workers were told is what a reader sees; the rest may be either. */
  private static int compare(BankReader reader, List<String> told) {
    int committed = 0;
    for (String line : told) {
      String[] words = line.split(" ");
      if (words[0].equals("committed")) {
        committed++;
        that(words[1] + " was committed and is not there", reader.seen.contains(words[1]));
      } else if (words[0].equals("aborted")) {
        that(words[1] + " was aborted and is there", !reader.seen.contains(words[1]));
      }
    }
    that("transfers were committed", committed > 0);
    return committed;
  }
}
