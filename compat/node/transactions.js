// Transactions of kafkajs against a running broker: `node transactions.js HOST:PORT`.
'use strict';

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1';
const assert = require('node:assert');
const { Kafka, logLevel } = require('kafkajs');

const bootstrap = process.argv[2];
const DEADLINE_MS = 60_000;
// What is written behind everything else; a reader of committed records comes to it last.
const LAST = '(end)';
const RUN = `${process.pid.toString(36)}-${Date.now().toString(36)}`;
const kafka = new Kafka({
  clientId: 'compat', brokers: [bootstrap], logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, maxRetryTime: 1000, retries: 30 },
});
const admin = kafka.admin();
let failed = 0;
let names = 0;

async function check(name, body) {
  try {
    await body();
    console.log(`ok kafkajs-transactions ${name}`);
  } catch (error) {
    failed += 1;
    const lines = (error.stack || '').split('\n');
    const at = lines.find((line) => line.includes('transactions.js')) || '';
    const why = `${error.name}: ${error.message}`.replace(/\s+/g, ' ').slice(0, 300);
    console.log(`FAIL kafkajs-transactions ${name}: ${why} ${at.trim()}`);
  }
}

const unique = (prefix) => `js-${prefix}-${RUN}-${(names += 1)}`;
const same = (what, expected, actual) => assert.deepStrictEqual(actual, expected, what);

