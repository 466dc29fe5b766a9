package klamm.compat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Properties;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Writes numbers to all partitions in turn until its input ends, and tells what was acknowledged; see
 * compat/chaos_clients.py.
 *
 * <p>ChaosWriter HOST:PORT,... TOPIC PARTITIONS RATE
 */
public final class ChaosWriter {
  private static volatile boolean stopping;

  private ChaosWriter() {}

  private static Properties configs(String bootstrap) {
    var configs = new Properties();
    configs.put("bootstrap.servers", bootstrap);
    configs.put("key.serializer", ByteArraySerializer.class.getName());
    configs.put("value.serializer", ByteArraySerializer.class.getName());
    configs.put("acks", "all");
    configs.put("enable.idempotence", "true");
    configs.put("linger.ms", "5");
    configs.put("request.timeout.ms", "1500");
    configs.put("delivery.timeout.ms", "180000");
    configs.put("max.block.ms", "180000");
    configs.put("metadata.max.age.ms", "500");
    configs.put("socket.connection.setup.timeout.ms", "1500");
    configs.put("retry.backoff.ms", "50");
    configs.put("retry.backoff.max.ms", "250");
    configs.put("reconnect.backoff.ms", "50");
    configs.put("reconnect.backoff.max.ms", "500");
    return configs;
  }

  private static void say(String line) {
    synchronized (System.out) {
      System.out.println(line);
      System.out.flush();
    }
  }

  public static void main(String[] args) {
    String topic = args[1];
    int partitions = Integer.parseInt(args[2]);
    double rate = Double.parseDouble(args[3]);
    var input = new Thread(ChaosWriter::waitForEnd);
    input.setDaemon(true);
    input.start();
    int sent = 0;
    try (var producer = new KafkaProducer<byte[], byte[]>(configs(args[0]))) {
      long begin = System.nanoTime();
      while (!stopping) {
        long due = (long) ((System.nanoTime() - begin) / 1e9 * rate);
        for (; sent < due && !stopping; sent++) {
          send(producer, topic, sent % partitions, sent);
        }
        LockSupport.parkNanos(5_000_000);
      }
    }
    say("S " + sent);
  }

  private static void waitForEnd() {
    try {
      while (System.in.read() >= 0) {
        // Nothing is said here but that it ends.
      }
    } catch (IOException e) {
      System.err.println(e);
    }
    stopping = true;
  }

  private static void send(
      KafkaProducer<byte[], byte[]> producer, String topic, int partition, int number) {
    byte[] value = Integer.toString(number).getBytes(StandardCharsets.UTF_8);
    producer.send(
        new ProducerRecord<>(topic, partition, null, value),
        (metadata, error) -> {
          if (error != null) {
            say("F " + number + " " + error);
            return;
          }
          Instant now = Instant.now();
          long ns = now.getEpochSecond() * 1_000_000_000L + now.getNano();
          say("A " + ns + " " + metadata.partition() + " " + metadata.offset() + " " + number);
        });
  }
}
