// kafkajs against a running broker: `node suite.js HOST:PORT [--groups]`.
//
// A kafkajs consumer cannot do without a group, so without `--groups` what was produced is read
// back with the client's own cluster and its fetch request.
'use strict';

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1';
const assert = require('node:assert');
const zstd = require('@bokuweb/zstd-wasm');
const lz4 = require('lz4-napi');
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } =
  require('kafkajs');
const { Checks, same, unique } = require('./checks.js');
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy');
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: (buffer) => lz4.decompressFrame(buffer),
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer, 3)),
  decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
});

const bootstrap = process.argv[2];
const DEADLINE_MS = 30_000;
const COUNT = 200;
const BASE_MS = Date.now() - 60_000;
const kafka = new Kafka({ clientId: 'compat', brokers: [bootstrap], logLevel: logLevel.NOTHING });
const admin = kafka.admin();
const checks = new Checks('kafkajs', 'suite.js', DEADLINE_MS);
const check = (name, body) => checks.check(name, body);
const eventually = (body) => checks.eventually(body);
const topic = (...asked) => checks.topic(admin, ...asked);

// Records whose every part follows from an index; see java's Sample.
const key = (i) => (i % 5 === 0 ? null : i % 7 === 0 ? Buffer.alloc(0) : Buffer.from(`key-${i}`));
const timestamp = (i) => String(BASE_MS + i * 7 - (i % 3) * 20);
const headers = (i) => (i % 3 === 0 ? {} : { 'h0-é': Buffer.from([i, 255]), h1: Buffer.from('x') });
function value(i) {
  if (i % 11 === 3) return null;
  if (i % 13 === 4) return Buffer.alloc(0);
  return Buffer.from(`value ${i} `.repeat(1 + (i % 40)));
}

const message = (i) =>
  ({ key: key(i), value: value(i), timestamp: timestamp(i), headers: headers(i), partition: 0 });

async function send(name, options = {}, producerOptions = {}) {
  const producer = kafka.producer(producerOptions);
  await producer.connect();
  const answers = [];
  // In several batches.
  for (let at = 0; at < COUNT; at += 70) {
    const messages = [];
    for (let i = at; i < Math.min(at + 70, COUNT); i += 1) messages.push(message(i));
    answers.push(...(await producer.send({ topic: name, messages, ...options })));
  }
  await producer.disconnect();
  return answers;
}

// All records from an offset to the end, by the fetch requests of kafkajs's own broker connection.
async function read(name, start = 0) {
  const createCluster = require('kafkajs/src/cluster');
  const connectionPool = require('kafkajs/src/cluster/connectionPoolBuilder');
  const createSocket = require('kafkajs/src/network/socketFactory');
  const { createLogger } = require('kafkajs/src/loggers');
  const logger = createLogger({
    level: logLevel.NOTHING, logCreator: require('kafkajs/src/loggers/console'),
  });
  const shared = {
    socketFactory: createSocket(), clientId: 'compat', connectionTimeout: 5000,
    requestTimeout: DEADLINE_MS, enforceRequestTimeout: true, logger, retry: {},
  };
  const cluster = new createCluster({
    ...shared, brokers: [bootstrap], metadataMaxAge: 300_000, allowAutoTopicCreation: false,
    isolationLevel: 1, offsets: new Map(), connectionPoolBuilder: connectionPool,
    instrumentationEmitter: null,
  });
  await cluster.connect();
  try {
    await cluster.addTargetTopic(name);
    const [leader] = Object.keys(cluster.findLeaderForPartitions(name, [0]));
    const broker = await cluster.findBroker({ nodeId: leader });
    const [{ high }] = await admin.fetchTopicOffsets(name);
    const records = [];
    for (let offset = start; offset < Number(high); ) {
      const answer = await broker.fetch({
        maxWaitTime: 500, minBytes: 1, maxBytes: 1 << 20, isolationLevel: 1,
        topics: [{
          topic: name,
          partitions: [{ partition: 0, fetchOffset: String(offset), maxBytes: 1 << 20 }],
        }],
      });
      const { messages } = answer.responses[0].partitions[0];
      const fresh = messages.filter((m) => Number(m.offset) >= offset);
      assert.ok(fresh.length > 0, `records at ${offset}`);
      records.push(...fresh);
      offset = Number(fresh[fresh.length - 1].offset) + 1;
    }
    return records;
  } finally {
    await cluster.disconnect();
  }
}

function sameMessage(i, found) {
  same('offset', String(i), found.offset);
  same('timestamp', timestamp(i), found.timestamp);
  same('key', key(i), found.key);
  same('value', value(i), found.value);
  same('headers', headers(i), { ...found.headers });
}

async function roundTrip(compression, options = {}, producerOptions = {}) {
  const name = await topic('kafkajs');
  const answers = await send(name, { compression, ...options }, producerOptions);
  if (options.acks !== 0) {
    same('base offsets', ['0', '70', '140'], answers.map((a) => a.baseOffset));
    same('error codes', [0, 0, 0], answers.map((a) => a.errorCode));
  } else {
    await eventually(async () =>
      same('end', String(COUNT), (await admin.fetchTopicOffsets(name))[0].high));
  }
  const records = await read(name);
  same('records', COUNT, records.length);
  records.forEach((record, i) => sameMessage(i, record));
  sameMessage(101, (await read(name, 101))[0]);
}

