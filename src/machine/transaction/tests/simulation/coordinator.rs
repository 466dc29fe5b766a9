//! The coordinator's driver in small: appends in order, crashes, loads.

use std::collections::VecDeque;

use super::world::Origin;
use super::*;

/// A decision whose records are not committed yet.
pub struct UnderWay {
    pub decision: Decision,
    pub origin: Origin,
}

pub struct Driver {
    pub machine: Option<TransactionMachine>,
    pub under_way: VecDeque<UnderWay>,
    /// Apply what is decided before it is committed.
    apply_at_once: bool,
    log: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    config: TransactionConfig,
    epoch: i32,
    ids: ProducerIds,
    next_block: ProducerId,
}

impl Driver {
    pub fn new(config: TransactionConfig, apply_at_once: bool) -> Self {
        Driver {
            machine: Some(TransactionMachine::new(config, LeaderEpoch(0))),
            under_way: VecDeque::new(),
            apply_at_once,
            log: Vec::new(),
            config,
            epoch: 0,
            ids: ProducerIds::new(),
            next_block: ProducerId(0),
        }
    }

    /// Blocks come from the controller now and then.
    pub fn fill_ids(&mut self) {
        if self.ids.wants_block() {
            let block = ProducerIdBlock::following(self.next_block).unwrap();
            self.next_block = block.end().unwrap();
            assert!(self.ids.add_block(block));
        }
    }

    /// Decides; gives back what can be answered at once.
    pub fn decide(
        &mut self,
        now: TimestampMs,
        command: &Command,
        origin: Origin,
    ) -> Option<UnderWay> {
        let machine = self.machine.as_mut()?;
        let decision = machine.decide(now, command, &mut || self.ids.draw());
        self.carry_out(decision, origin)
    }

    /// An id in its `epoch`-th epoch, as if much had happened before.
    pub fn start_at(
        &mut self,
        now: TimestampMs,
        init: &Command,
        epoch: ProducerEpoch,
    ) -> TransactionRecord {
        let machine = self.machine.as_mut().unwrap();
        let mut decision = machine.decide(now, init, &mut || self.ids.draw());
        let mut record = decision.records.remove(0);
        record.metadata.as_mut().unwrap().producer_epoch = epoch;
        machine.apply(record.clone());
        decision.records.push(record.clone());
        self.write(&UnderWay {
            decision,
            origin: Origin::Coordinator,
        });
        record
    }

    pub fn expire(&mut self, now: TimestampMs) {
        let Some(machine) = self.machine.as_mut() else {
            return;
        };
        for decision in machine.expire(now, &mut || self.ids.draw()) {
            self.carry_out(decision, Origin::Coordinator);
        }
    }

    fn carry_out(&mut self, decision: Decision, origin: Origin) -> Option<UnderWay> {
        // Of what is applied but not committed nothing is shown: the answer waits with the rest.
        let shown = !self.apply_at_once || self.under_way.is_empty();
        if decision.records.is_empty() && shown {
            assert_eq!(decision.markers, None);
            return Some(UnderWay { decision, origin });
        }
        let machine = self.machine.as_mut().unwrap();
        if self.apply_at_once {
            decision
                .records
                .iter()
                .for_each(|record| machine.apply(record.clone()));
        } else {
            machine.begin(&decision.records);
        }
        self.under_way.push_back(UnderWay { decision, origin });
        None
    }

    /// The oldest append is committed.
    pub fn commit(&mut self, now: TimestampMs) -> Option<UnderWay> {
        let under_way = self.under_way.pop_front()?;
        self.write(&under_way);
        let machine = self.machine.as_mut().unwrap();
        if !self.apply_at_once {
            for record in &under_way.decision.records {
                machine.apply(record.clone());
            }
            machine.clock_is(now, now);
        }
        if let Some(markers) = &under_way.decision.markers {
            assert!(machine.prepared().contains(markers));
        }
        Some(under_way)
    }

    fn write(&mut self, under_way: &UnderWay) {
        for record in &under_way.decision.records {
            let value = record.encode_value(self.config.transaction_version);
            self.log.push((record.encode_key(), value));
        }
    }

    /// The first `survivors` appends are in the log all the same; nobody is told.
    pub fn crash(&mut self, survivors: usize) -> Vec<UnderWay> {
        let survivors: Vec<_> = self.under_way.drain(..survivors).collect();
        survivors.iter().for_each(|under_way| self.write(under_way));
        self.under_way.clear();
        self.machine = None;
        survivors
    }

    /// Loads the log, compacted or not, and gives the markers still to be written.
    pub fn load(&mut self, now: TimestampMs, compact: bool) -> Vec<TxnMarkers> {
        self.epoch += 1;
        let mut machine = self.replay(compact);
        machine.clock_is(now, now);
        let markers = machine.prepared();
        self.machine = Some(machine);
        markers
    }

    fn replay(&self, compact: bool) -> TransactionMachine {
        let mut machine = TransactionMachine::new(self.config, LeaderEpoch(self.epoch));
        for (at, (key, value)) in self.log.iter().enumerate() {
            let superseded = self.log[at + 1..].iter().any(|(later, _)| later == key);
            if !(compact && superseded) {
                let record = TransactionRecord::decode(key, value.as_deref()).unwrap();
                machine.apply(record);
            }
        }
        machine
    }

    /// Replay at start gives what live traffic gave, whole or compacted.
    pub fn assert_replay_equals_live(&self) {
        let shown = |machine: &TransactionMachine| {
            let mut transactions = machine.transactions.clone();
            for metadata in transactions.values_mut() {
                metadata.last_producer_epoch = ProducerEpoch::NONE;
                // Values of version 0 lack these.
                metadata.previous_producer_id = ProducerId::NONE;
                metadata.client_transaction_version = TransactionVersion::V0;
            }
            (transactions, machine.outstanding.clone())
        };
        let live = shown(self.machine.as_ref().unwrap());
        assert_eq!(live, shown(&self.replay(false)));
        assert_eq!(live, shown(&self.replay(true)));
    }
}
