package klamm.compat;

import static klamm.compat.Checks.fails;
import static klamm.compat.Checks.same;
import static klamm.compat.Checks.that;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigType;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.ConfigResource.Type;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** AdminClient: configurations of topics and brokers, described and altered. */
final class ConfigsSuite {
  private static final ConfigResource BROKER = new ConfigResource(Type.BROKER, "1");
  private static final ConfigResource CLUSTER = new ConfigResource(Type.BROKER, "");

  private final Context context;
  private final Admin admin;

  private ConfigsSuite(Context context) {
    this.context = context;
    this.admin = context.admin;
  }

  static void run(Context context, Checks checks) {
    ConfigsSuite suite = new ConfigsSuite(context);
    checks.check("describeConfigs of a topic is complete", suite::describeTopic);
    checks.check("describeConfigs with synonyms and docs", suite::synonyms);
    checks.check("describeConfigs of a broker", suite::describeBroker);
    checks.check("describeConfigs errors", suite::describeErrors);
    checks.check("incrementalAlterConfigs set and delete", suite::setAndDelete);
    checks.check("incrementalAlterConfigs append and subtract", suite::appendAndSubtract);
    checks.check("incrementalAlterConfigs validateOnly", suite::validateOnly);
    checks.check("incrementalAlterConfigs errors", suite::alterErrors);
    checks.check("one bad name fails its resource only", suite::mixed);
    checks.check("dynamic broker defaults reach the topics", suite::dynamicDefault);
    checks.check("read-only broker configs stay", suite::readOnly);
    checks.check("an altered config acts at once", suite::acts);
    checks.check("listConfigResources", suite::listResources);
  }

  private Config describe(ConfigResource resource) throws Exception {
    return admin.describeConfigs(List.of(resource)).all().get().get(resource);
  }

  private ConfigResource topic(String... configs) throws Exception {
    return new ConfigResource(Type.TOPIC, context.topic("configured", 1, configs));
  }

  private void alter(ConfigResource resource, String name, String value, OpType op)
      throws Exception {
    Collection<AlterConfigOp> ops = List.of(new AlterConfigOp(new ConfigEntry(name, value), op));
    admin.incrementalAlterConfigs(Map.of(resource, ops)).all().get();
  }

  /** The cached image of an answer may be a moment old: the read is repeated to the deadline. */
  private void becomes(ConfigResource resource, String name, String value, ConfigSource source)
      throws Exception {
    long deadline = System.nanoTime() + Context.DEADLINE.toNanos();
    ConfigEntry entry = describe(resource).get(name);
    while (!(value.equals(entry.value()) && source == entry.source())) {
      if (System.nanoTime() > deadline) {
        same(name + " value", value, entry.value());
        same(name + " source", source, entry.source());
      }
      entry = describe(resource).get(name);
    }
  }

  private void describeTopic() throws Exception {
    Config config = describe(topic("retention.ms", "777000"));
    List<String> names = config.entries().stream().map(ConfigEntry::name).sorted().toList();
    for (String name :
        List.of(
            "cleanup.policy", "compression.gzip.level", "compression.lz4.level", "compression.type",
            "compression.zstd.level", "delete.retention.ms", "file.delete.delay.ms",
            "flush.messages", "flush.ms", "follower.replication.throttled.replicas",
            "index.interval.bytes", "leader.replication.throttled.replicas",
            "local.retention.bytes", "local.retention.ms", "max.compaction.lag.ms",
            "max.message.bytes", "message.timestamp.after.max.ms",
            "message.timestamp.before.max.ms", "message.timestamp.type",
            "min.cleanable.dirty.ratio", "min.compaction.lag.ms", "min.insync.replicas",
            "preallocate", "remote.storage.enable", "retention.bytes", "retention.ms",
            "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms",
            "unclean.leader.election.enable")) {
      that("has " + name, names.contains(name));
    }
    same("retention.ms", "777000", config.get("retention.ms").value());
    same("source", ConfigSource.DYNAMIC_TOPIC_CONFIG, config.get("retention.ms").source());
    same("segment.bytes", "1073741824", config.get("segment.bytes").value());
    same("source", ConfigSource.DEFAULT_CONFIG, config.get("segment.bytes").source());
    same("cleanup.policy", "delete", config.get("cleanup.policy").value());
    for (ConfigEntry entry : config.entries()) {
      that(entry.name() + " may be written", !entry.isReadOnly());
      that(entry.name() + " is not secret", !entry.isSensitive());
    }
  }

