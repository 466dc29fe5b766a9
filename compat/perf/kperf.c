/* The librdkafka client of the measurements: kperf MODE HOST:PORT [key=value ...]
 *
 *   create    topic, partitions, topics   makes them, waits until every partition has a leader
 *   delete    topic, topics
 *   produce   topic, records, size        as fast as it goes, or rate= a second
 *   consume   topic, partitions, records  from the first offset, by assignment, without a group
 *   latency   topic, partitions, rate, seconds, warm, size
 *                                         one producer and one consumer at a fixed rate
 *   wakes     rate, seconds               nothing is sent: how late a thread is at that rate
 *   first     topic                       keeps trying until one record is acknowledged
 *
 * topics=N uses the topics NAME-0 .. NAME-(N-1), each with `partitions` partitions. spread=1 goes
 * round the partitions instead of leaving the choice to librdkafka. `config.K=V` is a configuration
 * of a topic that is made; every other key is a property of librdkafka.
 *
 * Prints one line of JSON. The stamp of a record is when it was due, not when it left: a producer
 * that falls behind its rate does not make the figures look better.
 */
#define _GNU_SOURCE
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define PAYLOADS 1000
/* Kafka refuses a request that makes more than 10,000 partitions, topics counted with them. */
#define PARTITIONS_PER_REQUEST 5000
#define MAX_PAIRS 64
#define SUB_BUCKETS 64 /* per power of two: 1.6 % of the value */
#define BUCKETS (40 * SUB_BUCKETS)

static struct { char *key, *value; } pairs[MAX_PAIRS];
static int pair_count;
static const char *bootstrap;
static long acked, failed;
static char first_error[256];

static void die(const char *what, const char *why) {
  fprintf(stderr, "kperf: %s: %s\n", what, why);
  exit(1);
}

static const char *text(const char *key, const char *otherwise) {
  for (int i = 0; i < pair_count; i++)
    if (!strcmp(pairs[i].key, key)) return pairs[i].value;
  return otherwise;
}

static double number(const char *key, double otherwise) {
  const char *found = text(key, NULL);
  return found ? atof(found) : otherwise;
}

static int is_own(const char *key) {
  static const char *own[] = {"topic", "topics", "partitions", "records", "size",  "rate",
                              "seconds", "warm", "spread", "replicas", "fetch", NULL};
  for (int i = 0; own[i]; i++)
    if (!strcmp(own[i], key)) return 1;
  return !strncmp(key, "config.", 7);
}

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(long long at_ns) {
  struct timespec t = {at_ns / 1000000000LL, at_ns % 1000000000LL};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  (void)client, (void)opaque;
  if (!message->err) {
    __atomic_add_fetch(&acked, 1, __ATOMIC_RELAXED);
    return;
  }
  if (__atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED) == 1)
    snprintf(first_error, sizeof first_error, "%s", rd_kafka_err2str(message->err));
}

static void quiet(const rd_kafka_t *client, int level, const char *facility, const char *line) {
  (void)client, (void)facility;
  if (level <= 2) fprintf(stderr, "%s\n", line);
}

static rd_kafka_t *client_of(rd_kafka_type_t type) {
  char error[512];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, error, sizeof error);
  rd_kafka_conf_set(conf, "socket.nagle.disable", "true", error, sizeof error);
  rd_kafka_conf_set_log_cb(conf, quiet);
  if (type == RD_KAFKA_CONSUMER) {
    rd_kafka_conf_set(conf, "group.id", "kperf", error, sizeof error);
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", error, sizeof error);
    /* With more than 100,000 waiting the client asks for nothing for a second: the faster the
     * broker, the sooner. */
    rd_kafka_conf_set(conf, "queued.min.messages", "10000000", error, sizeof error);
    rd_kafka_conf_set(conf, "queued.max.messages.kbytes", "2000000", error, sizeof error);
  } else {
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
  }
  for (int i = 0; i < pair_count; i++) {
    const char *key = pairs[i].key;
    /* P.key is for the producer only, C.key for the consumer only. */
    int for_one = key[1] == '.' && (key[0] == 'P' || key[0] == 'C');
    if (for_one && (key[0] == 'P') != (type == RD_KAFKA_PRODUCER)) continue;
    if (for_one) key += 2;
    if (!is_own(key) &&
        rd_kafka_conf_set(conf, key, pairs[i].value, error, sizeof error) != RD_KAFKA_CONF_OK)
      die(key, error);
  }
  rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof error);
  if (!client) die("client", error);
  return client;
}

