// What the suites of kafkajs share: named checks, names of one's own, topics that serve.
'use strict';

const assert = require('node:assert');

const RUN = `${process.pid.toString(36)}-${Date.now().toString(36)}`;
let names = 0;

const unique = (prefix) => `js-${prefix}-${RUN}-${(names += 1)}`;
const same = (what, expected, actual) => assert.deepStrictEqual(actual, expected, what);

// The checks of the suite `suite`, which stands in `file`.
class Checks {
  constructor(suite, file, deadlineMs) {
    Object.assign(this, { suite, file, deadlineMs, failed: 0 });
  }

  async check(name, body) {
    try {
      await body();
      console.log(`ok ${this.suite} ${name}`);
    } catch (error) {
      this.failed += 1;
      const at = (error.stack || '').split('\n').find((line) => line.includes(this.file)) || '';
      const why = `${error.name}: ${error.message}`.replace(/\s+/g, ' ').slice(0, 300);
      console.log(`FAIL ${this.suite} ${name}: ${why} ${at.trim()}`);
    }
  }

  // Repeats what becomes true a moment after the answer that promised it.
  async eventually(body) {
    const end = Date.now() + this.deadlineMs;
    for (;;) {
      try {
        return await body();
      } catch (error) {
        if (Date.now() > end) throw error;
      }
    }
  }

  async topic(admin, prefix, numPartitions = 1, configEntries = []) {
    const name = unique(prefix);
    const asked = { topic: name, numPartitions, replicationFactor: 1, configEntries };
    same('created', true, await admin.createTopics({ topics: [asked], waitForLeaders: true }));
    // Kafka answers before the partitions serve.
    await this.eventually(() => admin.fetchTopicOffsets(name));
    return name;
  }
}

module.exports = { Checks, same, unique };
