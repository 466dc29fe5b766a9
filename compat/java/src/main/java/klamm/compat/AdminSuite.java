package klamm.compat;

import static klamm.compat.Checks.fails;
import static klamm.compat.Checks.same;
import static klamm.compat.Checks.that;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ReplicaInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicaAssignmentException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** AdminClient: topics, partitions, records, offsets, the cluster and its log directories. */
final class AdminSuite {
  private final Context context;
  private final Admin admin;

  private AdminSuite(Context context) {
    this.context = context;
    this.admin = context.admin;
  }

  static void run(Context context, Checks checks) {
    AdminSuite suite = new AdminSuite(context);
    checks.check("createTopics with configs", suite::createWithConfigs);
    checks.check("createTopics with assignments", suite::createWithAssignments);
    checks.check("createTopics with the broker's defaults", suite::createWithDefaults);
    checks.check("createTopics validateOnly", suite::createValidateOnly);
    checks.check("createTopics errors", suite::createErrors);
    checks.check("createTopics, some good and some bad", suite::createMixed);
    checks.check("describeTopics by name and id", suite::describe);
    checks.check("describeTopics page by page", suite::describePages);
    checks.check("describeTopics errors", suite::describeErrors);
    checks.check("describeTopics authorized operations", suite::operations);
    checks.check("listTopics", suite::list);
    checks.check("createPartitions", suite::createPartitions);
    checks.check("createPartitions errors", suite::createPartitionsErrors);
    checks.check("deleteRecords", suite::deleteRecords);
    checks.check("deleteRecords errors", suite::deleteRecordsErrors);
    checks.check("deleteTopics by name and id", suite::deleteTopics);
    checks.check("deleteTopics errors", suite::deleteTopicsErrors);
    checks.check("listOffsets, all specs", suite::listOffsets);
    checks.check("listOffsets errors", suite::listOffsetsErrors);
    checks.check("describeCluster", suite::describeCluster);
    checks.check("describeLogDirs", suite::describeLogDirs);
    checks.check("describeReplicaLogDirs", suite::describeReplicaLogDirs);
    checks.check("a topic name of 249 characters", suite::longName);
  }

  private TopicDescription describe(String topic) throws Exception {
    return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
  }

  private void createWithConfigs() throws Exception {
    String topic = context.name("configs");
    CreateTopicsResult result =
        admin.createTopics(
            List.of(
                new NewTopic(topic, 3, (short) 1)
                    .configs(Map.of("retention.ms", "12345678", "cleanup.policy", "compact"))));
    same("partitions", 3, result.numPartitions(topic).get());
    same("replication factor", 1, result.replicationFactor(topic).get());
    var config = result.config(topic).get();
    same("retention.ms", "12345678", config.get("retention.ms").value());
    that("retention.ms is not the default", !config.get("retention.ms").isDefault());
    same("cleanup.policy", "compact", config.get("cleanup.policy").value());
    same("max.message.bytes", "1048588", config.get("max.message.bytes").value());
    that("max.message.bytes is the default", config.get("max.message.bytes").isDefault());
    Uuid id = result.topicId(topic).get();
    context.serves(topic, 3);
    same("id", describe(topic).topicId(), id);
    that("an id", !id.equals(Uuid.ZERO_UUID));
  }

  private void createWithAssignments() throws Exception {
    String topic = context.name("assigned");
    admin.createTopics(List.of(new NewTopic(topic, Map.of(0, List.of(1), 1, List.of(1))))).all().get();
    context.serves(topic, 2);
    same("partitions", 2, describe(topic).partitions().size());
  }

  private void createWithDefaults() throws Exception {
    String topic = context.name("defaults");
    NewTopic asked = new NewTopic(topic, java.util.Optional.empty(), java.util.Optional.empty());
    var result = admin.createTopics(List.of(asked));
    same("partitions", 1, result.numPartitions(topic).get());
    context.serves(topic, 1);
    same("partitions", 1, describe(topic).partitions().size());
  }