async function refused(type, promise) {
  const error = await promise.then(() => null, (e) => e);
  assert.ok(error, `expected ${type}, but it succeeded`);
  const found = error.errors ? error.errors[0] : error;
  same('error', type, found.type ?? found.cause?.type ?? String(found));
}

async function produceErrors() {
  const name = await topic('errors', 1, [{ name: 'max.message.bytes', value: '2000' }]);
  const producer = kafka.producer({ retry: { retries: 0 } });
  await producer.connect();
  const send = (m) => producer.send({ topic: name, messages: [{ partition: 0, ...m }] });
  try {
    await refused('MESSAGE_TOO_LARGE', send({ value: 'x'.repeat(5000) }));
    await refused(
      'INVALID_TIMESTAMP', send({ value: 'x', timestamp: String(Date.now() + 7_200_000) }));
    same('offset', '0', (await send({ value: 'x' }))[0].baseOffset);
  } finally {
    await producer.disconnect();
  }
}

async function topics() {
  const name = await topic('topics', 3);
  assert.ok((await admin.listTopics()).includes(name), 'listed');
  const { topics: [found] } = await admin.fetchTopicMetadata({ topics: [name] });
  same('partitions', [0, 1, 2], found.partitions.map((p) => p.partitionId).sort());
  for (const p of found.partitions) {
    same('leader, replicas, isr', [1, [1], [1]], [p.leader, p.replicas, p.isr]);
  }
  same('again', false, await admin.createTopics({ topics: [{ topic: name }] }));
  await refused('INVALID_REPLICATION_FACTOR', admin.createTopics({
    topics: [{ topic: unique('wide'), numPartitions: 1, replicationFactor: 3 }],
  }));
  await admin.createPartitions({ topicPartitions: [{ topic: name, count: 5 }] });
  await eventually(async () => same('partitions', 5, (await admin.fetchTopicOffsets(name)).length));
  await admin.deleteTopics({ topics: [name] });
  await eventually(async () =>
    assert.ok(!(await admin.listTopics()).includes(name), 'no longer listed'));
}

async function offsets() {
  const name = await topic('offsets');
  await send(name);
  const at = Number(timestamp(90));
  let first = 0;
  while (Number(timestamp(first)) < at) first += 1;
  const byTime = await admin.fetchTopicOffsetsByTimestamp(name, at);
  same('offset for a time', String(first), byTime[0].offset);
  await admin.deleteTopicRecords({ topic: name, partitions: [{ partition: 0, offset: '33' }] });
  const [found] = await admin.fetchTopicOffsets(name);
  same('low and high', ['33', String(COUNT)], [found.low, found.high]);
  sameMessage(33, (await read(name, 33))[0]);
}

async function configs() {
  const name = await topic('configs', 1, [{ name: 'retention.ms', value: '95000' }]);
  const look = async () => {
    const answer = await admin.describeConfigs({
      includeSynonyms: true,
      resources: [{ type: ConfigResourceTypes.TOPIC, name, configNames: ['retention.ms'] }],
    });
    return answer.resources[0].configEntries[0];
  };
  const entry = await look();
  same('value', '95000', entry.configValue);
  same('default', false, entry.isDefault);
  await admin.alterConfigs({
    resources: [{
      type: ConfigResourceTypes.TOPIC, name,
      configEntries: [{ name: 'retention.ms', value: '96000' }],
    }],
  });
  await eventually(async () => same('value', '96000', (await look()).configValue));
}

async function cluster() {
  const found = await admin.describeCluster();
  same('brokers', [1], found.brokers.map((b) => b.nodeId));
  same('controller', 1, found.controller);
  same('length of the cluster id', 22, found.clusterId.length);
}

async function autoCreation() {
  const name = unique('auto');
  const answers = await send(name);
  same('last base offset', '140', answers[2].baseOffset);
}

async function group() {
  const name = await topic('group');
  await send(name, { compression: CompressionTypes.GZIP });
  const consumer = kafka.consumer({ groupId: unique('group') });
  await consumer.connect();
  await consumer.subscribe({ topics: [name], fromBeginning: true });
  const found = [];
  try {
    await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${found.length} in time`)), DEADLINE_MS);
      consumer.run({
        eachMessage: async ({ message: m }) => {
          if (found.push(m) === COUNT) {
            clearTimeout(timer);
            resolve();
          }
        },
      });
    });
    found.forEach((m, i) => sameMessage(i, m));
  } finally {
    await consumer.disconnect();
  }
}

async function main() {
  await zstd.init();
  await admin.connect();
  if (process.argv.includes('--groups')) {
    await check('group', group);
  } else {
    for (const [name, codec] of Object.entries(CompressionTypes)) {
      await check(`acks=all ${name}`, () => roundTrip(codec));
      await check(`acks=1 ${name}`, () => roundTrip(codec, { acks: 1 }));
    }
    await check('acks=0', () => roundTrip(CompressionTypes.None, { acks: 0 }));
    await check('idempotent', () =>
      roundTrip(CompressionTypes.GZIP, {}, { idempotent: true, maxInFlightRequests: 1 }));
    await check('produce errors', produceErrors);
    await check('topics', topics);
    await check('offsets', offsets);
    await check('configs', configs);
    await check('cluster', cluster);
    await check('auto-creation', autoCreation);
  }
  await admin.disconnect();
  process.exitCode = checks.failed === 0 ? 0 : 1;
}

main();
