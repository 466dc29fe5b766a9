package klamm.compat;

import static klamm.compat.Checks.same;
import static klamm.compat.Checks.that;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * `HOST:PORT PREFIX`: writes what StreamsApp reads, computes by itself what has to come out, and
 * reads what does. Prints `ready`, then `out N` as output comes; ends after a line on its input.
 */
public final class StreamsCheck {
  private static final int PARTITIONS = 4;
  private static final int CUSTOMERS = 40;
  private static final int REGIONS = 7;
  private static final int ORDERS_PER_SECOND = 50;
  /** How long the output may stand still before what is missing counts as lost. */
  private static final Duration PATIENCE = Duration.ofSeconds(120);

  private final Context context;
  private final String prefix;
  private final AtomicBoolean stopping = new AtomicBoolean();
  /** The model: what was paid, and the totals, each as the last record has to say it. */
  private final Map<String, String> paid = new HashMap<>();
  private final Map<String, String> totals = new HashMap<>();
  /** What came out, in the order of each key. */
  private final Map<String, List<String>> paidSeen = new HashMap<>();
  private final Map<String, List<String>> totalsSeen = new HashMap<>();

  private StreamsCheck(Context context, String prefix) {
    this.context = context;
    this.prefix = prefix;
  }

  public static void main(String[] args) throws Exception {
    Checks checks = new Checks("streams");
    try (Context context = new Context(args[0])) {
      new StreamsCheck(context, args[1]).run(checks);
    }
    System.exit(checks.failed() == 0 ? 0 : 1);
  }

  private void run(Checks checks) throws Exception {
    for (String topic : List.of("orders", "payments", "customers", "paid", "totals")) {
      context.create(prefix + "-" + topic, PARTITIONS);
    }
    try (var producer = producer()) {
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (int c = 0; c < CUSTOMERS; c++) {
        sent.add(send(producer, "customers", "c" + c, region(c), System.currentTimeMillis()));
      }
      Context.await(sent);
    }
    System.out.println("ready");
    System.out.flush();
    Thread writer = new Thread(this::write);
    writer.start();
    Thread end = new Thread(this::waitForTheEnd);
    end.setDaemon(true);
    end.start();
    read(writer);
    checks.check("everything that was paid, once", () -> once(paid, paidSeen));
    checks.check("every change of the totals, once and in order", this::counted);
    checks.check("the totals are those of the model", this::lastTotals);
    checks.check("the changelog has the totals of the model", this::changelog);
    System.out.println("# " + paid.size() + " orders paid, " + totals.size() + " totals");
  }

  private static String region(int customer) {
    return "r" + customer % REGIONS;
  }

  private KafkaProducer<byte[], byte[]> producer() {
    return context.producer("delivery.timeout.ms", "600000", "max.block.ms", "600000");
  }

  private Future<RecordMetadata> send(
      KafkaProducer<byte[], byte[]> producer, String topic, String key, String value, long at) {
    return producer.send(
        new ProducerRecord<>(prefix + "-" + topic, null, at, key.getBytes(), value.getBytes()));
  }

  private void waitForTheEnd() {
    try {
      new BufferedReader(new InputStreamReader(System.in)).readLine();
    } catch (java.io.IOException e) {
      // As if it had come.
    }
    stopping.set(true);
  }

  /** Orders, four of five paid; whichever of both comes first. */
  private void write() {
    Random random = new Random(9);
    try (var producer = producer()) {
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (int n = 0; !stopping.get(); n++) {
        String order = "o" + n;
        int customer = random.nextInt(CUSTOMERS);
        long amount = 1 + random.nextInt(1000);
        long at = System.currentTimeMillis();
        long paidAt = at + random.nextInt(5000) - 2500;
        boolean isPaid = random.nextInt(5) > 0;
        boolean paymentFirst = random.nextBoolean();
        for (boolean payment : new boolean[] {paymentFirst, !paymentFirst}) {
          if (!payment) {
            sent.add(send(producer, "orders", order, "c" + customer + ";" + amount, at));
          } else if (isPaid) {
            sent.add(send(producer, "payments", order, Long.toString(amount + n), paidAt));
          }
        }
        if (isPaid) {
          synchronized (paid) {
            paid.put(order, "c" + customer + ";" + amount + ";" + (amount + n));
          }
          long start = Math.max(at, paidAt) / StreamsApp.WINDOW_MS * StreamsApp.WINDOW_MS;
          totals.merge(
              region(customer) + "@" + start, StreamsApp.add("0;0", amount + n),
              (total, one) -> StreamsApp.add(total, Long.parseLong(one.split(";")[1])));
        }
        Thread.sleep(1000 / ORDERS_PER_SECOND);
      }
      Context.await(sent);
    } catch (Exception e) {
      System.out.println("FAIL streams the writer: " + e);
    }
  }

