//! Contested partitions ([`crate::metadata::planners::contest`]): brokers tell the active
//! controller where their logs end, and it gives each partition the leader whose log has most.

use std::time::Duration;

use bytes::Bytes;

use super::node::Node;
use super::rules;
use crate::machine::log_comparison::LogEnd;
use crate::metadata::planners::{Recovered, check_broker_epoch, contest, plan_recovered};
use crate::metadata::{BrokerEpoch, MetadataImage};
use crate::partition::Partition;
use crate::peer::{LOG_ENDS, LogEnds};
use crate::types::{LeaderEpoch, TopicId, some_of};

const TIME: Duration = Duration::from_secs(5);
/// So many partitions are named in a line of the log.
const NAMED_MAX: usize = 5;

impl Node {
    /// Tells the active controller where the logs of these partitions end here.
    pub async fn tell_log_ends(&self, places: &[(TopicId, i32)]) {
        let log = |(topic_id, partition): &(TopicId, i32)| {
            let end = end_of(&*self.partitions.get(*topic_id, *partition)?);
            Some((*topic_id, *partition, end.epoch, end.offset))
        };
        let ends = LogEnds {
            broker_id: self.broker_id,
            broker_epoch: self.partitions.surroundings().broker_epoch().0,
            logs: places.iter().filter_map(log).collect(),
        };
        let body = ends.write();
        let is_answer = |answer: &Bytes| answer.first() == Some(&LogEnds::HEARD);
        let told = self
            .channel
            .call_private(&LOG_ENDS, &body, TIME, &is_answer);
        match told.await {
            Ok(Some(_)) => {}
            Ok(None) => self.compare_logs(ends).await,
            Err(error) => tracing::debug!("the ends of contested logs: {error}"),
        }
    }

    /// Answers a broker that tells where its logs end. `None`: it cannot be read.
    pub async fn hear_log_ends(&self, body: &Bytes) -> Option<Vec<u8>> {
        let ends = LogEnds::read(body)?;
        if !self.quorum.is_leader() {
            return Some(vec![LogEnds::NOT_CONTROLLER]);
        }
        self.compare_logs(ends).await;
        Some(vec![LogEnds::HEARD])
    }

    async fn compare_logs(&self, ends: LogEnds) {
        let image = self.image();
        let broker_epoch = BrokerEpoch(ends.broker_epoch);
        if check_broker_epoch(&image, ends.broker_id, broker_epoch).is_err() {
            return;
        }
        let recovered = self.recovered(&image, &ends);
        if recovered.is_empty() {
            return;
        }
        let name = |one: &Recovered| {
            let topic = image.topic_by_id(one.topic_id)?;
            Some(format!("{}-{}", topic.name, one.partition))
        };
        let names = recovered.iter().filter_map(name);
        let partitions = some_of(names, recovered.len(), NAMED_MAX);
        let config = self.config();
        let planned = self.submit(move |image| {
            let rules = rules::of_image(&config, image);
            plan_recovered(image, &recovered, &rules)
        });
        match planned.await {
            Ok(()) => tracing::info!(partitions, "led by the replicas whose logs have most"),
            Err(error) => tracing::debug!("no leader for contested partitions: {error}"),
        }
    }

    /// Those of the partitions that `ends` names for which enough is known by now.
    fn recovered(&self, image: &MetadataImage, ends: &LogEnds) -> Vec<Recovered> {
        let config = self.config();
        let rules = rules::of_image(&config, image);
        let now = self.clock.monotonic();
        let mut comparison = self.comparison.lock();
        let registered = |(topic_id, partition): (TopicId, i32)| {
            let topic = image.topic_by_id(topic_id)?;
            Some((topic, topic.partitions.get(partition)?))
        };
        comparison.retain(|place| registered(place).is_some_and(|(_, p)| p.is_contested()));
        let mut recovered = Vec::new();
        let broker_epoch = BrokerEpoch(ends.broker_epoch);
        for &(topic_id, partition, epoch, offset) in &ends.logs {
            let place = (topic_id, partition);
            let Some((topic, registration)) = registered(place) else {
                continue;
            };
            let min_isr = rules(&topic.name).min_isr;
            let Some(contest) = contest(registration, min_isr) else {
                continue;
            };
            let end = LogEnd { epoch, offset };
            comparison.told(place, ends.broker_id, broker_epoch, end, now);
            let active = |broker| {
                let known = image.broker(broker)?;
                image
                    .may_lead(broker, registration)
                    .then_some(known.broker_epoch)
            };
            if let Some(leader) = comparison.leader(place, &contest, active, now) {
                comparison.forget(place);
                recovered.push(Recovered {
                    topic_id,
                    partition,
                    leader,
                });
            }
        }
        recovered
    }
}

fn end_of(partition: &Partition) -> LogEnd {
    let log = partition.log();
    let epoch = log.last_record_epoch().unwrap_or(LeaderEpoch::NONE);
    let offset = log.log_end_offset();
    LogEnd { epoch, offset }
}
