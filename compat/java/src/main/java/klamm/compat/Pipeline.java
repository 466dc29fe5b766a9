package klamm.compat;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/** `HOST:PORT IN OUT GROUP ID`: Java's consume-transform-produce; see compat/pipelines. */
public final class Pipeline {
  private final Context context;
  private final String in;
  private final String out;
  private final String group;
  private final String id;

  private Pipeline(Context context, String[] args) {
    this.context = context;
    in = args[1];
    out = args[2];
    group = args[3];
    id = args[4];
  }

  public static void main(String[] args) {
    try (Context context = new Context(args[0])) {
      Pipeline pipeline = new Pipeline(context, args);
      while (true) {
        try {
          pipeline.live();
        } catch (KafkaException e) {
          // The next life reads again what this one has not committed.
          System.err.println("again after " + e);
        }
      }
    }
  }

  /** One producer and one consumer, until something cannot be repaired. */
  private void live() {
    try (KafkaProducer<byte[], byte[]> producer =
            context.producer("transactional.id", id, "transaction.timeout.ms", "10000");
        KafkaConsumer<byte[], byte[]> consumer =
            context.consumer(
                "group.id", group, "auto.offset.reset", "earliest", "max.poll.records", "50",
                "isolation.level", "read_committed", "session.timeout.ms", "6000",
                "heartbeat.interval.ms", "500")) {
      untilDone(producer::initTransactions);
      consumer.subscribe(List.of(in));
      while (true) {
        var records = consumer.poll(Duration.ofMillis(200));
        if (!records.isEmpty()) {
          transfer(producer, consumer, records);
        }
      }
    }
  }

  private void transfer(
      KafkaProducer<byte[], byte[]> producer,
      KafkaConsumer<byte[], byte[]> consumer,
      ConsumerRecords<byte[], byte[]> records) {
    producer.beginTransaction();
    Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
    for (ConsumerRecord<byte[], byte[]> r : records) {
      producer.send(new ProducerRecord<>(out, r.value()));
      ends.put(new TopicPartition(in, r.partition()), new OffsetAndMetadata(r.offset() + 1));
    }
    producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
    untilDone(producer::commitTransaction);
    System.out.println("committed " + records.count());
    System.out.flush();
  }

  private static void untilDone(Runnable call) {
    while (true) {
      try {
        call.run();
        return;
      } catch (TimeoutException e) {
        // The broker is down for longer than the client waits.
      }
    }
  }
}
