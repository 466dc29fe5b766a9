// kafkajs's consume-transform-produce; see compat/pipelines.
//
//   node pipeline.js HOST:PORT IN OUT GROUP ID
//
// The offsets that kafkajs sends to a transaction do not say which generation of the group they are
// of, so only one process of it may run at a time; its producer shuts out the one before.
'use strict';

process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1';
const { Kafka, logLevel } = require('kafkajs');

const [bootstrap, input, output, group, id] = process.argv.slice(2);
const kafka = new Kafka({
  clientId: id, brokers: [bootstrap], logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 100 },
});

async function attempt(body, times = 200) {
  for (let n = 1; ; n += 1) {
    try {
      return await body();
    } catch (error) {
      if (error.type !== 'CONCURRENT_TRANSACTIONS' || n === times) throw error;
      await new Promise((resolve) => { setTimeout(resolve, 20); });
    }
  }
}

// Whatever goes wrong ends the process; the next one goes on from what is committed.
function fail(error) {
  console.error(String(error));
  process.exit(1);
}

async function main() {
  const producer = kafka.producer({
    transactionalId: id, idempotent: true, maxInFlightRequests: 1, transactionTimeout: 10_000,
  });
  await producer.connect();
  // Ends what the process before has left open, before its offsets are asked for.
  await (await producer.transaction()).abort();
  const consumer = kafka.consumer({
    groupId: group, sessionTimeout: 6000, heartbeatInterval: 500, maxWaitTimeInMs: 100,
    retry: { retries: 100, restartOnFailure: async () => false },
  });
  consumer.on(consumer.events.CRASH, ({ payload }) => fail(payload.error));
  await consumer.connect();
  await consumer.subscribe({ topics: [input], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, isStale, isRunning }) => {
      if (batch.messages.length === 0 || isStale() || !isRunning()) return;
      try {
        const transaction = await producer.transaction();
        // Kafkajs asks its partitioner again for a request that it repeats: without a partition
        // what a killed broker has appended and not answered would be written to another one, too.
        const messages = batch.messages.map(
          (m) => ({ value: m.value.toString(), partition: batch.partition }));
        await transaction.send({ topic: output, messages });
        const offset = String(Number(batch.lastOffset()) + 1);
        const topics = [{ topic: input, partitions: [{ partition: batch.partition, offset }] }];
        await attempt(() => transaction.sendOffsets({ consumerGroupId: group, topics }));
        await transaction.commit();
        resolveOffset(batch.lastOffset());
        console.log(`committed ${messages.length}`);
      } catch (error) {
        fail(error);
      }
    },
  });
}

main().catch(fail);