  private void createValidateOnly() throws Exception {
    String topic = context.name("validate");
    var options = new CreateTopicsOptions().validateOnly(true);
    NewTopic asked = new NewTopic(topic, 2, (short) 1);
    same("partitions", 2, admin.createTopics(List.of(asked), options).numPartitions(topic).get());
    that("nothing was made", !admin.listTopics().names().get().contains(topic));
    NewTopic bad = new NewTopic(topic, 2, (short) 3);
    fails(
        InvalidReplicationFactorException.class,
        () -> admin.createTopics(List.of(bad), options).all().get());
  }

  private <T extends Throwable> void refused(Class<T> error, NewTopic topic) {
    fails(error, () -> admin.createTopics(List.of(topic)).all().get());
  }

  private void createErrors() throws Exception {
    String taken = context.topic("taken", 1);
    refused(TopicExistsException.class, new NewTopic(taken, 1, (short) 1));
    String name = context.name("refused");
    refused(InvalidPartitionsException.class, new NewTopic(name, 0, (short) 1));
    refused(InvalidPartitionsException.class, new NewTopic(name, -2, (short) 1));
    refused(InvalidReplicationFactorException.class, new NewTopic(name, 1, (short) 0));
    refused(InvalidReplicationFactorException.class, new NewTopic(name, 1, (short) 2));
    refused(InvalidTopicException.class, new NewTopic("bad name", 1, (short) 1));
    refused(InvalidTopicException.class, new NewTopic("..", 1, (short) 1));
    refused(InvalidTopicException.class, new NewTopic("x".repeat(250), 1, (short) 1));
    refused(InvalidReplicaAssignmentException.class, new NewTopic(name, Map.of(0, List.of(9))));
    refused(InvalidReplicaAssignmentException.class, new NewTopic(name, Map.of(1, List.of(1))));
    refused(InvalidReplicaAssignmentException.class, new NewTopic(name, Map.of(0, List.of(1, 1))));
    NewTopic plain = new NewTopic(name, 1, (short) 1);
    refused(InvalidConfigurationException.class, plain.configs(Map.of("no.such.config", "1")));
    refused(InvalidConfigurationException.class, plain.configs(Map.of("retention.ms", "soon")));
    refused(InvalidConfigurationException.class, plain.configs(Map.of("segment.bytes", "3")));
    refused(InvalidConfigurationException.class, plain.configs(Map.of("cleanup.policy", "burn")));
    that("nothing was made", !admin.listTopics().names().get().contains(name));
  }

  private void createMixed() throws Exception {
    String good = context.name("good");
    String bad = context.name("bad");
    var result =
        admin.createTopics(
            List.of(new NewTopic(good, 1, (short) 1), new NewTopic(bad, 1, (short) 5)));
    result.values().get(good).get();
    fails(InvalidReplicationFactorException.class, () -> result.values().get(bad).get());
    context.serves(good, 1);
    Set<String> names = admin.listTopics().names().get();
    that("the good one is there", names.contains(good));
    that("the bad one is not", !names.contains(bad));
    // Names that differ only in '.' and '_' collide in metric names.
    admin.createTopics(List.of(new NewTopic(good + ".x", 1, (short) 1))).all().get();
    refused(InvalidTopicException.class, new NewTopic(good + "_x", 1, (short) 1));
  }

  private void describe() throws Exception {
    String topic = context.topic("described", 3);
    TopicDescription description = describe(topic);
    same("name", topic, description.name());
    that("not internal", !description.isInternal());
    same("partitions", 3, description.partitions().size());
    for (int p = 0; p < 3; p++) {
      var info = description.partitions().get(p);
      same("partition", p, info.partition());
      same("leader", 1, info.leader().id());
      same("host", "127.0.0.1", info.leader().host());
      same("replicas", List.of(1), info.replicas().stream().map(n -> n.id()).toList());
      same("isr", List.of(1), info.isr().stream().map(n -> n.id()).toList());
      that("no eligible leader beside the isr", info.elr() == null || info.elr().isEmpty());
    }
    Uuid id = description.topicId();
    var byId =
        admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get();
    same("name of the id", topic, byId.get(id).name());
    same("partitions by id", 3, byId.get(id).partitions().size());
  }