/* Topics --------------------------------------------------------------------------------------*/

static int topic_count(void) { return (int)number("topics", 1); }

static const char *topic_name(int at) {
  static char name[256];
  if (!text("topics", NULL)) return text("topic", "perf");
  snprintf(name, sizeof name, "%s-%d", text("topic", "perf"), at);
  return name;
}

/* Whether all partitions of all topics have a leader. */
static int all_led(rd_kafka_t *client, int partitions) {
  const struct rd_kafka_metadata *metadata;
  if (rd_kafka_metadata(client, 1, NULL, &metadata, 60000)) return 0;
  int led = 0, prefix = (int)strlen(text("topic", "perf"));
  for (int t = 0; t < metadata->topic_cnt; t++) {
    const rd_kafka_metadata_topic_t *topic = &metadata->topics[t];
    if (strncmp(topic->topic, text("topic", "perf"), prefix)) continue;
    for (int p = 0; p < topic->partition_cnt; p++) led += topic->partitions[p].leader >= 0;
  }
  rd_kafka_metadata_destroy(metadata);
  return led >= partitions * topic_count();
}

static void wait_led(rd_kafka_t *client, int partitions) {
  while (!all_led(client, partitions)) usleep(20000);
}

static void check_topics(const rd_kafka_topic_result_t **results, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (rd_kafka_topic_result_error(results[i]))
      die(rd_kafka_topic_result_name(results[i]),
          rd_kafka_err2str(rd_kafka_topic_result_error(results[i])));
}

static rd_kafka_event_t *answer_of(rd_kafka_queue_t *queue) {
  rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 150000);
  if (!event) die("topics", "no answer");
  if (rd_kafka_event_error(event)) die("topics", rd_kafka_event_error_string(event));
  return event;
}

static void create_some(rd_kafka_t *client, rd_kafka_AdminOptions_t *options,
                        rd_kafka_queue_t *queue, int from, int count) {
  char error[512];
  rd_kafka_NewTopic_t **topics = calloc(count, sizeof *topics);
  for (int t = 0; t < count; t++) {
    int partitions = (int)number("partitions", 1);
    topics[t] = rd_kafka_NewTopic_new(topic_name(from + t), partitions, 1, error, sizeof error);
    if (!topics[t]) die(topic_name(from + t), error);
    for (int i = 0; i < pair_count; i++)
      if (!strncmp(pairs[i].key, "config.", 7))
        rd_kafka_NewTopic_set_config(topics[t], pairs[i].key + 7, pairs[i].value);
  }
  rd_kafka_CreateTopics(client, topics, count, options, queue);
  size_t answered;
  const rd_kafka_CreateTopics_result_t *result =
      rd_kafka_event_CreateTopics_result(answer_of(queue));
  const rd_kafka_topic_result_t **results = rd_kafka_CreateTopics_result_topics(result, &answered);
  check_topics(results, answered);
}