async function eventually(body) {
  const end = Date.now() + DEADLINE_MS;
  for (;;) {
    try {
      return await body();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

async function topic(prefix) {
  const name = unique(prefix);
  const asked = { topic: name, numPartitions: 1, replicationFactor: 1 };
  same('created', true, await admin.createTopics({ topics: [asked], waitForLeaders: true }));
  // Kafka answers before the partitions serve.
  await eventually(() => admin.fetchTopicOffsets(name));
  return name;
}

async function producer(transactionalId, more = {}) {
  const made = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1, ...more });
  await made.connect();
  return made;
}

const put = (to, name, ...values) =>
  to.send({ topic: name, messages: values.map((value) => ({ value, partition: 0 })) });

// What a consumer is given up to the last record, which this writes.
async function committed(name) {
  const plain = kafka.producer();
  await plain.connect();
  await put(plain, name, LAST);
  await plain.disconnect();
  const consumer = kafka.consumer({ groupId: unique('reader'), maxWaitTimeInMs: 100 });
  await consumer.connect();
  await consumer.subscribe({ topics: [name], fromBeginning: true });
  const values = [];
  try {
    await new Promise((resolve, reject) => {
      const late = () => reject(new Error(`no end after ${values.length} values`));
      const timer = setTimeout(late, DEADLINE_MS);
      consumer.run({
        eachMessage: async ({ message }) => {
          const value = message.value.toString();
          if (value !== LAST) {
            values.push(value);
            return;
          }
          clearTimeout(timer);
          resolve();
        },
      });
    });
  } finally {
    await consumer.disconnect();
  }
  return values;
}

// Kafka answers the end of a transaction before its markers are written, and refuses the next one
// until then; kafkajs tries again to add partitions, but not to add a group.
async function addOffsets(transaction, group, name, offset) {
  const topics = [{ topic: name, partitions: [{ partition: 0, offset }] }];
  await eventually(() => transaction.sendOffsets({ consumerGroupId: group, topics }));
}

async function refused(what, promise) {
  const error = await promise.then(() => null, (e) => e);
  assert.ok(error, `${what} succeeded`);
}

async function commitAndAbort() {
  const name = await topic('txn');
  const p = await producer(unique('id'));
  const expected = [];
  for (let n = 0; n < 20; n += 1) {
    const transaction = await p.transaction();
    await put(transaction, name, `${n}a`, `${n}b`);
    if (n % 3 === 2) {
      await transaction.abort();
    } else {
      await transaction.commit();
      expected.push(`${n}a`, `${n}b`);
    }
  }
  await p.disconnect();
  same('committed', expected, await committed(name));
}

async function fencing() {
  const name = await topic('txn');
  const id = unique('id');
  const zombie = await producer(id, { retry: { retries: 1 } });
  const left = await zombie.transaction();
  await put(left, name, 'zombie');
  const owner = await producer(id);
  const transaction = await owner.transaction();
  await put(transaction, name, 'owner');
  await refused('the commit of the zombie', left.commit());
  await transaction.commit();
  await owner.disconnect();
  await zombie.disconnect().catch(() => {});
  same('committed', ['owner'], await committed(name));
}

// As after a crash: nobody ends the transaction but the next producer of that id.
async function takeOver() {
  const name = await topic('txn');
  const id = unique('id');
  const gone = await producer(id);
  await put(await gone.transaction(), name, 'left open');
  await gone.disconnect();
  const next = await producer(id);
  const transaction = await next.transaction();
  await put(transaction, name, 'next');
  await transaction.commit();
  await next.disconnect();
  same('committed', ['next'], await committed(name));
}

async function timeOut() {
  const name = await topic('txn');
  const slow = await producer(unique('id'), { transactionTimeout: 1000, retry: { retries: 1 } });
  const transaction = await slow.transaction();
  await put(transaction, name, 'slow');
  // The reader comes to the end when the transaction is aborted.
  same('committed', [], await committed(name));
  await refused('the commit of an aborted transaction', transaction.commit());
  await slow.disconnect().catch(() => {});
}

async function offsets() {
  const name = await topic('txn');
  const group = unique('group');
  const p = await producer(unique('id'));
  for (const [offset, commit] of [['7', true], ['9', false]]) {
    const transaction = await p.transaction();
    await addOffsets(transaction, group, name, offset);
    await (commit ? transaction.commit() : transaction.abort());
    await eventually(async () => {
      const [found] = await admin.fetchOffsets({ groupId: group, topics: [name] });
      same('committed offset', '7', found.partitions[0].offset);
    });
  }
  await p.disconnect();
}

// Consumes, writes and commits with the offsets of the group; the first round is aborted.
async function pipeline() {
  const [input, output, group] = [await topic('txn-in'), await topic('txn-out'), unique('group')];
  const values = Array.from({ length: 100 }, (_, i) => `v${i}`);
  const source = kafka.producer();
  await source.connect();
  await put(source, input, ...values);
  await source.disconnect();
  const p = await producer(unique('id'));
  const consumer = kafka.consumer({ groupId: group, maxWaitTimeInMs: 100 });
  await consumer.connect();
  await consumer.subscribe({ topics: [input], fromBeginning: true });
  let aborted = false;
  await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('not done in time')), DEADLINE_MS);
    consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async ({ batch, resolveOffset }) => {
        if (batch.messages.length === 0) return;
        try {
          const transaction = await p.transaction();
          await put(transaction, output, ...batch.messages.map((m) => m.value.toString()));
          const next = String(Number(batch.lastOffset()) + 1);
          await addOffsets(transaction, group, input, next);
          if (!aborted) {
            aborted = true;
            await transaction.abort();
            consumer.seek({ topic: input, partition: 0, offset: batch.firstOffset() });
            return;
          }
          await transaction.commit();
          resolveOffset(batch.lastOffset());
          if (Number(next) === values.length) {
            clearTimeout(timer);
            resolve();
          }
        } catch (error) {
          clearTimeout(timer);
          reject(error);
        }
      },
    });
  });
  await consumer.disconnect();
  await p.disconnect();
  same('output', values, await committed(output));
  const [found] = await admin.fetchOffsets({ groupId: group, topics: [input] });
  same('committed offset', String(values.length), found.partitions[0].offset);
}

async function main() {
  await admin.connect();
  await check('committed records are read, aborted ones are not', commitAndAbort);
  await check('a second producer shuts the first one out', fencing);
  await check('the next producer ends what was left open', takeOver);
  await check('a transaction that takes too long is aborted', timeOut);
  await check('offsets of a group', offsets);
  await check('consume, transform, produce', pipeline);
  await admin.disconnect();
  // Clients of a check that failed may still be connected.
  process.exit(failed === 0 ? 0 : 1);
}

main();