  private int expected() {
    synchronized (paid) {
      return paid.size();
    }
  }

  private static int count(Map<String, List<String>> seen) {
    return seen.values().stream().mapToInt(List::size).sum();
  }

  /** Reads until all is there and no transaction is open, or nothing comes any more. */
  private void read(Thread writer) {
    List<TopicPartition> all = new ArrayList<>();
    for (int p = 0; p < PARTITIONS; p++) {
      all.add(new TopicPartition(prefix + "-paid", p));
      all.add(new TopicPartition(prefix + "-totals", p));
    }
    try (KafkaConsumer<byte[], byte[]> consumer =
            context.consumer("isolation.level", "read_committed");
        KafkaConsumer<byte[], byte[]> plain = context.consumer()) {
      consumer.assign(all);
      consumer.seekToBeginning(all);
      long news = System.nanoTime();
      while (true) {
        for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200))) {
          var seen = r.topic().endsWith("-paid") ? paidSeen : totalsSeen;
          seen.computeIfAbsent(new String(r.key()), k -> new ArrayList<>())
              .add(new String(r.value()));
          news = System.nanoTime();
        }
        int out = Math.min(count(paidSeen), count(totalsSeen));
        System.out.println("out " + out);
        System.out.flush();
        try {
          Map<TopicPartition, Long> ends = plain.endOffsets(all);
          boolean atEnd = all.stream().allMatch(p -> consumer.position(p) >= ends.get(p));
          if (!writer.isAlive() && atEnd && out >= expected()) {
            return;
          }
        } catch (TimeoutException e) {
          // The broker is down.
        }
        if (!writer.isAlive() && System.nanoTime() - news > PATIENCE.toNanos()) {
          return;
        }
      }
    }
  }

  private static void once(Map<String, String> model, Map<String, List<String>> seen) {
    model.forEach((key, value) -> same(key, List.of(value), seen.get(key)));
    same("keys", model.keySet(), seen.keySet());
  }

  private void counted() {
    totalsSeen.forEach((key, values) -> {
      for (int i = 0; i < values.size(); i++) {
        same(key + " in " + values, (long) i + 1, Long.parseLong(values.get(i).split(";")[0]));
      }
    });
    same("changes", paid.size(), count(totalsSeen));
  }

  private void lastTotals() {
    Map<String, String> last = new HashMap<>();
    totalsSeen.forEach((key, values) -> last.put(key, values.get(values.size() - 1)));
    same("totals", totals, last);
  }

  /** Keys are the region, eight bytes of time and a sequence number of four. */
  private void changelog() throws Exception {
    String topic =
        StreamsApp.applicationId(prefix) + "-" + StreamsApp.TOTALS_STORE + "-changelog";
    Map<String, String> last = new HashMap<>();
    for (int p = 0; p < PARTITIONS; p++) {
      TopicPartition at = new TopicPartition(topic, p);
      try (var consumer = context.consumer("isolation.level", "read_committed")) {
        consumer.assign(List.of(at));
        consumer.seekToBeginning(List.of(at));
        long end = consumer.endOffsets(List.of(at)).get(at);
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (consumer.position(at) < end) {
          that("read to the end in time", System.nanoTime() < deadline);
          for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200))) {
            ByteBuffer key = ByteBuffer.wrap(r.key());
            byte[] region = new byte[r.key().length - 12];
            key.get(region);
            last.put(new String(region) + "@" + key.getLong(), new String(r.value()));
          }
        }
      }
    }
    same("changelog", totals, last);
  }
}