static void delete_some(rd_kafka_t *client, rd_kafka_AdminOptions_t *options,
                        rd_kafka_queue_t *queue, int from, int count) {
  rd_kafka_DeleteTopic_t **topics = calloc(count, sizeof *topics);
  for (int t = 0; t < count; t++) topics[t] = rd_kafka_DeleteTopic_new(topic_name(from + t));
  rd_kafka_DeleteTopics(client, topics, count, options, queue);
  size_t answered;
  const rd_kafka_DeleteTopics_result_t *result =
      rd_kafka_event_DeleteTopics_result(answer_of(queue));
  const rd_kafka_topic_result_t **results = rd_kafka_DeleteTopics_result_topics(result, &answered);
  check_topics(results, answered);
}

static void create_or_delete(int create) {
  char error[512];
  int count = topic_count(), partitions = (int)number("partitions", 1);
  rd_kafka_t *client = client_of(RD_KAFKA_PRODUCER);
  rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
  rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(
      client, create ? RD_KAFKA_ADMIN_OP_CREATETOPICS : RD_KAFKA_ADMIN_OP_DELETETOPICS);
  rd_kafka_AdminOptions_set_request_timeout(options, 120000, error, sizeof error);
  long long start = now_ns();
  int at_once = PARTITIONS_PER_REQUEST > partitions ? PARTITIONS_PER_REQUEST / partitions : 1;
  for (int from = 0; from < count; from += at_once) {
    int some = count - from < at_once ? count - from : at_once;
    (create ? create_some : delete_some)(client, options, queue, from, some);
  }
  if (create) wait_led(client, partitions);
  printf("{\"seconds\": %.4f}\n", (now_ns() - start) / 1e9);
}

/* Producing -----------------------------------------------------------------------------------*/

static char *payloads[PAYLOADS];

/* Capital letters, as the perf tool of Kafka sends them: codecs find something to do. */
static void make_payloads(size_t size) {
  unsigned seed = 4;
  for (int i = 0; i < PAYLOADS; i++) {
    payloads[i] = malloc(size);
    for (size_t b = 0; b < size; b++) payloads[i][b] = (char)('A' + rand_r(&seed) % 26);
  }
}

static rd_kafka_topic_t **topics_of(rd_kafka_t *client) {
  rd_kafka_topic_t **topics = calloc(topic_count(), sizeof *topics);
  for (int t = 0; t < topic_count(); t++) {
    topics[t] = rd_kafka_topic_new(client, topic_name(t), NULL);
    if (!topics[t]) die(topic_name(t), rd_kafka_err2str(rd_kafka_last_error()));
  }
  return topics;
}

static void produce_one(rd_kafka_t *client, rd_kafka_topic_t *topic, int partition, void *payload,
                        size_t size) {
  while (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, payload, size, NULL, 0, NULL)) {
    if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
      die("produce", rd_kafka_err2str(rd_kafka_last_error()));
    rd_kafka_poll(client, 10);
  }
}

static void produce(void) {
  long records = (long)number("records", 1000000);
  size_t size = (size_t)number("size", 1024);
  double rate = number("rate", 0);
  int spread = (int)number("spread", 0), partitions = (int)number("partitions", 1);
  int count = topic_count();
  rd_kafka_t *client = client_of(RD_KAFKA_PRODUCER);
  rd_kafka_topic_t **topics = topics_of(client);
  make_payloads(size);
  wait_led(client, partitions);
  long long start = now_ns();
  for (long i = 0; i < records; i++) {
    if (rate > 0) {
      long long due = start + (long long)(i * 1e9 / rate);
      if (due > now_ns() + 20000) sleep_until(due);
    }
    int partition = spread ? (int)(i / count % partitions) : RD_KAFKA_PARTITION_UA;
    produce_one(client, topics[i % count], partition, payloads[i % PAYLOADS], size);
    if (i % 100 == 0) rd_kafka_poll(client, 0);
  }
  while (acked + failed < records) rd_kafka_poll(client, 5);
  printf("{\"records\": %ld, \"failed\": %ld, \"seconds\": %.4f, \"error\": \"%s\"}\n", acked,
         failed, (now_ns() - start) / 1e9, first_error);
}

/* Consuming -----------------------------------------------------------------------------------*/

