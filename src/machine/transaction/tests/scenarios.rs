//! One line per statement about Kafka 4.4, asked of a running one with raw requests (the producer
//! ids are ours). Where we answer better than Kafka, the line says so.

use super::scenario::check;
use super::*;

const V0: TransactionVersion = TransactionVersion::V0;
const V1: TransactionVersion = TransactionVersion::V1;
const V2: TransactionVersion = TransactionVersion::V2;

macro_rules! scenarios {
    ($($name:ident $version:ident $transcript:literal)*) => {
        $(#[test] fn $name() { check(stringify!($name), $version, $transcript); })*
    };
}

scenarios! {
    init_producer_id V2 "
        init a -> 1000/0
        init b -> 1001/0
        # With the present id and epoch it bumps; the same request again answers the same.
        init b as 1001/0 -> 1001/1
        init b as 1001/0 -> 1001/1
        init b as 1001/0 -> 1001/1
        init b as 1001/6 -> 90
        init b as 1002/0 -> 90
        # Without them everybody before is shut out.
        init b -> 1001/2
        init b as 1001/1 -> 90
        init b as 1001/2 -> 1001/3
        # The time-out: above 0, up to 15 minutes. The empty id comes first.
        init b timeout=0 -> 50
        init b timeout=-1 -> 50
        init b timeout=900001 -> 50
        init b timeout=900000 -> 1001/4
        init '' -> 42
        init '' timeout=0 -> 42
        # An id that is not known (any more) takes whoever comes.
        init c as 77777/3 -> 1002/0
        describe c -> Empty 60000 -1 1002/0
    "
    describe_and_list V2 "
        describe nope -> 105
        describe '' -> 42
        init a -> 1000/0
        init b -> 1001/0
        add b 1001/0 v5 tp-1 tp-0 __consumer_offsets-3 -> 0
        describe a -> Empty 60000 -1 1000/0
        describe b -> Ongoing 60000 1000005 1001/0 __consumer_offsets-3 tp-0 tp-1
        list -> a:1000:Empty b:1001:Ongoing
        list state=Ongoing -> b:1001:Ongoing
        list state=Ongoing state=Empty -> a:1000:Empty b:1001:Ongoing
        # Names are case-sensitive; unknown ones alone match nothing, with others they are ignored.
        list state=ongoing
        list state=ongoing state=Ongoing -> b:1001:Ongoing
        list state=Dead
        list state=PrepareEpochFence
        list pid=1000 -> a:1000:Empty
        list pid=1000 state=Ongoing
        # Without any transaction an id counts as begun before 1970.
        list longer=0 -> a:1000:Empty b:1001:Ongoing
        list longer=1000 -> a:1000:Empty
        list longer=100000000
        list longer=-5 -> a:1000:Empty b:1001:Ongoing
        list id=a -> a:1000:Empty
    "
    version_1_transaction V2 "
        init a -> 1000/0
        end a 1000/0 commit v4 -> 48
        end a 1000/0 abort v4 -> 48
        add a 1000/0 v3 tp-0 tp-1 -> 0
        add a 1000/0 v3 tp-0 tp-1 -> 0
        add a 1000/0 v3 tp-2 -> 0
        add a 1000/0 v3 __consumer_offsets-3 -> 0
        add a 1000/0 v3 -> 0
        end a 1000/1 commit v4 -> 90
        end a 1001/0 commit v4 -> 49
        end nope 1000/0 commit v4 -> 49
        end '' 1000/0 commit v4 -> 42
        end a 1000/0 commit v4 -> 0
        describe a -> PrepareCommit 60000 1000004 1000/0 __consumer_offsets-3 tp-0 tp-1 tp-2
        end a 1000/0 commit v4 -> 51
        end a 1000/0 abort v4 -> 51
        end a 1000/1 abort v4 -> 90
        markers a -> CompleteCommit
        describe a -> CompleteCommit 60000 1000004 1000/0
        end a 1000/0 commit v4 -> 0
        end a 1000/0 abort v4 -> 48
        add a 1000/0 v3 tp-0 -> 0
        end a 1000/0 abort v4 -> 0
        markers a -> CompleteAbort
        end a 1000/0 abort v4 -> 0
        end a 1000/0 commit v4 -> 48
    "
    add_partitions V2 "
        init a -> 1000/0
        init a -> 1000/1
        add a 1000/0 v3 tp-0 -> 90
        add a 1000/2 v3 tp-0 -> 90
        add a 1001/1 v3 tp-0 -> 49
        add nope 1000/1 v3 tp-0 -> 49
        add '' 1000/1 v3 tp-0 -> 42
        # No partitions at all also begin a transaction.
        add a 1000/1 v3 -> 0
        describe a -> Ongoing 60000 1000008 1000/1
        end a 1000/1 commit v4 -> 0
        markers a -> CompleteCommit
    "
    verify V2 "
        init a -> 1000/0
        verify a 1000/0 tp-0 tp-1 -> tp-0:120 tp-1:120
        add a 1000/0 v5 tp-2 -> 0
        verify a 1000/0 tp-0 tp-2 -> tp-0:120 tp-2:0
        verify a 1000/1 tp-0 tp-2 -> tp-0:90 tp-2:90
        verify a 1001/0 tp-2 -> tp-2:49
        verify nope 1000/0 tp-2 -> tp-2:49
        verify '' 1000/0 tp-2 -> tp-2:42
        end a 1000/0 abort v5 -> 1000/1
        verify a 1000/1 tp-2 -> tp-2:51
        markers a -> CompleteAbort
        verify a 1000/1 tp-2 -> tp-2:120
        verify a 1000/0 tp-2 -> tp-2:90
    "
    version_2_transaction V2 "
        init a -> 1000/0
        # Nothing open: a commit is refused, an abort works and bumps, each time.
        end a 1000/0 commit v5 -> 48
        end a 1000/-1 commit v5 -> 90
        end a 1000/-1 abort v5 -> 90
        end a 1000/0 abort v5 -> 1000/1
        end a 1000/0 abort v5 -> 51
        markers a -> CompleteAbort
        end a 1000/0 abort v5 -> 1000/1
        end a 1000/0 commit v5 -> 48
        end a 1000/1 commit v5 -> 48
        end a 1000/1 abort v5 -> 1000/2
        markers a -> CompleteAbort
        add a 1000/2 v4 tp-0 tp-1 -> 0
        end a 1000/1 abort v5 -> 90
        end a 1000/1 commit v5 -> 90
        end a 1000/2 commit v5 -> 1000/3
        # While markers are written everybody with the right id waits, in every epoch.
        end a 1000/2 commit v5 -> 51
        end a 1000/2 abort v5 -> 51
        end a 1000/0 abort v5 -> 51
        end a 1001/3 commit v5 -> 49
        add a 1000/3 v5 tp-0 -> 51
        add a 1000/2 v5 tp-0 -> 90
        init a -> 51
        init a as 1000/0 -> 51
        markers a -> CompleteCommit
        # The epoch before is a repeat of the same request.
        end a 1000/2 commit v5 -> 1000/3
        end a 1000/2 abort v5 -> 48
        end a 1000/3 commit v5 -> 48
        end a 1000/4 commit v5 -> 90
        end a 1000/1 commit v5 -> 90
        # Older versions look at the present epoch only.
        end a 1000/3 commit v4 -> 0
        end a 1000/3 abort v4 -> 48
        end a 1000/2 commit v4 -> 90
        end a 1000/3 abort v5 -> 1000/4
        markers a -> CompleteAbort
    "
    versions_mixed V2 "
        init a -> 1000/0
        add a 1000/0 v3 tp-0 -> 0
        end a 1000/0 commit v5 -> 1000/1
        markers a -> CompleteCommit
        add a 1000/1 v5 tp-0 -> 0
        end a 1000/1 commit v4 -> 0
        markers a -> CompleteCommit
        end a 1000/1 commit v5 -> 48
        end a 1000/1 abort v5 -> 1000/2
    "
    fenced_by_another V2 "
        init a -> 1000/0
        add a 1000/0 v5 tp-0 -> 0
        # The open transaction is aborted first: 51 meanwhile, two epochs further in the end.
        init a -> 51
        init a -> 51
        markers a -> CompleteAbort
        describe a -> CompleteAbort 60000 1000002 1000/1
        init a -> 1000/2
        end a 1000/0 commit v5 -> 90
        end a 1000/0 abort v5 -> 90
        end a 1000/0 commit v4 -> 90
        add a 1000/0 v5 tp-0 -> 90
        init a as 1000/0 -> 90
    "
    fenced_by_an_old_client V2 "
        init a -> 1000/0
        add a 1000/0 v5 tp-0 -> 0
        end a 1000/0 commit v5 -> 1000/1
        markers a -> CompleteCommit
        init a -> 1000/2
        add a 1000/2 v3 tp-0 -> 0
        end a 1000/2 abort v4 -> 0
        markers a -> CompleteAbort
        # Kafka takes this for a repeat and hands out epoch 2, which is another's.
        end a 1000/1 abort v5 -> 90
        end a 1000/1 commit v5 -> 90
        end a 1000/2 abort v4 -> 0
    "
    fenced_by_itself V2 "
        init a -> 1000/0
        add a 1000/0 v5 tp-0 -> 0
        init a as 1000/0 -> 51
        markers a -> CompleteAbort
        init a as 1000/0 -> 1000/1
        init a as 1000/1 -> 1000/2
        init a as 1000/2 -> 1000/3
        # Any epoch of the right id aborts an open transaction; another id does not.
        add a 1000/3 v5 tp-0 -> 0
        init a as 1001/3 -> 90
        init a as 1000/0 timeout=0 -> 50
        init a as 1000/0 -> 51
        markers a -> CompleteAbort
        init a as 1000/0 -> 90
        init a as 1000/3 -> 1000/4
    "
    last_epoch_is_not_in_the_log V2 "
        init a -> 1000/0
        init a as 1000/0 -> 1000/1
        init a as 1000/0 -> 1000/1
        reload
        init a as 1000/0 -> 90
        init a as 1000/1 -> 1000/2
        # The end of a version 2 transaction is still repeatable.
        add a 1000/2 v5 tp-0 -> 0
        end a 1000/2 commit v5 -> 1000/3
        reload
        end a 1000/2 commit v5 -> 51
        markers a -> CompleteCommit
        reload
        end a 1000/2 commit v5 -> 1000/3
    "
    time_out V2 "
        init a timeout=300 -> 1000/0
        add a 1000/0 v5 tp-0 -> 0
        tick 299 -> 0
        tick 0 -> 1
        tick 0 -> 0
        end a 1000/0 commit v5 -> 51
        markers a -> CompleteAbort
        describe a -> CompleteAbort 300 1000002 1000/1
        end a 1000/0 commit v5 -> 48
        end a 1000/0 abort v5 -> 1000/1
        add a 1000/0 v5 tp-0 -> 90
        end a 1000/0 commit v4 -> 90
        end a 1000/0 abort v4 -> 90
        init a as 1000/0 -> 1000/1
        describe a -> Empty 60000 -1 1000/1
    "
    time_out_counts_from_the_first_partition V2 "
        init a timeout=300 -> 1000/0
        tick 1000 -> 0
        add a 1000/0 v3 tp-0 -> 0
        tick 200 -> 0
        add a 1000/0 v3 tp-1 -> 0
        tick 97 -> 0
        tick 0 -> 1
        markers a -> CompleteAbort
    "
    time_out_below_version_2 V1 "
        init a timeout=300 -> 1000/0
        add a 1000/0 v3 tp-0 -> 0
        tick 400 -> 1
        markers a -> CompleteAbort
        describe a -> CompleteAbort 300 1000002 1000/1
        end a 1000/0 abort v4 -> 90
        init a as 1000/0 -> 90
    "
    fence_below_version_2 V1 "
        init a -> 1000/0
        add a 1000/0 v5 tp-0 -> 0
        init a -> 51
        markers a -> CompleteAbort
        init a as 1000/0 -> 90
        init a as 1000/1 -> 1000/2
        init a -> 1000/3
        # The feature level only says what clients should do: they may still.
        add a 1000/3 v5 tp-0 -> 0
        end a 1000/3 commit v5 -> 1000/4
        markers a -> CompleteCommit
    "
    version_0 V0 "
        init a -> 1000/0
        # Kafka answers 35 to this, and 51 to everything after it: its records of version 0 have no
        # place for the client's version. We say 35 to both.
        add a 1000/0 v5 tp-0 -> 35
        end a 1000/0 abort v5 -> 35
        add a 1000/0 v3 tp-0 -> 0
        end a 1000/0 commit v4 -> 0
        reload
        markers a -> CompleteCommit
        add a 1000/0 v3 tp-2 -> 0
        end a 1000/0 abort v4 -> 0
        markers a -> CompleteAbort
    "
    epochs_run_out_between_transactions V2 "
        burn a -> 1000/32766
        # Kafka answers -1 to these two: an old epoch, and a repeat of the last request.
        init a as 1000/5 -> 90
        init a as 1000/32765 -> 1000/32766
        init a as 1000/32766 -> 1001/0
        init a as 1000/32766 -> 1001/0
        init a as 1000/32766 -> 90
        describe a -> Empty 60000 -1 1001/0
        burn b -> 1002/32766
        init b -> 1003/0
    "
    epochs_run_out_in_a_commit V2 "
        burn a -> 1000/32766
        add a 1000/32766 v5 tp-0 -> 0
        end a 1000/32766 commit v5 -> 1001/0
        describe a -> PrepareCommit 60000 1000002 1000/32767 tp-0
        end a 1000/32766 commit v5 -> 51
        markers a -> CompleteCommit
        describe a -> CompleteCommit 60000 1000002 1001/0
        end a 1000/32766 commit v5 -> 1001/0
        end a 1000/32766 abort v5 -> 48
        end a 1000/32765 commit v5 -> 49
        add a 1000/32766 v5 tp-0 -> 49
        reload
        end a 1000/32766 commit v5 -> 1001/0
        init a as 1000/32766 -> 90
    "
    epochs_run_out_in_a_commit_and_init_repeats V2 "
        burn a -> 1000/32766
        add a 1000/32766 v5 tp-0 -> 0
        end a 1000/32766 commit v5 -> 1001/0
        markers a -> CompleteCommit
        init a as 1000/32766 -> 1001/0
        init a as 1000/32766 -> 90
    "
    epochs_run_out_in_an_abort_of_nothing V2 "
        burn a -> 1000/32766
        end a 1000/32766 abort v5 -> 1001/0
        markers a -> CompleteAbort
        describe a -> CompleteAbort 60000 1000002 1001/0
    "
    epochs_run_out_in_a_fence V2 "
        burn a -> 1000/32766
        add a 1000/32766 v5 tp-0 -> 0
        init a -> 51
        markers a -> CompleteAbort
        describe a -> CompleteAbort 60000 1000002 1001/0
        init a -> 1001/1
        burn b -> 1002/32766
        add b 1002/32766 v5 tp-0 -> 0
        init b as 1002/32766 -> 51
        markers b -> CompleteAbort
        init b as 1002/32766 -> 1003/0
        init b as 1002/32767 -> 90
    "
    epochs_run_out_in_a_fence_below_version_2 V1 "
        burn a -> 1000/32766
        add a 1000/32766 v3 tp-0 -> 0
        init a -> 51
        markers a -> CompleteAbort
        describe a -> CompleteAbort 60000 1000002 1000/32767
        # Kafka answers -1.
        init a as 1000/32766 -> 90
        init a as 1000/32767 -> 1001/0
    "
    version_1_clients_stay_in_the_last_epoch V2 "
        burn a -> 1000/32766
        add a 1000/32766 v5 tp-0 -> 0
        end a 1000/32766 commit v4 -> 0
        markers a -> CompleteCommit
        add a 1000/32766 v3 tp-0 -> 0
        end a 1000/32766 commit v4 -> 0
        markers a -> CompleteCommit
        init a as 1000/32766 -> 1001/0
    "
    a_record_under_way V2 "
        hold
        init a -> 1000/0
        init a -> 51
        describe a -> 105
        add a 1000/0 v5 tp-0 -> 49
        release
        hold
        add a 1000/0 v5 tp-0 -> 0
        add a 1000/0 v5 tp-0 -> 51
        add a 1000/1 v5 tp-0 -> 90
        end a 1000/0 commit v5 -> 51
        end a 1000/0 commit v4 -> 51
        end a 1000/1 commit v4 -> 90
        init a -> 51
        init a timeout=0 -> 50
        # What is asked about the past is answered.
        verify a 1000/0 tp-0 -> tp-0:120
        release
        verify a 1000/0 tp-0 -> tp-0:0
    "
    nothing_expires_under_a_record V2 "
        init a timeout=300 -> 1000/0
        add a 1000/0 v5 tp-0 -> 0
        hold
        end a 1000/0 commit v5 -> 1000/1
        tick 1000 -> 0
        release
        tick 1000 -> 0
        markers a -> CompleteCommit
    "
    transactional_ids_expire V2 "
        init a -> 1000/0
        init b -> 1001/0
        add b 1001/0 v5 tp-0 -> 0
        tick 59000 -> 0
        end b 1001/0 commit v5 -> 1001/1
        tick 604740994 -> 0
        tick 0 -> 1
        describe a -> 105
        add a 1000/0 v5 tp-0 -> 49
        end a 1000/0 commit v5 -> 49
        # A transaction whose markers cannot be written keeps its id.
        tick 604800000 -> 0
        markers b -> CompleteCommit
        tick 604799998 -> 0
        tick 0 -> 1
        describe b -> 105
        reload
        list
        init a as 1000/0 -> 1002/0
    "
    prepared_transactions_go_on_after_a_reload V2 "
        init a -> 1000/0
        add a 1000/0 v5 tp-0 tp-1 -> 0
        end a 1000/0 commit v5 -> 1000/1
        init b -> 1001/0
        add b 1001/0 v3 tp-0 -> 0
        end b 1001/0 abort v4 -> 0
        init c -> 1002/0
        end c 1002/0 abort v5 -> 1002/1
        reload
        list -> a:1000:PrepareCommit b:1001:PrepareAbort c:1002:PrepareAbort
        describe a -> PrepareCommit 60000 1000002 1000/1 tp-0 tp-1
        init a -> 51
        markers a -> CompleteCommit
        markers b -> CompleteAbort
        markers c -> CompleteAbort
    "
}

#[test]
fn a_marker_counts_for_its_own_transaction_only() {
    let mut coordinator = Coordinator::new(V2);
    let run = |coordinator: &mut Coordinator, begin: bool| {
        if begin {
            coordinator.run(&Command::InitProducerId(InitProducerId {
                transactional_id: "a".into(),
                transaction_timeout_ms: 60_000,
                expected: None,
            }));
        }
        coordinator.run(&Command::AddPartitions(AddPartitions {
            transactional_id: "a".into(),
            producer: producer(1000, 0),
            partitions: partitions(["tp-0", "tp-1"]),
            client_transaction_version: V0,
        }));
        coordinator.run(&Command::EndTxn(EndTxn {
            transactional_id: "a".into(),
            producer: producer(1000, 0),
            result: TransactionResult::Commit,
            client_transaction_version: V0,
        }));
        coordinator.markers.last().unwrap().clone()
    };
    // Two transactions of the same epoch within one millisecond.
    let first = run(&mut coordinator, true);
    let written = |markers: &TxnMarkers, texts: &[&str]| MarkersWritten {
        transactional_id: "a".into(),
        prepared_at: markers.prepared_at,
        partitions: partitions(texts.iter().copied()),
    };
    assert!(
        !coordinator
            .machine
            .on_markers_written(&written(&first, &["tp-0"]))
    );
    assert!(
        !coordinator
            .machine
            .on_markers_written(&written(&first, &["tp-0"]))
    );
    let left = coordinator.machine.describe("a").unwrap().partitions;
    assert_eq!(left, partitions(["tp-1"]));
    assert_eq!(coordinator.machine.prepared()[0].partitions, left);
    // Not all are written: nothing to complete yet.
    let complete = |markers: &TxnMarkers| {
        Command::CompleteTxn(CompleteTxn {
            transactional_id: "a".into(),
            prepared_at: markers.prepared_at,
        })
    };
    coordinator.run(&complete(&first));
    assert_eq!(
        coordinator.machine.describe("a").unwrap().state.name(),
        "PrepareCommit"
    );
    coordinator.write_markers("a");
    let second = run(&mut coordinator, false);
    assert_ne!(first.prepared_at, second.prepared_at);
    assert!(
        !coordinator
            .machine
            .on_markers_written(&written(&first, &["tp-0", "tp-1"]))
    );
    coordinator.run(&complete(&first));
    assert_eq!(
        coordinator.machine.describe("a").unwrap().partitions,
        second.partitions
    );
    assert_eq!(coordinator.machine.prepared(), [second]);
}

#[test]
fn without_producer_ids_clients_wait_and_nothing_changes() {
    let mut coordinator = Coordinator::new(V2);
    let init = Command::InitProducerId(InitProducerId {
        transactional_id: "a".into(),
        transaction_timeout_ms: 60_000,
        expected: None,
    });
    let mut ids = ProducerIds::new();
    let mut none = || ids.draw();
    let decision = coordinator
        .machine
        .decide(coordinator.now, &init, &mut none);
    let waits = Reply::InitProducerId(Err(ErrorCode::CoordinatorLoadInProgress));
    assert_eq!((decision.records.len(), decision.reply), (0, waits));
    // A time-out in the last epoch needs one too: it is left until there is one.
    let mut metadata = TransactionMetadata::new(ProducerId(5));
    metadata.state = TransactionState::Ongoing;
    metadata.producer_epoch = ProducerEpoch(i16::MAX - 1);
    metadata.transaction_timeout_ms = 1;
    metadata.start_timestamp = TimestampMs(0);
    let record = TransactionRecord {
        transactional_id: "b".into(),
        metadata: Some(metadata),
    };
    coordinator.machine.apply(record);
    assert_eq!(coordinator.machine.expire(coordinator.now, &mut none), []);
    assert_eq!(coordinator.machine.deadline(), Some(TimestampMs(2)));
    assert_eq!(coordinator.expire(), 1);
    assert_eq!(coordinator.machine.deadline(), None);
}

#[test]
fn only_two_phase_commit_has_no_time_out() {
    let mut coordinator = Coordinator::new(V2);
    let mut metadata = TransactionMetadata::new(ProducerId(5));
    metadata.state = TransactionState::Ongoing;
    metadata.transaction_timeout_ms = i32::MAX;
    let record = TransactionRecord {
        transactional_id: "b".into(),
        metadata: Some(metadata),
    };
    coordinator.machine.apply(record);
    assert_eq!(coordinator.machine.deadline(), None);
}

#[test]
fn what_init_producer_id_carries_comes_together() {
    let expected = |id, epoch| ProducerIdAndEpoch::expected(ProducerId(id), ProducerEpoch(epoch));
    assert_eq!(expected(-1, -1), Ok(None));
    assert_eq!(expected(5, 0), Ok(Some(producer(5, 0))));
    assert_eq!(expected(5, -1), Err(ErrorCode::InvalidRequest));
    assert_eq!(expected(-1, 3), Err(ErrorCode::InvalidRequest));
}

#[test]
fn older_versions_do_not_know_producer_fenced() {
    use TransactionApi as Api;
    for (api, last_without) in [
        (Api::InitProducerId, 3),
        (Api::AddPartitionsToTxn, 1),
        (Api::AddOffsetsToTxn, 1),
        (Api::EndTxn, 1),
    ] {
        let fenced = ErrorCode::ProducerFenced;
        let old = error_in_version(api, last_without, fenced);
        assert_eq!(old, ErrorCode::InvalidProducerEpoch, "{api:?}");
        assert_eq!(
            error_in_version(api, last_without + 1, fenced),
            fenced,
            "{api:?}"
        );
        let other = ErrorCode::InvalidTxnState;
        assert_eq!(error_in_version(api, 0, other), other);
    }
}

#[test]
fn partitions_are_added_all_or_none() {
    let asked = partitions(["tp-0", "tp-77", "zz-0"]);
    assert_eq!(partition_errors(&asked, &Default::default()), None);
    let unknown = ErrorCode::UnknownTopicOrPartition;
    let refused = [(partition("zz-0"), unknown), (partition("tp-77"), unknown)].into();
    let errors = partition_errors(&asked, &refused).unwrap();
    let codes: Vec<i16> = errors.values().map(|error| error.code()).collect();
    assert_eq!(codes, [55, 3, 3]);
}

#[test]
fn unknown_states_are_listed_back_once() {
    let (known, unknown) = known_states(["Ongoing", "foo", "ongoing", "foo", "Dead"]);
    assert_eq!(
        known,
        [TransactionState::Ongoing, TransactionState::Dead].into()
    );
    assert_eq!(unknown, ["foo", "ongoing"].into());
}
