// Testcontainers for Node: its Kafka module with another image, used with kafkajs as in its example.
const { KafkaContainer } = require("@testcontainers/kafka");
const { Kafka, logLevel } = require("kafkajs");

const image = process.argv[2];

async function use(host, port) {
  const kafka = new Kafka({ logLevel: logLevel.NOTHING, brokers: [`${host}:${port}`] });
  const producer = kafka.producer();
  const consumer = kafka.consumer({ groupId: "test-group" });
  await producer.connect();
  await consumer.connect();
  await producer.send({ topic: "test-topic", messages: [{ value: "test message" }] });
  await consumer.subscribe({ topic: "test-topic", fromBeginning: true });
  const value = await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("the record did not come")), 30000);
    consumer.run({
      eachMessage: async ({ message }) => {
        clearTimeout(late);
        resolve(message.value.toString());
      },
    });
  });
  if (value !== "test message") throw new Error(value);
  await consumer.disconnect();
  await producer.disconnect();
}

async function check(name, make) {
  try {
    const before = Date.now();
    const container = await make().start();
    console.log(`   node ${name}: started in ${Date.now() - before} ms`);
    try {
      await use(container.getHost(), container.getMappedPort(9093));
    } finally {
      await container.stop();
    }
    console.log(`ok node ${name}`);
    return true;
  } catch (error) {
    console.log(`FAIL node ${name}: ${error}`);
    return false;
  }
}

(async () => {
  const done = [
    await check("KafkaContainer", () => new KafkaContainer(image)),
    await check("KafkaContainer.withKraft", () => new KafkaContainer(image).withKraft()),
  ];
  process.exit(done.every((ok) => ok) ? 0 : 1);
})();
