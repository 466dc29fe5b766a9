package klamm.compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * A read_committed reader of all partitions. After every poll:
 *
 * <ol>
 *   <li>each record continues the balance of its account: nothing lost, doubled or aborted;
 *   <li>at an end of a partition where nothing was open, each transfer is whole in it (below
 *       another's open transaction it need not be: its marker is behind that one's first record);
 *   <li>the total, without transfers whose records in other partitions are still to come, is the
 *       one there was at the beginning.
 * </ol>
 */
final class BankReader implements AutoCloseable {
  private final String topic;
  private final KafkaConsumer<byte[], byte[]> consumer;
  /** Only asked for ends. */
  private final KafkaConsumer<byte[], byte[]> plain;
  private final List<TopicPartition> partitions;
  private final Long[] balances = new Long[BankEntry.ACCOUNTS];
  /** Of the records that the balances are from. */
  private final Long[] offsets = new Long[BankEntry.ACCOUNTS];
  /** Transfers of which records are still to come. */
  private final Map<String, List<BankEntry>> open = new HashMap<>();
  private final List<Map<String, Long>> openIn = new ArrayList<>();
  private final long[] stableEnds = new long[BankEntry.PARTITIONS];
  /** The stable ends at which no transaction was open, else -1. */
  private final long[] quietEnds = new long[BankEntry.PARTITIONS];
  final Set<String> seen = new HashSet<>();
  long moments;

  BankReader(Context context, String topic) {
    this.topic = topic;
    this.partitions = Bank.partitions(topic);
    this.consumer = context.consumer("isolation.level", "read_committed");
    this.plain = context.consumer();
    consumer.assign(partitions);
    consumer.seekToBeginning(partitions);
    for (int p = 0; p < BankEntry.PARTITIONS; p++) {
      openIn.add(new HashMap<>());
    }
    lookAtEnds();
  }

  void poll() {
    for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(100))) {
      if (!BankEntry.isMark(r.value())) {
        take(BankEntry.of(r.value()), r.partition(), r.offset());
      }
    }
    checkPartitions();
    checkTotal();
    lookAtEnds();
    moments++;
  }

  private void take(BankEntry entry, int partition, long offset) {
    Long before = balances[entry.account()];
    long expected = (before == null ? 0 : before) + entry.delta();
    Checks.same(
        "balance in " + entry + " at " + offset + ", before it at " + offsets[entry.account()],
        expected, entry.balance());
    balances[entry.account()] = entry.balance();
    offsets[entry.account()] = offset;
    List<BankEntry> records = open.computeIfAbsent(entry.transfer(), t -> new ArrayList<>());
    Checks.that(entry + " is new", seen.add(entry.transfer()) || !records.isEmpty());
    records.add(entry);
    if (records.size() == entry.records()) {
      open.remove(entry.transfer());
    }
    long here = records.stream()
        .filter(e -> BankEntry.partitionOf(e.account()) == partition).count();
    if (here == entry.here()) {
      openIn.get(partition).remove(entry.transfer());
    } else {
      openIn.get(partition).putIfAbsent(entry.transfer(), offset);
    }
  }

  private void checkPartitions() {
    for (int p = 0; p < BankEntry.PARTITIONS; p++) {
      long end = quietEnds[p];
      if (end < 0 || consumer.position(partitions.get(p)) < end) {
        continue;
      }
      openIn.get(p).forEach(
          (transfer, offset) ->
              Checks.that(
                  transfer + " is half there in " + topic + " below " + end, offset >= end));
    }
  }

  private void checkTotal() {
    long total = 0;
    for (Long balance : balances) {
      total += balance == null ? 0 : balance;
    }
    for (List<BankEntry> records : open.values()) {
      for (BankEntry entry : records) {
        total -= entry.delta();
      }
    }
    boolean opened =
        seen.contains(BankEntry.OPENING) && !open.containsKey(BankEntry.OPENING);
    Checks.same("total", opened ? BankEntry.TOTAL : 0, total);
  }

  private void lookAtEnds() {
    try {
      // In this order: ends only grow, so equal ones were equal at one moment.
      var stable = consumer.endOffsets(partitions);
      var ends = plain.endOffsets(partitions);
      for (TopicPartition partition : partitions) {
        long end = stable.get(partition);
        stableEnds[partition.partition()] = end;
        quietEnds[partition.partition()] = end == ends.get(partition) ? end : -1;
      }
    } catch (TimeoutException e) {
      Arrays.fill(quietEnds, -1);
    }
  }

  /** Reads up to these offsets. */
  void readTo(Map<TopicPartition, Long> ends, Duration deadline) {
    long end = System.nanoTime() + deadline.toNanos();
    while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
      Checks.that("read to the end in time", System.nanoTime() < end);
      poll();
    }
  }

  /** Those that the reader knows of now. */
  Map<TopicPartition, Long> stableEnds() {
    Map<TopicPartition, Long> ends = new HashMap<>();
    partitions.forEach(p -> ends.put(p, stableEnds[p.partition()]));
    return ends;
  }

  int openTransfers() {
    return open.size();
  }

  @Override
  public void close() {
    consumer.close();
    plain.close();
  }
}