  private void synonyms() throws Exception {
    ConfigResource topic = topic("retention.ms", "888000");
    var options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
    Config config = admin.describeConfigs(List.of(topic), options).all().get().get(topic);
    ConfigEntry retention = config.get("retention.ms");
    same("type", ConfigType.LONG, retention.type());
    that("documentation", retention.documentation() != null && retention.documentation().length() > 40);
    var synonyms = retention.synonyms();
    same("first synonym", "retention.ms", synonyms.get(0).name());
    same("its value", "888000", synonyms.get(0).value());
    same("its source", ConfigSource.DYNAMIC_TOPIC_CONFIG, synonyms.get(0).source());
    ConfigEntry limit = config.get("max.message.bytes");
    same("synonym of a default", "message.max.bytes", limit.synonyms().get(0).name());
    same("its value", "1048588", limit.synonyms().get(0).value());
    same("its source", ConfigSource.DEFAULT_CONFIG, limit.synonyms().get(0).source());
    same("type of a list", ConfigType.LIST, config.get("cleanup.policy").type());
    same("type of a boolean", ConfigType.BOOLEAN, config.get("preallocate").type());
    same("type of a double", ConfigType.DOUBLE, config.get("min.cleanable.dirty.ratio").type());
    same("type of an int", ConfigType.INT, config.get("max.message.bytes").type());
    for (ConfigEntry entry : config.entries()) {
      that(entry.name() + " is documented", !entry.documentation().isEmpty());
    }
  }

  private void describeBroker() throws Exception {
    var options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
    Config config = admin.describeConfigs(List.of(BROKER), options).all().get().get(BROKER);
    that("many: " + config.entries().size(), config.entries().size() > 250);
    ConfigEntry id = config.get("node.id");
    same("node.id", "1", id.value());
    same("node.id source", ConfigSource.STATIC_BROKER_CONFIG, id.source());
    that("node.id is read-only", id.isReadOnly());
    ConfigEntry dirs = config.get("log.dirs");
    that("log.dirs is read-only", dirs.isReadOnly());
    ConfigEntry segment = config.get("log.segment.bytes");
    same("log.segment.bytes", "1073741824", segment.value());
    same("its source", ConfigSource.DEFAULT_CONFIG, segment.source());
    that("log.segment.bytes may be altered", !segment.isReadOnly());
    ConfigEntry password = config.get("ssl.keystore.password");
    that("passwords are sensitive", password.isSensitive() && password.value() == null);
    that("listeners", config.get("listeners").value().contains(context.bootstrap));
  }

  private void describeErrors() {
    fails(
        UnknownTopicOrPartitionException.class,
        () -> describe(new ConfigResource(Type.TOPIC, context.name("missing"))));
    fails(
        InvalidTopicException.class, () -> describe(new ConfigResource(Type.TOPIC, "bad name")));
  }

  private void setAndDelete() throws Exception {
    ConfigResource topic = topic("retention.ms", "1000000", "segment.ms", "2000000");
    alter(topic, "retention.ms", "3000000", OpType.SET);
    becomes(topic, "retention.ms", "3000000", ConfigSource.DYNAMIC_TOPIC_CONFIG);
    becomes(topic, "segment.ms", "2000000", ConfigSource.DYNAMIC_TOPIC_CONFIG);
    alter(topic, "retention.ms", null, OpType.DELETE);
    becomes(topic, "retention.ms", "604800000", ConfigSource.DEFAULT_CONFIG);
    alter(topic, "retention.ms", null, OpType.DELETE);
    // Nothing to alter is fine.
    admin.incrementalAlterConfigs(Map.of(topic, List.of())).all().get();
  }

  private void appendAndSubtract() throws Exception {
    ConfigResource topic = topic();
    ConfigSource dynamic = ConfigSource.DYNAMIC_TOPIC_CONFIG;
    alter(topic, "cleanup.policy", "compact", OpType.APPEND);
    becomes(topic, "cleanup.policy", "delete,compact", dynamic);
    alter(topic, "cleanup.policy", "compact", OpType.APPEND);
    becomes(topic, "cleanup.policy", "delete,compact", dynamic);
    alter(topic, "cleanup.policy", "delete", OpType.SUBTRACT);
    becomes(topic, "cleanup.policy", "compact", dynamic);
    alter(topic, "cleanup.policy", "delete", OpType.SUBTRACT);
    becomes(topic, "cleanup.policy", "compact", dynamic);
  }