static void assign(rd_kafka_t *client, long long offset) {
  int partitions = (int)number("partitions", 1);
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
  for (int t = 0; t < topic_count(); t++)
    for (int p = 0; p < partitions; p++)
      rd_kafka_topic_partition_list_add(list, topic_name(t), p)->offset = offset;
  rd_kafka_poll_set_consumer(client);
  if (rd_kafka_assign(client, list)) die("assign", "refused");
}

static void consume(void) {
  long records = (long)number("records", 1000000), got = 0;
  long long bytes = 0;
  rd_kafka_t *client = client_of(RD_KAFKA_CONSUMER);
  long long start = now_ns(), last = start;
  assign(client, 0);
  rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(client);
  static rd_kafka_message_t *batch[4096];
  while (got < records && now_ns() - last < 30000000000LL) {
    ssize_t count = rd_kafka_consume_batch_queue(queue, 200, batch, 4096);
    for (ssize_t i = 0; i < count; i++) {
      if (!batch[i]->err) got++, bytes += (long long)batch[i]->len, last = now_ns();
      rd_kafka_message_destroy(batch[i]);
    }
  }
  printf("{\"records\": %ld, \"bytes\": %lld, \"seconds\": %.4f}\n", got, bytes,
         (last - start) / 1e9);
}

/* Latency -------------------------------------------------------------------------------------*/

static long buckets[BUCKETS];
static long long worst_us, received, measured_from_ns;
static int done;

static int bucket_of(unsigned long long us) {
  if (us < SUB_BUCKETS) return (int)us;
  int power = 63 - __builtin_clzll(us) - 6;
  int at = (power + 1) * SUB_BUCKETS + (int)((us >> power) - SUB_BUCKETS);
  return at < BUCKETS ? at : BUCKETS - 1;
}

static double top_of_bucket_ms(int at) {
  if (at < SUB_BUCKETS) return (at + 1) / 1e3;
  int power = at / SUB_BUCKETS - 1;
  return (double)((unsigned long long)(at % SUB_BUCKETS + SUB_BUCKETS + 1) << power) / 1e3;
}

static double quantile_ms(double q) {
  long wanted = (long)(q * (double)received), seen = 0;
  for (int at = 0; at < BUCKETS; at++)
    if ((seen += buckets[at]) > wanted) return top_of_bucket_ms(at);
  return (double)worst_us / 1e3;
}

static void count(long long late_ns) {
  long long us = late_ns / 1000;
  buckets[bucket_of((unsigned long long)us)]++;
  received++;
  if (us > worst_us) worst_us = us;
}

static void print_quantiles(void) {
  printf("\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p999_ms\": %.3f, \"max_ms\": %.3f", quantile_ms(0.5),
         quantile_ms(0.99), quantile_ms(0.999), (double)worst_us / 1e3);
}

static void *receive(void *client) {
  while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 100);
    if (!message) continue;
    long long stamp_ns;
    if (!message->err && message->len >= sizeof stamp_ns) {
      memcpy(&stamp_ns, message->payload, sizeof stamp_ns);
      if (stamp_ns >= measured_from_ns) count(now_ns() - stamp_ns);
    }
    rd_kafka_message_destroy(message);
  }
  return NULL;
}

