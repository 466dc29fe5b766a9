//! One good request, spoilt in every way of one kind, each on a connection of its own. What counts
//! is whether the connection is closed, and that the broker answers afterwards.

use std::time::Duration;

use crate::broker::Broker;
use crate::connection::Connection;
use crate::recording::Answer;
use crate::request;
use crate::run::outcome;

/// Nothing that is swept waits: see README.md.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// The key, the version and the correlation id.
const FIXED_BYTES: usize = 8;
pub const AFTERWARDS: &str = "afterwards the broker";
const RANDOM_FRAMES: u64 = 100;

/// A frame, and what to call it.
type Spoilt = (String, Vec<u8>);

pub fn run(broker: &Broker, kind: &str, frame: &[u8], except: &[usize]) -> Result<Answer, String> {
    let mut answer = outcomes(kind, frame, except, |frame| outcome_of(broker, frame))?;
    let body = request::plain("ApiVersions", 0, "{}");
    let afterwards = Connection::open(broker.address).ask("ApiVersions", 0, &body);
    let afterwards = if afterwards.is_ok() {
        "answers"
    } else {
        "does not answer"
    };
    answer.push((AFTERWARDS.to_owned(), afterwards.to_owned()));
    Ok(answer)
}

/// What `outcome` says of every spoilt frame.
pub fn outcomes(
    kind: &str,
    frame: &[u8],
    except: &[usize],
    outcome: impl Fn(&[u8]) -> String,
) -> Result<Answer, String> {
    let mut answer = Answer::new();
    for (name, frames) in spoilt(kind, frame, except)? {
        let outcomes = frames.into_iter().map(|(at, frame)| (at, outcome(&frame)));
        add_ranges(&mut answer, &name, outcomes.collect());
    }
    Ok(answer)
}

fn spoilt(
    kind: &str,
    frame: &[u8],
    except: &[usize],
) -> Result<Vec<(String, Vec<Spoilt>)>, String> {
    Ok(match kind {
        "truncate" => {
            let cut = (0..frame.len()).map(|n| (n.to_string(), frame[..n].to_vec()));
            vec![("cut at".to_owned(), cut.collect())]
        }
        "flip" => [0x00, 0x7f, 0x80, 0xff]
            .into_iter()
            .map(|byte| {
                let flipped = (FIXED_BYTES..frame.len())
                    .filter(|at| !except.contains(at))
                    .map(|at| {
                        let mut frame = frame.to_vec();
                        frame[at] = byte;
                        (at.to_string(), frame)
                    });
                (format!("{byte:02x} at"), flipped.collect())
            })
            .collect(),
        "random" => {
            let random = (0..RANDOM_FRAMES).map(|seed| (seed.to_string(), random(frame, seed)));
            vec![("random".to_owned(), random.collect())]
        }
        _ => return Err(format!("no sweep is called {kind}")),
    })
}

/// A good header, and bytes that depend on the seed only.
fn random(frame: &[u8], seed: u64) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ (seed + 1);
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    };
    let length = next() % 48;
    let mut bytes = frame[..FIXED_BYTES].to_vec();
    // No client id, and small numbers half of the time: the rest would be refused at once.
    bytes.extend([0xff, 0xff]);
    for _ in 0..length {
        let byte = next();
        bytes.push(if next() % 2 == 0 {
            (byte % 4) as u8
        } else {
            byte as u8
        });
    }
    bytes
}

fn outcome_of(broker: &Broker, frame: &[u8]) -> String {
    let mut connection = Connection::open(broker.address);
    connection.answer_limit(ANSWER_LIMIT);
    connection.send_frame(frame);
    let received = connection.receive();
    let (_, word) = outcome(&received).remove(0);
    word
}

/// One line for neighbours of one outcome.
fn add_ranges(answer: &mut Answer, name: &str, outcomes: Vec<(String, String)>) {
    let mut ranges: Vec<(String, String, String)> = Vec::new();
    for (at, outcome) in outcomes {
        match ranges.last_mut() {
            Some((_, last, same)) if *same == outcome => *last = at,
            _ => ranges.push((at.clone(), at, outcome)),
        }
    }
    for (first, last, outcome) in ranges {
        let range = if first == last {
            first
        } else {
            format!("{first}-{last}")
        };
        answer.push((format!("{name} {range}"), outcome));
    }
}
