// kafkajs members of a group that tell what they read and commit; see python/group_member.py.
//
//   node member.js HOST:PORT TOPIC GROUP MODE COUNT NAME

'use strict';

const { Kafka, logLevel } = require('kafkajs');

const [bootstrap, topic, group, , count, name] = process.argv.slice(2);
const { timeOrigin } = performance;
const now = () => (BigInt(Math.round((timeOrigin + performance.now()) * 1000)) * 1000n).toString();

async function member(id) {
  const kafka = new Kafka({ brokers: [bootstrap], clientId: id, logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({
    groupId: group,
    sessionTimeout: 6000,
    heartbeatInterval: 500,
    rebalanceTimeout: 10000,
    metadataMaxAge: 1000,
    maxWaitTimeInMs: 100,
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, isRunning, isStale }) => {
      if (!isRunning() || isStale() || batch.messages.length === 0) return;
      const first = Number(batch.messages[0].offset);
      const last = Number(batch.messages[batch.messages.length - 1].offset);
      process.stdout.write(`R ${now()} ${id} ${batch.partition} ${first} ${last - first + 1}\n`);
      const offset = String(last + 1);
      try {
        await consumer.commitOffsets([{ topic, partition: batch.partition, offset }]);
      } catch (error) {
        process.stderr.write(`# ${id}: ${error.message}\n`);
        throw error;
      }
      process.stdout.write(`C ${now()} ${id} ${batch.partition} ${offset}\n`);
    },
  });
  return consumer;
}

async function main() {
  const members = [];
  process.on('SIGTERM', async () => {
    await Promise.all(members.map((consumer) => consumer.disconnect()));
    process.exit(0);
  });
  for (let i = 0; i < Number(count); i++) members.push(await member(`${name}-${i}`));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
