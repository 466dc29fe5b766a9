package klamm.compat;

import static klamm.compat.Checks.same;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;

/**
 * Records whose every part follows from a seed and an index, so that what is read back can be
 * compared in full. Null and empty keys and values, null and repeated headers are among them.
 */
final class Sample {
  /** A fixed recent-enough time would age out of retention; this one is taken once per process. */
  static final long BASE_TIMESTAMP_MS = System.currentTimeMillis() - 60_000;

  private Sample() {}

  static byte[] key(long seed, int i) {
    if (i % 5 == 0) {
      return null;
    }
    return i % 7 == 0 ? new byte[0] : ("key-" + seed + "-" + i).getBytes(StandardCharsets.UTF_8);
  }

  static byte[] value(long seed, int i) {
    if (i % 11 == 3) {
      return null;
    }
    if (i % 13 == 4) {
      return new byte[0];
    }
    Random random = new Random(seed * 31 + i);
    byte[] bytes = new byte[1 + random.nextInt(600)];
    random.nextBytes(bytes);
    // Half of the values are compressible, the others are not.
    if (i % 2 == 0) {
      java.util.Arrays.fill(bytes, bytes.length / 4, bytes.length, (byte) 'x');
    }
    return bytes;
  }

  static long timestampMs(int i) {
    return BASE_TIMESTAMP_MS + i * 7L - (i % 3) * 20L;
  }

  static List<Header> headers(long seed, int i) {
    List<Header> headers = new ArrayList<>();
    for (int h = 0; h < i % 4; h++) {
      byte[] value = h == 1 ? null : h == 2 ? new byte[0] : new byte[] {(byte) i, (byte) seed, -1};
      headers.add(new RecordHeader(h == 2 ? "h0" : "h" + h + "-é", value));
    }
    return headers;
  }

  static ProducerRecord<byte[], byte[]> record(String topic, Integer partition, long seed, int i) {
    return new ProducerRecord<>(
        topic, partition, timestampMs(i), key(seed, i), value(seed, i), headers(seed, i));
  }

  /** The record read at `offset` is the i-th of `seed`, whole. */
  static void sameRecord(long seed, int i, long offset, ConsumerRecord<byte[], byte[]> found) {
    String what = found.topic() + "-" + found.partition() + " record " + i + " ";
    same(what + "offset", offset, found.offset());
    same(what + "timestamp type", TimestampType.CREATE_TIME, found.timestampType());
    same(what + "timestamp", timestampMs(i), found.timestamp());
    same(what + "key", key(seed, i), found.key());
    same(what + "value", value(seed, i), found.value());
    List<Header> expected = headers(seed, i);
    Header[] headers = found.headers().toArray();
    same(what + "header count", expected.size(), headers.length);
    for (int h = 0; h < headers.length; h++) {
      same(what + "header key", expected.get(h).key(), headers[h].key());
      same(what + "header value", expected.get(h).value(), headers[h].value());
    }
  }
}