static void latency(void) {
  double rate = number("rate", 1000), seconds = number("seconds", 30), warm = number("warm", 3);
  size_t size = (size_t)number("size", 1024);
  int partitions = (int)number("partitions", 1);
  prctl(PR_SET_TIMERSLACK, 1UL);
  rd_kafka_t *producer = client_of(RD_KAFKA_PRODUCER), *consumer = client_of(RD_KAFKA_CONSUMER);
  rd_kafka_topic_t **topics = topics_of(producer);
  make_payloads(size < 8 ? size = 8 : size);
  wait_led(producer, partitions);
  assign(consumer, RD_KAFKA_OFFSET_END);
  usleep(1000000);
  pthread_t receiver;
  pthread_create(&receiver, NULL, receive, consumer);
  long total = (long)(rate * (warm + seconds)), measured = 0;
  long long start = now_ns() + 1000000, behind_ns = 0;
  measured_from_ns = start + (long long)(warm * 1e9);
  for (long i = 0; i < total; i++) {
    long long due = start + (long long)((double)i * 1e9 / rate), now = now_ns();
    /* The event loop of the client is served in the time that is left. */
    while (due > now + 20000) {
      rd_kafka_poll(producer, 0);
      sleep_until(due);
      now = now_ns();
    }
    if (due >= measured_from_ns) {
      measured++;
      if (now - due > behind_ns) behind_ns = now - due;
    }
    char *payload = payloads[i % PAYLOADS];
    memcpy(payload, &due, sizeof due);
    produce_one(producer, topics[0], (int)(i % partitions), payload, size);
    if (i % 256 == 0) rd_kafka_poll(producer, 0);
  }
  for (int i = 0; i < 200 && __atomic_load_n(&received, __ATOMIC_RELAXED) < measured; i++) {
    rd_kafka_poll(producer, 0);
    usleep(50000);
  }
  __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
  pthread_join(receiver, NULL);
  printf("{\"sent\": %ld, \"received\": %lld, \"failed\": %ld, ", measured, received, failed);
  print_quantiles();
  printf(", \"behind_ms\": %.3f}\n", (double)behind_ns / 1e6);
}

/* What the machine adds to every latency: the same sleep, and nothing to do after it. */
static void wakes(void) {
  double rate = number("rate", 1000), seconds = number("seconds", 15);
  prctl(PR_SET_TIMERSLACK, 1UL);
  long long start = now_ns() + 1000000;
  for (long i = 0; i < (long)(rate * seconds); i++) {
    long long due = start + (long long)((double)i * 1e9 / rate);
    sleep_until(due);
    count(now_ns() - due);
  }
  printf("{");
  print_quantiles();
  printf("}\n");
}

/* The wall clock when the first record after a start is acknowledged. */
static void first(void) {
  rd_kafka_t *client = client_of(RD_KAFKA_PRODUCER);
  rd_kafka_topic_t **topics = topics_of(client);
  static char payload[16];
  struct timespec t;
  for (int tries = 0; !acked && tries < 300; tries++) {
    produce_one(client, topics[0], 0, payload, sizeof payload);
    for (int i = 0; i < 200 && !acked && !failed; i++) rd_kafka_poll(client, 1);
    failed = 0;
  }
  clock_gettime(CLOCK_REALTIME, &t);
  if (!acked) die("first", first_error);
  printf("{\"at\": %.6f}\n", (double)t.tv_sec + (double)t.tv_nsec / 1e9);
}

int main(int argc, char **argv) {
  if (argc < 3) die("usage", "kperf MODE HOST:PORT [key=value ...]");
  bootstrap = argv[2];
  for (int i = 3; i < argc && pair_count < MAX_PAIRS; i++) {
    char *equals = strchr(argv[i], '=');
    if (!equals) die(argv[i], "not key=value");
    *equals = 0;
    pairs[pair_count].key = argv[i];
    pairs[pair_count++].value = equals + 1;
  }
  const char *mode = argv[1];
  if (!strcmp(mode, "create")) create_or_delete(1);
  else if (!strcmp(mode, "delete")) create_or_delete(0);
  else if (!strcmp(mode, "produce")) produce();
  else if (!strcmp(mode, "consume")) consume();
  else if (!strcmp(mode, "latency")) latency();
  else if (!strcmp(mode, "wakes")) wakes();
  else if (!strcmp(mode, "first")) first();
  else die(mode, "no such mode");
  fflush(stdout);
  /* Closing a client takes seconds and is none of the measurement. */
  _exit(0);
}
