package klamm.compat;

import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * `HOST:PORT TOPIC PARTITIONS PRODUCERS TRANSACTIONS RECORDS`: each producer commits so many
 * transactions of so many records of 100 bytes, one after the other. Prints one line of JSON; the
 * latency is from the first record to the answer of the commit.
 */
public final class TransactionPerf {
  private final Context context;
  private final String topic;
  private final int partitions;
  private final int transactions;
  private final int records;
  private final long[][] tookNs;

  private TransactionPerf(Context context, String[] args) {
    this.context = context;
    topic = args[1];
    partitions = Integer.parseInt(args[2]);
    transactions = Integer.parseInt(args[4]);
    records = Integer.parseInt(args[5]);
    tookNs = new long[Integer.parseInt(args[3])][transactions];
  }

  public static void main(String[] args) throws Exception {
    try (Context context = new Context(args[0])) {
      new TransactionPerf(context, args).run();
    }
  }

  private void run() throws Exception {
    int producers = tookNs.length;
    CountDownLatch ready = new CountDownLatch(producers);
    CountDownLatch start = new CountDownLatch(1);
    CountDownLatch end = new CountDownLatch(producers);
    for (int p = 0; p < producers; p++) {
      int producer = p;
      new Thread(() -> produce(producer, ready, start, end)).start();
    }
    ready.await();
    long began = System.nanoTime();
    start.countDown();
    end.await();
    double seconds = (System.nanoTime() - began) / 1e9;
    long[] all = Arrays.stream(tookNs).flatMapToLong(Arrays::stream).sorted().toArray();
    System.out.printf(
        "{\"seconds\": %.4f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}%n",
        seconds, all[all.length / 2] / 1e6, all[all.length * 99 / 100] / 1e6);
  }

  private void produce(int at, CountDownLatch ready, CountDownLatch start, CountDownLatch end) {
    byte[] value = new byte[100];
    Arrays.fill(value, (byte) 'x');
    try (KafkaProducer<byte[], byte[]> producer =
        context.producer("transactional.id", context.name("perf"))) {
      producer.initTransactions();
      ready.countDown();
      start.await();
      for (int t = 0; t < transactions; t++) {
        long began = System.nanoTime();
        producer.beginTransaction();
        for (int r = 0; r < records; r++) {
          producer.send(new ProducerRecord<>(topic, (at + r) % partitions, null, value));
        }
        producer.commitTransaction();
        tookNs[at][t] = System.nanoTime() - began;
      }
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
    end.countDown();
  }
}
