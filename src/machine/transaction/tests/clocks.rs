//! Clocks that are ahead, and that are set back: a transaction is open for no longer than its
//! time-out, whoever's clock wrote down when it began.

use super::*;

const TIMEOUT_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;

/// A coordinator with a transaction that has just begun.
fn with_open_transaction() -> Coordinator {
    let mut coordinator = Coordinator::new(TransactionVersion::V2);
    begin(&mut coordinator);
    coordinator
}

fn add(coordinator: &mut Coordinator, producer: ProducerIdAndEpoch, to: &str) {
    let added = coordinator.run(&Command::AddPartitions(AddPartitions {
        transactional_id: "a".into(),
        producer,
        partitions: partitions([to]),
        client_transaction_version: TransactionVersion::V2,
    }));
    assert_eq!(added, Reply::AddPartitions(Ok(())));
}

fn begin(coordinator: &mut Coordinator) {
    let init = Command::InitProducerId(InitProducerId {
        transactional_id: "a".into(),
        transaction_timeout_ms: TIMEOUT_MS as i32,
        expected: None,
    });
    let Reply::InitProducerId(Ok(producer)) = coordinator.run(&init) else {
        panic!("no producer");
    };
    add(coordinator, producer, "t-0");
}

/// In how many milliseconds the transaction is aborted, and not before.
fn open_for_ms(coordinator: &mut Coordinator) -> i64 {
    let wait_ms = coordinator.machine.deadline().unwrap().0 - coordinator.now.0;
    coordinator.now.0 += wait_ms - 1;
    assert_eq!(coordinator.expire(), 0);
    coordinator.now.0 += 1;
    assert_eq!(coordinator.expire(), 1);
    coordinator.write_markers("a");
    wait_ms
}

/// The wall clock jumps while no time passes.
fn jump(coordinator: &mut Coordinator, by_ms: i64) {
    let expected = coordinator.now;
    coordinator.now.0 += by_ms;
    coordinator.machine.clock_is(expected, coordinator.now);
}

#[test]
fn what_began_on_a_clock_that_was_ahead_counts_from_the_move() {
    let mut coordinator = with_open_transaction();
    coordinator.now.0 -= HOUR_MS;
    coordinator.reload();
    coordinator
        .machine
        .clock_is(coordinator.now, coordinator.now);
    assert_eq!(open_for_ms(&mut coordinator), TIMEOUT_MS + 1);
    // The id was last changed in the future; what begins now begins now all the same.
    begin(&mut coordinator);
    assert_eq!(open_for_ms(&mut coordinator), TIMEOUT_MS + 1);
    // It is forgotten once it is not used for as long as it may be, from now.
    coordinator.reload();
    coordinator
        .machine
        .clock_is(coordinator.now, coordinator.now);
    let expiration_ms = i64::from(coordinator.machine.config.transactional_id_expiration_ms);
    let forgotten_at = coordinator.machine.deadline().unwrap().0;
    assert_eq!(forgotten_at, coordinator.now.0 + expiration_ms);
    coordinator.now.0 = forgotten_at;
    assert_eq!(coordinator.expire(), 1);
    assert_eq!(coordinator.machine.deadline(), None);
}

#[test]
fn a_clock_that_is_set_back_gives_no_more_time() {
    let mut coordinator = with_open_transaction();
    coordinator.now.0 += TIMEOUT_MS / 3;
    jump(&mut coordinator, -HOUR_MS);
    coordinator.now.0 += TIMEOUT_MS / 3;
    jump(&mut coordinator, -HOUR_MS);
    // Nor does a partition that is added.
    let producer = coordinator.machine.transactions["a"].producer();
    add(&mut coordinator, producer, "t-1");
    assert_eq!(open_for_ms(&mut coordinator), TIMEOUT_MS / 3 + 1);
    begin(&mut coordinator);
    jump(&mut coordinator, -HOUR_MS);
    let config = coordinator.machine.config;
    coordinator.machine.set_config(config);
    assert_eq!(open_for_ms(&mut coordinator), TIMEOUT_MS + 1);
}

#[test]
fn a_move_takes_no_time_from_what_began_in_the_past() {
    let mut coordinator = with_open_transaction();
    coordinator.now.0 += TIMEOUT_MS / 2;
    coordinator.reload();
    coordinator
        .machine
        .clock_is(coordinator.now, coordinator.now);
    assert_eq!(open_for_ms(&mut coordinator), TIMEOUT_MS / 2 + 1);
}