  private void describePages() throws Exception {
    List<String> topics = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      topics.add(context.topic("page", 5));
    }
    // 15 partitions in pages of 4: the answer's cursor cuts inside topics.
    var options = new DescribeTopicsOptions().partitionSizeLimitPerResponse(4);
    var found = admin.describeTopics(topics, options).allTopicNames().get();
    for (String topic : topics) {
      var partitions = found.get(topic).partitions().stream().map(p -> p.partition()).toList();
      same("partitions", List.of(0, 1, 2, 3, 4), partitions);
    }
  }

  private void describeErrors() throws Exception {
    String missing = context.name("missing");
    fails(UnknownTopicOrPartitionException.class, () -> describe(missing));
    fails(InvalidTopicException.class, () -> describe("not good!"));
    Uuid id = Uuid.randomUuid();
    fails(
        UnknownTopicIdException.class,
        () -> admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get());
    that("asking makes no topic", !admin.listTopics().names().get().contains(missing));
  }

  private void operations() throws Exception {
    String topic = context.topic("operations", 1);
    same("not asked", null, describe(topic).authorizedOperations());
    var options = new DescribeTopicsOptions().includeAuthorizedOperations(true);
    var found = admin.describeTopics(List.of(topic), options).allTopicNames().get().get(topic);
    same(
        "operations on a topic",
        Set.of(
            AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE,
            AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS),
        found.authorizedOperations());
    var cluster =
        admin.describeCluster(
            new org.apache.kafka.clients.admin.DescribeClusterOptions()
                .includeAuthorizedOperations(true));
    same("operations on the cluster", 7, cluster.authorizedOperations().get().size());
  }

  private void list() throws Exception {
    String topic = context.topic("listed", 1);
    TopicListing listing = admin.listTopics().namesToListings().get().get(topic);
    that("not internal", !listing.isInternal());
    same("id", describe(topic).topicId(), listing.topicId());
  }

  private void createPartitions() throws Exception {
    String topic = context.topic("grown", 1);
    var options = new CreatePartitionsOptions().validateOnly(true);
    admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4)), options).all().get();
    same("validateOnly makes none", 1, describe(topic).partitions().size());
    admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
    context.serves(topic, 3);
    same("partitions", 3, describe(topic).partitions().size());
    var assigned = NewPartitions.increaseTo(4, List.of(List.of(1)));
    admin.createPartitions(Map.of(topic, assigned)).all().get();
    context.serves(topic, 4);
    same("partitions", 4, describe(topic).partitions().size());
    try (var producer = context.producer()) {
      same("offset", 0L, producer.send(Sample.record(topic, 3, 1, 1)).get().offset());
    }
    Sample.sameRecord(1, 1, 0, context.readAll(new TopicPartition(topic, 3)).get(0));
  }

  private <T extends Throwable> void grow(Class<T> error, String topic, NewPartitions asked) {
    fails(error, () -> admin.createPartitions(Map.of(topic, asked)).all().get());
  }

  private void createPartitionsErrors() throws Exception {
    String topic = context.topic("not-grown", 3);
    grow(InvalidPartitionsException.class, topic, NewPartitions.increaseTo(3));
    grow(InvalidPartitionsException.class, topic, NewPartitions.increaseTo(2));
    grow(InvalidPartitionsException.class, topic, NewPartitions.increaseTo(0));
    var wrong = NewPartitions.increaseTo(4, List.of(List.of(1), List.of(1)));
    grow(InvalidReplicaAssignmentException.class, topic, wrong);
    var unknown = NewPartitions.increaseTo(4, List.of(List.of(8)));
    grow(InvalidReplicaAssignmentException.class, topic, unknown);
    String missing = context.name("missing");
    grow(UnknownTopicOrPartitionException.class, missing, NewPartitions.increaseTo(2));
    same("partitions", 3, describe(topic).partitions().size());
  }

  private void write(String topic, int count) throws Exception {
    try (var producer = context.producer()) {
      List<Future<RecordMetadata>> answers = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        answers.add(producer.send(Sample.record(topic, 0, 1, i)));
      }
      Context.await(answers);
    }
  }

  private long trim(TopicPartition partition, long offset) throws Exception {
    var asked = Map.of(partition, RecordsToDelete.beforeOffset(offset));
    return admin.deleteRecords(asked).lowWatermarks().get(partition).get().lowWatermark();
  }

  private void deleteRecords() throws Exception {
    String topic = context.topic("records", 1);
    var partition = new TopicPartition(topic, 0);
    write(topic, 100);
    same("low watermark", 30L, trim(partition, 30));
    same("below the start changes nothing", 30L, trim(partition, 10));
    var records = context.readAll(partition);
    same("records", 70, records.size());
    Sample.sameRecord(1, 30, 30, records.get(0));
    same("-1 is the high watermark", 100L, trim(partition, -1));
    same("records", 0, context.readAll(partition).size());
    write(topic, 1);
    same("offsets go on", 100L, context.readAll(partition).get(0).offset());
  }

  private void deleteRecordsErrors() throws Exception {
    String topic = context.topic("kept", 1);
    write(topic, 5);
    fails(OffsetOutOfRangeException.class, () -> trim(new TopicPartition(topic, 0), 6));
    same("records", 5, context.readAll(new TopicPartition(topic, 0)).size());
    String compacted = context.topic("compacted", 1, "cleanup.policy", "compact");
    fails(
        org.apache.kafka.common.errors.PolicyViolationException.class,
        () -> trim(new TopicPartition(compacted, 0), 0));
  }

  private void deleteTopics() throws Exception {
    String one = context.topic("gone", 2);
    String two = context.topic("gone", 1);
    String kept = context.topic("kept", 1);
    Uuid id = describe(two).topicId();
    admin.deleteTopics(List.of(one)).all().get();
    admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
    Context.eventually(
        () -> {
          Set<String> names = admin.listTopics().names().get();
          that("deleted by name", !names.contains(one));
          that("deleted by id", !names.contains(two));
          that("the other stays", names.contains(kept));
        });
    // The same name again is another topic: new id, empty.
    Uuid before = describe(kept).topicId();
    write(kept, 3);
    admin.deleteTopics(List.of(kept)).all().get();
    Context.eventually(
        () -> that("deleted", !admin.listTopics().names().get().contains(kept)));
    admin.createTopics(List.of(new NewTopic(kept, 1, (short) 1))).all().get();
    context.serves(kept, 1);
    that("a new id", !describe(kept).topicId().equals(before));
    same("empty", 0, context.readAll(new TopicPartition(kept, 0)).size());
  }

  private void deleteTopicsErrors() {
    String missing = context.name("missing");
    fails(
        UnknownTopicOrPartitionException.class,
        () -> admin.deleteTopics(List.of(missing)).all().get());
    Uuid id = Uuid.randomUuid();
    fails(
        UnknownTopicIdException.class,
        () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get());
  }

  private void offsetIs(TopicPartition partition, OffsetSpec spec, long offset, long timestamp)
      throws Exception {
    ListOffsetsResultInfo info = admin.listOffsets(Map.of(partition, spec)).all().get().get(partition);
    same(spec.getClass().getSimpleName() + " offset", offset, info.offset());
    same(spec.getClass().getSimpleName() + " timestamp", timestamp, info.timestamp());
  }

  private void listOffsets() throws Exception {
    String topic = context.topic("offsets", 1);
    var partition = new TopicPartition(topic, 0);
    offsetIs(partition, OffsetSpec.earliest(), 0, -1);
    offsetIs(partition, OffsetSpec.latest(), 0, -1);
    offsetIs(partition, OffsetSpec.maxTimestamp(), -1, -1);
    offsetIs(partition, OffsetSpec.forTimestamp(0), -1, -1);
    write(topic, 100);
    trim(partition, 10);
    int newest = 0;
    for (int i = 10; i < 100; i++) {
      newest = Sample.timestampMs(i) > Sample.timestampMs(newest) ? i : newest;
    }
    offsetIs(partition, OffsetSpec.earliest(), 10, -1);
    offsetIs(partition, OffsetSpec.latest(), 100, -1);
    offsetIs(partition, OffsetSpec.maxTimestamp(), newest, Sample.timestampMs(newest));
    offsetIs(partition, OffsetSpec.earliestLocal(), 10, -1);
    offsetIs(partition, OffsetSpec.latestTiered(), -1, -1);
    int first = 10;
    while (Sample.timestampMs(first) < Sample.timestampMs(52)) {
      first++;
    }
    var spec = OffsetSpec.forTimestamp(Sample.timestampMs(52));
    offsetIs(partition, spec, first, Sample.timestampMs(first));
    offsetIs(partition, OffsetSpec.forTimestamp(System.currentTimeMillis() + 9999), -1, -1);
  }

  private void listOffsetsErrors() throws Exception {
    String topic = context.topic("offsets-errors", 1);
    var beyond = new TopicPartition(topic, 5);
    var options = new org.apache.kafka.clients.admin.ListOffsetsOptions().timeoutMs(1500);
    fails(
        org.apache.kafka.common.errors.TimeoutException.class,
        () -> admin.listOffsets(Map.of(beyond, OffsetSpec.latest()), options).all().get());
  }

  private void describeCluster() throws Exception {
    var cluster = admin.describeCluster();
    var nodes = cluster.nodes().get();
    same("nodes", 1, nodes.size());
    var node = nodes.iterator().next();
    same("node id", 1, node.id());
    same("address", context.bootstrap, node.host() + ":" + node.port());
    same("rack", null, node.rack());
    that("not fenced", !node.isFenced());
    same("controller", 1, cluster.controller().get().id());
    String id = cluster.clusterId().get();
    same("length of the cluster id", 22, id.length());
    same("the id again", id, admin.describeCluster().clusterId().get());
    same("operations, not asked", null, cluster.authorizedOperations().get());
  }

  private void describeLogDirs() throws Exception {
    String topic = context.topic("dirs", 2);
    write(topic, 100);
    Map<String, LogDirDescription> dirs =
        admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1);
    same("directories", 1, dirs.size());
    LogDirDescription dir = dirs.values().iterator().next();
    same("error", null, dir.error());
    that("bytes of the volume are known", dir.totalBytes().getAsLong() > 0);
    that("bytes left are known", dir.usableBytes().getAsLong() > 0);
    Map<Integer, ReplicaInfo> own =
        dir.replicaInfos().entrySet().stream()
            .filter(e -> e.getKey().topic().equals(topic))
            .collect(Collectors.toMap(e -> e.getKey().partition(), Map.Entry::getValue));
    same("partitions", Set.of(0, 1), own.keySet());
    that("partition 0 has bytes", own.get(0).size() > 100);
    same("partition 1 is empty", 0L, own.get(1).size());
    same("lag", 0L, own.get(0).offsetLag());
    that("not a future replica", !own.get(0).isFuture());
  }

  private void describeReplicaLogDirs() throws Exception {
    String topic = context.topic("replica-dirs", 1);
    var replica = new org.apache.kafka.common.TopicPartitionReplica(topic, 0, 1);
    var info = admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica);
    that("a directory", info.getCurrentReplicaLogDir() != null);
    same("lag", 0L, info.getCurrentReplicaOffsetLag());
    same("future directory", null, info.getFutureReplicaLogDir());
  }

  private void longName() throws Exception {
    // "-0" is added for the directory, which must fit a file name of 255 bytes.
    String topic = (context.name("long") + "x".repeat(249)).substring(0, 249);
    admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
    context.serves(topic, 1);
    write(topic, 3);
    same("records", 3, context.readAll(new TopicPartition(topic, 0)).size());
    admin.deleteTopics(List.of(topic)).all().get();
  }
}
