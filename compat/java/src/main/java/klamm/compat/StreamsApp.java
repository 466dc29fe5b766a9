package klamm.compat;

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.WindowStore;

/**
 * `HOST:PORT PREFIX STATE`: an application of Kafka Streams with exactly_once_v2, until killed.
 *
 * <pre>
 * orders   (order -> customer;amount) --+ join within an hour
 * payments (order -> paid)            --+--> paid (order -> customer;amount;paid)
 *    -> key becomes the customer (repartition), join customers (customer -> region)
 *    -> grouped by region (repartition), windows of ten seconds, count and sum (changelog)
 *    -> totals (region@window -> count;sum), each change
 * </pre>
 */
public final class StreamsApp {
  static final String TOTALS_STORE = "totals-store";
  static final long WINDOW_MS = 10_000;
  static final Duration LATE = Duration.ofHours(1);

  private StreamsApp() {}

  static String applicationId(String prefix) {
    return prefix + "-app";
  }

  public static void main(String[] args) throws Exception {
    String prefix = args[1];
    KafkaStreams streams = new KafkaStreams(topology(prefix), configs(args[0], prefix, args[2]));
    streams.setUncaughtExceptionHandler(
        thrown -> {
          System.err.println("replaced after " + thrown);
          return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
    streams.start();
    new CountDownLatch(1).await();
  }

  private static Properties configs(String bootstrap, String prefix, String state) {
    Properties configs = new Properties();
    configs.put(StreamsConfig.APPLICATION_ID_CONFIG, applicationId(prefix));
    configs.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
    configs.put(StreamsConfig.STATE_DIR_CONFIG, state);
    configs.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    configs.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
    // Each change of an aggregate comes out, so that a doubled or lost one is seen.
    configs.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
    configs.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    configs.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 6000);
    configs.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 1000);
    configs.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
    return configs;
  }

  static Topology topology(String prefix) {
    var string = Serdes.String();
    var consumed = Consumed.with(string, string);
    StreamsBuilder builder = new StreamsBuilder();
    KStream<String, String> orders = builder.stream(prefix + "-orders", consumed);
    KStream<String, String> payments = builder.stream(prefix + "-payments", consumed);
    KTable<String, String> customers = builder.table(prefix + "-customers", consumed);
    KStream<String, String> paid =
        orders.join(
            payments,
            (order, amount) -> order + ";" + amount,
            JoinWindows.ofTimeDifferenceAndGrace(LATE, LATE),
            StreamJoined.with(string, string, string));
    paid.to(prefix + "-paid", Produced.with(string, string));
    paid.map((order, value) -> KeyValue.pair(value.split(";")[0], value))
        .join(
            customers,
            (value, region) -> region + ";" + value.split(";")[2],
            Joined.with(string, string, string))
        .groupBy((customer, value) -> value.split(";")[0], Grouped.with(string, string))
        .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(WINDOW_MS), LATE))
        .aggregate(
            () -> "0;0",
            (region, value, total) -> add(total, Long.parseLong(value.split(";")[1])),
            Materialized.<String, String, WindowStore<Bytes, byte[]>>as(TOTALS_STORE)
                .withKeySerde(string)
                .withValueSerde(string))
        .toStream()
        .map((window, total) -> KeyValue.pair(window.key() + "@" + window.window().start(), total))
        .to(prefix + "-totals", Produced.with(string, string));
    return builder.build();
  }

  /** `count;sum` with one more. */
  static String add(String total, long amount) {
    String[] parts = total.split(";");
    return (Long.parseLong(parts[0]) + 1) + ";" + (Long.parseLong(parts[1]) + amount);
  }
}
