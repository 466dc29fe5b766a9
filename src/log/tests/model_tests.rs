//! Random operations on a log and on a plain vector of batches must agree.

use proptest::prelude::*;

use super::super::*;
use super::support::*;
use crate::record::Batch;
use crate::types::*;

#[derive(Debug, Clone)]
enum Operation {
    Append(i32),
    Follow {
        gap: i64,
        batches: i64,
    },
    Read {
        from: i64,
        max_bytes: u32,
        up_to: i64,
    },
    Truncate(i64),
    Advance(i64),
    Flush,
    Checkpoint,
    Retention,
    Kill,
    Stop,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (1..5_i32).prop_map(Operation::Append),
        3 => (0..4_i64, 1..6_i64).prop_map(|(gap, batches)| Operation::Follow { gap, batches }),
        8 => (0..300_i64, 0..3000_u32, 0..300_i64)
            .prop_map(|(from, max_bytes, up_to)| Operation::Read { from, max_bytes, up_to }),
        2 => (0..300_i64).prop_map(Operation::Truncate),
        1 => (0..300_i64).prop_map(Operation::Advance),
        1 => Just(Operation::Flush),
        1 => Just(Operation::Checkpoint),
        1 => Just(Operation::Retention),
        1 => Just(Operation::Kill),
        1 => Just(Operation::Stop),
    ]
}

struct Model {
    batches: Vec<Batch>,
    start: i64,
    end: i64,
}

impl Model {
    /// The batches of a read without a limit that crosses no segment; the log may give fewer.
    fn readable(&self, from: i64, up_to: i64) -> Vec<Batch> {
        let holds =
            |b: &&Batch| b.header.last_offset().0 >= from && b.header.last_offset().0 < up_to;
        self.batches.iter().filter(holds).cloned().collect()
    }
}

fn read(fixture: &Fixture, model: &Model, from: i64, max_bytes: u32, up_to: i64) {
    let result = fixture
        .log()
        .read(Offset(from), max_bytes, Offset(up_to), true);
    if from < model.start || from > model.end {
        assert!(matches!(result, Err(ReadError::OffsetOutOfRange { .. })));
        return;
    }
    let slice = result.unwrap();
    let bytes = bytes_of(&slice);
    let expected: Vec<u8> = model
        .readable(from, up_to)
        .iter()
        .flat_map(|b| b.to_bytes().to_vec())
        .collect();
    assert!(expected.starts_with(&bytes), "{from} {max_bytes} {up_to}");
    // Something comes if there is something, and all the limit allows if the segment has it.
    assert_eq!(bytes.is_empty(), expected.is_empty());
    if !bytes.is_empty() {
        let first = model.readable(from, up_to)[0].size_bytes() as u32;
        assert_eq!(slice.len, slice.available.min(max_bytes.max(first)));
    }
}

fn apply(fixture: &mut Fixture, model: &mut Model, operation: Operation) {
    match operation {
        Operation::Append(records) => {
            let mut batch = batch(records);
            batch.header.base_offset = Offset(model.end);
            batch.header.leader_epoch = LeaderEpoch(0);
            fixture.append(batch.clone());
            model.end = batch.header.next_offset().0;
            model.batches.push(batch);
        }
        Operation::Follow { gap, batches } => {
            let mut run = Vec::new();
            for _ in 0..batches {
                let mut batch = batch(2);
                batch.header.base_offset = Offset(model.end + gap);
                batch.header.leader_epoch = LeaderEpoch(0);
                model.end = batch.header.next_offset().0;
                run.push(batch);
            }
            fixture.log().append_as_follower(&run, NOW).unwrap();
            model.batches.extend(run);
        }
        Operation::Read {
            from,
            max_bytes,
            up_to,
        } => read(fixture, model, from, max_bytes, up_to),
        Operation::Truncate(offset) => {
            // Retention has deleted what lies below: the log begins anew at the offset itself.
            let all_is_gone = Offset(offset) < fixture.log().first_segment_offset();
            fixture.log().truncate_to(Offset(offset), NOW).unwrap();
            if offset >= model.end {
                return;
            }
            let mut batches = model.batches.iter();
            let cut = batches.find(|b| !all_is_gone && b.header.last_offset().0 >= offset);
            model.end = cut.map_or(offset, |b| b.header.base_offset.0.min(offset));
            let end = model.end;
            model.batches.retain(|b| b.header.last_offset().0 < end);
            model.start = model.start.min(end);
        }
        Operation::Advance(offset) => {
            if fixture
                .log()
                .advance_log_start_offset(Offset(offset))
                .unwrap()
            {
                model.start = offset;
                fixture.dir().write_log_start_offsets().unwrap();
            }
        }
        Operation::Flush => fixture.log().flush().unwrap(),
        Operation::Checkpoint => fixture.dir().checkpoint(1000).unwrap(),
        Operation::Retention => {
            let end = Offset(model.end);
            let deletion = fixture.log().apply_retention(NOW, end).unwrap();
            if let Some(deletion) = deletion {
                fixture.dir().remove(&deletion).unwrap();
            }
            model.start = fixture.log().log_start_offset().0;
            assert!(fixture.log().size_bytes() < 6000 + 2000);
        }
        Operation::Kill | Operation::Stop => {
            match operation {
                Operation::Kill => drop(fixture.reopen_after_kill()),
                _ => drop(fixture.reopen_cleanly()),
            };
            // A gap at the very end is not in the files.
            let log = fixture.log();
            let last = model.batches.last().map(|b| b.header.next_offset().0);
            assert!(log.log_end_offset().0 <= model.end);
            assert!(last.is_none_or(|l| log.log_end_offset().0 >= l.min(model.end)));
            model.end = log.log_end_offset().0;
            model.start = log.log_start_offset().0;
        }
    }
    let log = fixture.log();
    assert_eq!(log.log_end_offset().0, model.end);
    assert_eq!(log.log_start_offset().0, model.start);
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_log_is_a_vector_of_batches(operations in prop::collection::vec(operation(), 1..80)) {
        let mut fixture = Fixture::new(LogConfig {
            retention_bytes: 6000,
            ..small()
        });
        let mut model = Model { batches: Vec::new(), start: 0, end: 0 };
        for operation in operations {
            apply(&mut fixture, &mut model, operation);
        }
        let found = all_batches(fixture.log());
        prop_assert_eq!(found, model.readable(model.start, model.end));
    }
}
