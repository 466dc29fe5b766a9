package klamm.compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * Moves money between the accounts of one owner: reads their balances, then writes new ones in
 * transactions, of which some are aborted, some left open and some ended too late.
 */
final class BankWorker implements Runnable {
  static final int TIMEOUT_MS = 2000;
  private static final Duration READ_DEADLINE = Duration.ofSeconds(120);

  private final Context context;
  private final String topic;
  private final String name;
  private final AtomicBoolean stopping;
  private final Random random;
  private final List<Integer> accounts = new ArrayList<>();
  private final Map<Integer, Long> balances = new HashMap<>();
  private int transfers;

  BankWorker(Context context, String topic, String name, int owner, AtomicBoolean stopping) {
    this.context = context;
    this.topic = topic;
    this.name = name + "-" + owner;
    this.stopping = stopping;
    this.random = new Random(this.name.hashCode());
    for (int account = 0; account < BankEntry.ACCOUNTS; account++) {
      if (BankEntry.ownerOf(account) == owner) {
        accounts.add(account);
      }
    }
  }

  /** The transaction was left open on purpose. */
  private static final class GoneWithoutWord extends RuntimeException {}

  @Override
  public void run() {
    String id = name;
    for (int life = 1; !stopping.get(); life++) {
      live(id);
      // Under its own id it ends what it left open; under another one it waits for the time-out.
      if (random.nextBoolean()) {
        id = name + "-" + life;
      }
    }
  }

  private void live(String id) {
    KafkaProducer<byte[], byte[]> producer =
        context.producer(
            "transactional.id", id, "transaction.timeout.ms", Integer.toString(TIMEOUT_MS));
    try {
      Context.untilDone(producer::initTransactions);
      read();
      while (!stopping.get()) {
        transfer(producer, id);
      }
    } catch (GoneWithoutWord | KafkaException e) {
      // The next life goes on from what is written.
    } finally {
      producer.close(Duration.ZERO);
    }
  }

  /**
   * Where the partitions ended at one moment since the call. A node that is cut off and does not
   * lead any more would answer with an end of before; what all replicas have confirmed is newer.
   */
  private Map<TopicPartition, Long> ends(List<TopicPartition> all) {
    Map<TopicPartition, Long> ends = new HashMap<>();
    try (KafkaProducer<byte[], byte[]> plain = context.producer()) {
      for (TopicPartition p : all) {
        ProducerRecord<byte[], byte[]> mark =
            new ProducerRecord<>(p.topic(), p.partition(), null, BankEntry.MARK);
        Context.untilDone(
            () -> {
              try {
                ends.put(p, plain.send(mark).get().offset() + 1);
              } catch (InterruptedException | ExecutionException e) {
                throw new TimeoutException(e);
              }
            });
      }
    }
    return ends;
  }

  /** The balances, once nothing that was open before can change them any more. */
  private void read() {
    List<TopicPartition> all = Bank.partitions(topic);
    Map<TopicPartition, Long> ends = ends(all);
    long deadline = System.nanoTime() + READ_DEADLINE.toNanos();
    try (KafkaConsumer<byte[], byte[]> consumer =
        context.consumer("isolation.level", "read_committed")) {
      consumer.assign(all);
      Context.untilDone(() -> consumer.seekToBeginning(all));
      balances.clear();
      while (true) {
        for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(100))) {
          if (BankEntry.isMark(r.value())) {
            continue;
          }
          BankEntry entry = BankEntry.of(r.value());
          balances.put(entry.account(), entry.balance());
        }
        boolean[] behind = {false};
        Context.untilDone(
            () -> behind[0] = all.stream().anyMatch(p -> consumer.position(p) < ends.get(p)));
        if (!behind[0] || stopping.get()) {
          return;
        }
        if (System.nanoTime() > deadline) {
          System.out.println("FAIL " + name + ": a transaction holds readers back for too long");
          System.out.flush();
          return;
        }
      }
    }
  }

  private void transfer(KafkaProducer<byte[], byte[]> producer, String id) {
    String transfer = id + "#" + transfers++;
    Collections.shuffle(accounts, random);
    List<BankEntry> entries = entries(transfer, accounts.subList(0, 2 + random.nextInt(3)));
    int fate = random.nextInt(60);
    Bank.print("begun " + transfer);
    producer.beginTransaction();
    try {
      for (BankEntry entry : entries) {
        int partition = BankEntry.partitionOf(entry.account());
        producer.send(new ProducerRecord<>(topic, partition, null, entry.bytes()));
      }
      if (fate < 2) {
        producer.flush();
        if (fate == 0) {
          throw new GoneWithoutWord();
        }
        pause(TIMEOUT_MS + 1500);
      }
      if (fate < 2 || fate > 12) {
        Context.untilDone(producer::commitTransaction);
        Bank.print("committed " + transfer);
        entries.forEach(entry -> balances.put(entry.account(), entry.balance()));
        return;
      }
      producer.flush();
    } catch (KafkaException e) {
      // One that allows an abort, or the abort throws as well.
    }
    Context.untilDone(producer::abortTransaction);
    Bank.print("aborted " + transfer);
  }

  private List<BankEntry> entries(String transfer, List<Integer> chosen) {
    Map<Integer, Integer> here = new HashMap<>();
    chosen.forEach(account -> here.merge(BankEntry.partitionOf(account), 1, Integer::sum));
    List<BankEntry> entries = new ArrayList<>();
    long left = 0;
    for (int i = 0; i < chosen.size(); i++) {
      int account = chosen.get(i);
      long delta = i == chosen.size() - 1 ? -left : random.nextInt(41) - 20;
      left += delta;
      entries.add(
          new BankEntry(
              transfer, chosen.size(), here.get(BankEntry.partitionOf(account)), account, delta,
              balances.get(account) + delta));
    }
    return entries;
  }

  /** As a process that is not scheduled for a while. */
  private static void pause(int ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
