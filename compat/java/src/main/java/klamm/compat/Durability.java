package klamm.compat;

import static klamm.compat.Checks.same;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Writes records that follow from a seed, and reads them back after whatever befell the broker.
 *
 * <pre>
 *   Durability write  HOST:PORT TOPIC CODEC COUNT SEED FILE
 *   Durability verify HOST:PORT TOPIC COUNT SEED FILE
 * </pre>
 *
 * `write` makes the topic if need be, sends COUNT records of 1 KiB with acks=all, prints
 * `acknowledged N` now and then, and leaves in FILE the offset of each record, -1 for those that
 * were not acknowledged. `verify` reads the partition from its start to its end and fails unless
 *
 * <ol>
 *   <li>each acknowledged record is at its offset, the same in key, value and timestamp;
 *   <li>every record found is one that was sent, whole;
 *   <li>they are in the order in which they were sent, none twice.
 * </ol>
 */
public final class Durability {
  private static final int VALUE_BYTES = 1024;
  private static final int REPORT_EVERY = 1000;
  private static final long NOT_ACKNOWLEDGED = -1;

  private Durability() {}

  public static void main(String[] args) throws Exception {
    try (Context context = new Context(args[1])) {
      if (args[0].equals("write")) {
        long seed = Long.parseLong(args[5]);
        write(context, args[2], args[3], Integer.parseInt(args[4]), seed, Path.of(args[6]));
      } else {
        long seed = Long.parseLong(args[4]);
        verify(context, args[2], Integer.parseInt(args[3]), seed, Path.of(args[5]));
      }
    } catch (Throwable t) {
      System.out.println("error: " + t);
      System.exit(1);
    }
    System.exit(0);
  }

  /** Half noise, half text, so that every codec has something to do and something to find. */
  private static byte[] value(long seed, int i) {
    SplittableRandom random = new SplittableRandom(seed * 1_000_003 + i);
    byte[] value = new byte[VALUE_BYTES];
    ByteBuffer buffer = ByteBuffer.wrap(value);
    while (buffer.position() < VALUE_BYTES / 2) {
      buffer.putLong(random.nextLong());
    }
    byte[] word = Long.toString(random.nextLong(), 36).getBytes();
    while (buffer.hasRemaining()) {
      buffer.put(word, 0, Math.min(word.length, buffer.remaining()));
    }
    return value;
  }

  private static byte[] key(int i) {
    return ByteBuffer.allocate(4).putInt(i).array();
  }

  private static long timestampMs(long seed, int i) {
    return seed + i;
  }

  private static void write(
      Context context, String topic, String codec, int count, long seed, Path file)
      throws Exception {
    if (!context.admin.listTopics().names().get().contains(topic)) {
      var asked = new org.apache.kafka.clients.admin.NewTopic(topic, 1, (short) 1);
      context.admin.createTopics(List.of(asked)).all().get();
      context.serves(topic, 1);
    }
    long[] offsets = new long[count];
    Arrays.fill(offsets, NOT_ACKNOWLEDGED);
    AtomicInteger acknowledged = new AtomicInteger();
    AtomicReference<Exception> failure = new AtomicReference<>();
    try (var producer =
        context.producer(
            "acks", "all",
            "compression.type", codec,
            "linger.ms", "5",
            "batch.size", "65536",
            // The producer outlives a broker that is killed and started again.
            "request.timeout.ms", "10000",
            "max.block.ms", "120000",
            "delivery.timeout.ms", "120000")) {
      for (int i = 0; i < count; i++) {
        int index = i;
        producer.send(
            new ProducerRecord<>(topic, 0, timestampMs(seed, i), key(i), value(seed, i)),
            (metadata, error) -> {
              if (error != null) {
                failure.compareAndSet(null, error);
                return;
              }
              offsets[index] = metadata.offset();
              int n = acknowledged.incrementAndGet();
              if (n % REPORT_EVERY == 0) {
                System.out.println("acknowledged " + n);
                System.out.flush();
              }
            });
      }
    }
    try (var out =
        new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(file)))) {
      for (long offset : offsets) {
        out.writeLong(offset);
      }
    }
    if (failure.get() != null) {
      throw failure.get();
    }
    System.out.println("acknowledged " + acknowledged.get() + " in all");
  }

  private static void verify(Context context, String topic, int count, long seed, Path file)
      throws Exception {
    long[] offsets = new long[count];
    try (var in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file)))) {
      for (int i = 0; i < count; i++) {
        offsets[i] = in.readLong();
      }
    }
    TopicPartition partition = new TopicPartition(topic, 0);
    int found = 0;
    int last = -1;
    boolean[] seen = new boolean[count];
    try (var consumer = context.consumer("max.poll.records", "5000")) {
      consumer.assign(List.of(partition));
      consumer.seekToBeginning(List.of(partition));
      long end = consumer.endOffsets(List.of(partition)).get(partition);
      long deadline = System.nanoTime() + Context.DEADLINE.toNanos();
      while (consumer.position(partition) < end) {
        if (System.nanoTime() > deadline) {
          throw new AssertionError("stuck at " + consumer.position(partition) + " of " + end);
        }
        for (var record : consumer.poll(Duration.ofMillis(500))) {
          last = compare(record, seed, last, offsets, found);
          seen[last] = true;
          found++;
          deadline = System.nanoTime() + Context.DEADLINE.toNanos();
        }
      }
    }
    int acknowledged = 0;
    for (int i = 0; i < count; i++) {
      if (offsets[i] != NOT_ACKNOWLEDGED) {
        acknowledged++;
        if (!seen[i]) {
          throw new AssertionError("record " + i + ", acknowledged at " + offsets[i] + ", is lost");
        }
      }
    }
    System.out.println("verified " + found + " records, " + acknowledged + " acknowledged");
  }

  /** Compares one record in full; returns its index. */
  private static int compare(
      ConsumerRecord<byte[], byte[]> record, long seed, int last, long[] offsets, int found) {
    int i = ByteBuffer.wrap(record.key()).getInt();
    if (i <= last) {
      throw new AssertionError("record " + i + " at offset " + record.offset() + " after " + last);
    }
    same("offset", (long) found, record.offset());
    if (offsets[i] != NOT_ACKNOWLEDGED) {
      same("acknowledged offset of record " + i, offsets[i], record.offset());
    }
    same("timestamp of record " + i, timestampMs(seed, i), record.timestamp());
    same("value of record " + i, value(seed, i), record.value());
    return i;
  }
}
