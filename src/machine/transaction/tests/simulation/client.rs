//! A client: one producer that runs transaction after transaction, and does not know that another
//! one of the same transactional id may have come.

use super::*;
use crate::types::ErrorCode;

pub struct Client {
    pub transactional_id: TransactionalId,
    pub version: TransactionVersion,
    pub producer: Option<ProducerIdAndEpoch>,
    pub step: Step,
    /// The number of the request it waits for; older answers are ignored.
    pub sequence: u32,
    pub txn_number: u32,
    /// Version 0 and 1: the epoch has to go up before the next transaction.
    bump_first: bool,
}

/// What it does next, or waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Init,
    Ready,
    /// Version 0 and 1: add the partition, then write.
    Add {
        partition: TopicPartition,
        number: u32,
    },
    Produce {
        partition: TopicPartition,
        number: u32,
    },
    /// The record is written: another one, or the end.
    Produced {
        number: u32,
    },
    End(TransactionResult),
    Stopped,
}

/// What a client asks for.
#[derive(Debug, Clone)]
pub enum Request {
    Coordinator(Command),
    Produce {
        partition: TopicPartition,
        producer: ProducerIdAndEpoch,
        txn: Txn,
        number: u32,
    },
}

impl Client {
    pub fn new(transactional_id: TransactionalId, version: TransactionVersion) -> Self {
        Client {
            transactional_id,
            version,
            producer: None,
            step: Step::Init,
            sequence: 0,
            txn_number: 0,
            bump_first: false,
        }
    }

    /// Makes up its mind where there is a choice.
    pub fn choose(&mut self, random: &mut Random, partitions: &[TopicPartition]) {
        let number = match self.step {
            Step::Ready => {
                if random.one_in(12) {
                    self.begin_request(Step::Init);
                    return;
                }
                self.txn_number += 1;
                0
            }
            Step::Produced { number } => number + 1,
            _ => return,
        };
        // Version 2 may abort a transaction without any record.
        let end = if number == 0 {
            self.version.bumps_epoch() && random.one_in(20)
        } else {
            random.one_in(3)
        };
        if end {
            let commit = number > 0 && !random.one_in(3);
            let result = if commit {
                TransactionResult::Commit
            } else {
                TransactionResult::Abort
            };
            self.begin_request(Step::End(result));
            return;
        }
        let partition = partitions[random.index(partitions.len())].clone();
        self.begin_request(if self.version.bumps_epoch() {
            Step::Produce { partition, number }
        } else {
            Step::Add { partition, number }
        });
    }

    fn begin_request(&mut self, step: Step) {
        self.step = step;
        self.sequence += 1;
    }

    /// The request of this step; asking it again is a retry.
    pub fn request(&self, index: usize) -> Option<Request> {
        let transactional_id = self.transactional_id.clone();
        let command = match &self.step {
            Step::Init => Command::InitProducerId(InitProducerId {
                transactional_id,
                transaction_timeout_ms: super::world::TIMEOUT_MS,
                expected: self.producer,
            }),
            Step::Add { partition, .. } => Command::AddPartitions(AddPartitions {
                transactional_id,
                producer: self.producer?,
                partitions: [partition.clone()].into(),
                client_transaction_version: TransactionVersion::V0,
            }),
            Step::Produce { partition, number } => {
                return Some(Request::Produce {
                    partition: partition.clone(),
                    producer: self.producer?,
                    txn: (index, self.txn_number),
                    number: *number,
                });
            }
            Step::End(result) => Command::EndTxn(EndTxn {
                transactional_id,
                producer: self.producer?,
                result: *result,
                client_transaction_version: self.version,
            }),
            Step::Ready | Step::Produced { .. } | Step::Stopped => return None,
        };
        Some(Request::Coordinator(command))
    }

    /// The answer to the present request. Gives the outcome that it now knows for sure.
    pub fn answer(&mut self, answer: Result<Option<ProducerIdAndEpoch>, ErrorCode>) -> Told {
        match (self.step.clone(), answer) {
            // Asked again later.
            (_, Err(error)) if error.is_retriable() => Told::Nothing,
            (Step::Init, Ok(producer)) => {
                self.producer = producer;
                self.bump_first = false;
                self.begin_request(Step::Ready);
                Told::Nothing
            }
            (Step::Add { partition, number }, Ok(_)) => {
                self.begin_request(Step::Produce { partition, number });
                Told::Nothing
            }
            (Step::Produce { number, .. }, Ok(_)) => {
                self.begin_request(Step::Produced { number });
                Told::Nothing
            }
            (Step::Produce { .. }, Err(ErrorCode::TransactionAbortable)) => {
                self.bump_first = true;
                self.begin_request(Step::End(TransactionResult::Abort));
                Told::Nothing
            }
            (Step::End(result), Ok(producer)) => {
                if self.version.bumps_epoch() {
                    self.producer = producer;
                    self.bump_first = false;
                }
                self.begin_request(if self.bump_first {
                    Step::Init
                } else {
                    Step::Ready
                });
                Told::Outcome(result)
            }
            (Step::Ready | Step::Produced { .. } | Step::Stopped, _) => Told::Nothing,
            (_, Err(_)) => {
                self.begin_request(Step::Stopped);
                Told::Fatal
            }
        }
    }
}

pub enum Told {
    Nothing,
    Outcome(TransactionResult),
    /// Fenced, or lost: this client is at its end, and an application starts the next one.
    Fatal,
}