  private void validateOnly() throws Exception {
    ConfigResource topic = topic();
    var options = new AlterConfigsOptions().validateOnly(true);
    var good = new AlterConfigOp(new ConfigEntry("retention.ms", "5000000"), OpType.SET);
    admin.incrementalAlterConfigs(Map.of(topic, List.of(good)), options).all().get();
    same("unchanged", "604800000", describe(topic).get("retention.ms").value());
    var bad = new AlterConfigOp(new ConfigEntry("retention.ms", "never"), OpType.SET);
    fails(
        InvalidConfigurationException.class,
        () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(bad)), options).all().get());
  }

  private void alterErrors() throws Exception {
    ConfigResource topic = topic();
    Class<InvalidConfigurationException> invalid = InvalidConfigurationException.class;
    fails(invalid, () -> alter(topic, "no.such.config", "1", OpType.SET));
    fails(invalid, () -> alter(topic, "retention.ms", "soon", OpType.SET));
    fails(invalid, () -> alter(topic, "retention.ms", "5", OpType.APPEND));
    fails(invalid, () -> alter(topic, "segment.bytes", "-7", OpType.SET));
    fails(invalid, () -> alter(topic, "cleanup.policy", "burn", OpType.APPEND));
    fails(InvalidRequestException.class, () -> alter(topic, "retention.ms", null, OpType.SET));
    ConfigResource missing = new ConfigResource(Type.TOPIC, context.name("missing"));
    fails(
        UnknownTopicOrPartitionException.class,
        () -> alter(missing, "retention.ms", "1", OpType.SET));
  }

  private void mixed() throws Exception {
    ConfigResource good = topic();
    ConfigResource bad = topic();
    Collection<AlterConfigOp> right =
        List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "6000000"), OpType.SET));
    Collection<AlterConfigOp> wrong =
        List.of(
            new AlterConfigOp(new ConfigEntry("retention.ms", "6000000"), OpType.SET),
            new AlterConfigOp(new ConfigEntry("segment.ms", "x"), OpType.SET));
    var values = admin.incrementalAlterConfigs(Map.of(good, right, bad, wrong)).values();
    values.get(good).get();
    fails(InvalidConfigurationException.class, () -> values.get(bad).get());
    becomes(good, "retention.ms", "6000000", ConfigSource.DYNAMIC_TOPIC_CONFIG);
    same("nothing of the bad one", "604800000", describe(bad).get("retention.ms").value());
  }

  private void dynamicDefault() throws Exception {
    ConfigResource topic = topic();
    // An odd size tells this setting from the default, and no other suite minds it.
    alter(CLUSTER, "log.index.interval.bytes", "4097", OpType.SET);
    try {
      becomes(topic, "index.interval.bytes", "4097", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG);
      becomes(
          BROKER, "log.index.interval.bytes", "4097", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG);
      alter(BROKER, "log.index.interval.bytes", "4098", OpType.SET);
      becomes(BROKER, "log.index.interval.bytes", "4098", ConfigSource.DYNAMIC_BROKER_CONFIG);
      becomes(topic, "index.interval.bytes", "4098", ConfigSource.DYNAMIC_BROKER_CONFIG);
    } finally {
      alter(BROKER, "log.index.interval.bytes", null, OpType.DELETE);
      alter(CLUSTER, "log.index.interval.bytes", null, OpType.DELETE);
    }
    becomes(topic, "index.interval.bytes", "4096", ConfigSource.DEFAULT_CONFIG);
  }

  private void readOnly() {
    fails(
        InvalidRequestException.class, () -> alter(BROKER, "node.id", "5", OpType.SET));
    fails(
        InvalidRequestException.class,
        () -> alter(BROKER, "log.segment.bytes", "many", OpType.SET));
  }

  private void acts() throws Exception {
    ConfigResource topic = topic();
    String bound = "message.timestamp.before.max.ms";
    long old = System.currentTimeMillis() - 7_200_000;
    ProducerRecord<byte[], byte[]> record =
        new ProducerRecord<>(topic.name(), 0, old, null, new byte[1]);
    int accepted = 0;
    try (var producer = context.producer()) {
      producer.send(record).get();
      accepted++;
      alter(topic, bound, "3600000", OpType.SET);
      becomes(topic, bound, "3600000", ConfigSource.DYNAMIC_TOPIC_CONFIG);
      // Kafka describes what the controller knows, its logs follow a moment later.
      long deadline = System.nanoTime() + Context.DEADLINE.toNanos();
      while (isTimely(producer, record)) {
        that("the record is too old", System.nanoTime() < deadline);
        accepted++;
      }
      alter(topic, bound, "10000000", OpType.SET);
      becomes(topic, bound, "10000000", ConfigSource.DYNAMIC_TOPIC_CONFIG);
      Context.eventually(() -> that("it is in time again", isTimely(producer, record)));
      accepted++;
    }
    same("records", accepted, context.readAll(new TopicPartition(topic.name(), 0)).size());
  }

  private static boolean isTimely(
      Producer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]> record) throws Exception {
    try {
      producer.send(record).get();
      return true;
    } catch (ExecutionException e) {
      if (e.getCause() instanceof InvalidTimestampException) {
        return false;
      }
      throw e;
    }
  }

  private void listResources() throws Exception {
    ConfigResource topic = topic("retention.ms", "1000000");
    var all = new ArrayList<>(admin.listConfigResources().all().get());
    that("the topic is listed", all.contains(topic));
    that("the broker is listed", all.contains(BROKER));
    var topics =
        admin
            .listConfigResources(
                Set.of(Type.TOPIC), new org.apache.kafka.clients.admin.ListConfigResourcesOptions())
            .all()
            .get();
    that("only topics", topics.stream().allMatch(r -> r.type() == Type.TOPIC));
    that("the topic is among them", topics.contains(topic));
  }
}
