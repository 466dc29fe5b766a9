//! `--reset-offsets`: plans new offsets of a group without members, prints them, and with
//! `--execute` commits them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cli::admin::{Admin, AdminError, Answer, OffsetSpec};
use crate::cli::exit::Exit;
use crate::cli::io::Io;
use crate::cli::options::Options;
use crate::host::read_given;
use crate::types::ErrorCode;

use super::{Called, group_names};
use crate::cli::when;

type Partition = (String, i32);
type Plan = BTreeMap<Partition, i64>;

pub(super) async fn run(io: &mut Io, admin: &Admin, options: &Options) -> Called {
    let scenario = Scenario::read(options)?;
    let names = match group_names(admin, options).await {
        Ok(names) => names,
        Err(error) => return Ok(Err(error)),
    };
    let mut plans: Vec<(String, Plan)> = Vec::new();
    for group in names {
        let state = match admin.describe_group(&group).await {
            Ok(detail) => detail.state,
            Err(error) if error.is(ErrorCode::GroupIdNotFound) => "Dead".to_owned(),
            Err(error) => return Ok(Err(error)),
        };
        if state != "Empty" && state != "Dead" {
            io.line(format!(
                "\nError: Assignments can only be reset if the group '{group}' is inactive, but \
                 the current state is {state}."
            ));
            plans.push((group, Plan::new()));
            continue;
        }
        let planned = plan(io, admin, options, &group, &scenario).await?;
        match planned {
            Ok(plan) => plans.push((group, plan)),
            Err(error) => {
                super::report(io, &error, false);
                return Ok(Ok(()));
            }
        }
    }
    if options.has("execute") {
        for (group, plan) in plans.iter().filter(|(_, plan)| !plan.is_empty()) {
            let rows: Vec<_> = plan
                .iter()
                .map(|(p, offset)| (p.clone(), *offset, -1))
                .collect();
            if let Err(error) = admin.commit_offsets(group, (-1, ""), None, &rows).await {
                return Ok(Err(error));
            }
        }
    }
    print(io, &plans, options.has("export"));
    Ok(Ok(()))
}

enum Scenario {
    Time(OffsetSpec),
    /// Negative: back.
    Ago(i64),
    Offset(i64),
    Shift(i64),
    Current,
    File(BTreeMap<(Option<String>, Partition), i64>),
}

impl Scenario {
    fn read(options: &Options) -> Result<Scenario, Exit> {
        if options.has("to-earliest") {
            return Ok(Scenario::Time(OffsetSpec::EARLIEST));
        }
        if options.has("to-latest") {
            return Ok(Scenario::Time(OffsetSpec::LATEST));
        }
        if let Some(offset) = options.number("to-offset")? {
            return Ok(Scenario::Offset(offset));
        }
        if let Some(by) = options.number("shift-by")? {
            return Ok(Scenario::Shift(by));
        }
        let wrong = |text: &str| {
            let class = "java.text.ParseException";
            Exit::output(format!(
                "\nError: Executing consumer group command failed due to {class}: {text}"
            ))
        };
        if let Some(text) = options.one("to-datetime")? {
            let at = when::date_time_ms(text)
                .ok_or_else(|| wrong(&format!("Unparseable date: \"{text}\"")))?;
            return Ok(Scenario::Time(OffsetSpec(at)));
        }
        if let Some(text) = options.one("by-duration")? {
            let ms = when::duration_ms(text);
            let ms = ms.ok_or_else(|| wrong("Text cannot be parsed to a Duration"))?;
            return Ok(Scenario::Ago(ms));
        }
        if let Some(path) = options.one("from-file")? {
            return read_csv(path).map(Scenario::File);
        }
        Ok(Scenario::Current)
    }
}

/// `topic,partition,offset` or `group,topic,partition,offset`.
fn read_csv(path: &str) -> Result<BTreeMap<(Option<String>, Partition), i64>, Exit> {
    let bytes = read_given(Path::new(path))
        .map_err(|_| Exit::error(format!("java.nio.file.NoSuchFileException: {path}")))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let cells: Vec<&str> = line
            .split(',')
            .map(|c| c.trim().trim_matches('"'))
            .collect();
        let row = match cells[..] {
            [topic, partition, offset] => Some((None, topic, partition, offset)),
            [group, topic, partition, offset] => {
                Some((Some(group.to_owned()), topic, partition, offset))
            }
            _ => None,
        };
        let parsed = row.and_then(|(group, topic, partition, offset)| {
            let partition = (topic.to_owned(), partition.parse().ok()?);
            Some(((group, partition), offset.parse().ok()?))
        });
        let Some((key, offset)) = parsed else {
            return Err(Exit::error(format!(
                "{path}: not a row of an offsets file: {line}"
            )));
        };
        rows.insert(key, offset);
    }
    Ok(rows)
}

async fn plan(
    io: &mut Io,
    admin: &Admin,
    options: &Options,
    group: &str,
    scenario: &Scenario,
) -> Result<Answer<Plan>, Exit> {
    if let Scenario::File(rows) = scenario {
        let of_group = rows
            .iter()
            .filter(|((of, _), _)| of.as_deref().is_none_or(|g| g == group));
        let wanted: Plan = of_group
            .map(|((_, p), offset)| (p.clone(), *offset))
            .collect();
        return Ok(within(admin, wanted).await);
    }
    let partitions = match partitions(admin, options, group).await? {
        Ok(partitions) => partitions,
        Err(error) => return Ok(Err(error)),
    };
    Ok(plan_partitions(io, admin, group, scenario, partitions).await)
}

async fn plan_partitions(
    io: &mut Io,
    admin: &Admin,
    group: &str,
    scenario: &Scenario,
    partitions: Vec<Partition>,
) -> Answer<Plan> {
    match scenario {
        Scenario::Time(spec) => by_time(io, admin, &partitions, *spec).await,
        Scenario::Ago(ms) => {
            let at = OffsetSpec(admin.client.now_ms() - ms);
            by_time(io, admin, &partitions, at).await
        }
        Scenario::Offset(offset) => {
            within(
                admin,
                partitions.into_iter().map(|p| (p, *offset)).collect(),
            )
            .await
        }
        Scenario::Shift(by) => {
            let current = admin.group_offsets(group, Some(&partitions)).await?;
            let mut wanted = Plan::new();
            for partition in partitions {
                let offset = current.get(&partition).map_or(-1, |row| row.offset);
                if offset < 0 {
                    let (topic, index) = &partition;
                    let message = format!(
                        "Cannot shift offset for partition {topic}-{index} since there is no \
                         current committed offset"
                    );
                    let error = ErrorCode::InvalidRequest;
                    return Err(AdminError::Answer { error, message });
                }
                wanted.insert(partition, offset.saturating_add(*by));
            }
            within(admin, wanted).await
        }
        Scenario::Current => {
            let current = admin.group_offsets(group, Some(&partitions)).await?;
            let offset = |p: &Partition| current.get(p).map(|row| row.offset).filter(|o| *o >= 0);
            let (known, unknown): (Vec<_>, Vec<_>) =
                partitions.into_iter().partition(|p| offset(p).is_some());
            let mut plan = by_time(io, admin, &unknown, OffsetSpec::LATEST).await?;
            plan.extend(known.into_iter().filter_map(|p| {
                let offset = offset(&p)?;
                Some((p, offset))
            }));
            Ok(plan)
        }
        Scenario::File(_) => Ok(Plan::new()),
    }
}

/// The partitions that `--topic` or `--all-topics` means.
async fn partitions(
    admin: &Admin,
    options: &Options,
    group: &str,
) -> Result<Answer<Vec<Partition>>, Exit> {
    if options.has("all-topics") {
        let committed = admin.group_offsets(group, None).await;
        return Ok(committed.map(|offsets| offsets.into_keys().collect()));
    }
    let mut partitions = Vec::new();
    for text in options.all("topic") {
        let (topic, listed) = topic_and_partitions(text)?;
        let indexes = match listed {
            Some(listed) => listed,
            None => match partitions_of(admin, &topic).await {
                Ok(all) => all,
                Err(error) => return Ok(Err(error)),
            },
        };
        partitions.extend(indexes.into_iter().map(|index| (topic.clone(), index)));
    }
    Ok(Ok(partitions))
}

pub(super) async fn partitions_of(admin: &Admin, topic: &str) -> Answer<Vec<i32>> {
    let details = admin.describe_topics(&[topic.to_owned()], 2000).await?;
    Ok(details
        .iter()
        .flat_map(|topic| &topic.partitions)
        .map(|p| p.index)
        .collect())
}

/// `topic` or `topic:0,1,2`.
pub(super) fn topic_and_partitions(text: &str) -> Result<(String, Option<Vec<i32>>), Exit> {
    let Some((topic, list)) = text.split_once(':') else {
        return Ok((text.to_owned(), None));
    };
    let numbers: Result<Vec<i32>, _> = list.split(',').map(|n| n.trim().parse()).collect();
    match numbers {
        Ok(numbers) => Ok((topic.to_owned(), Some(numbers))),
        Err(_) => Err(super::refused(&format!(
            "Invalid partition '{list}' specified in topic arg '{text}''"
        ))),
    }
}

async fn by_time(
    io: &mut Io,
    admin: &Admin,
    partitions: &[Partition],
    spec: OffsetSpec,
) -> Answer<Plan> {
    let wanted: Vec<_> = partitions.iter().map(|p| (p.clone(), spec)).collect();
    let mut plan = Plan::new();
    let mut without = Vec::new();
    for (partition, found) in admin.list_offsets(&wanted, false).await? {
        match found?.offset {
            offset if offset >= 0 => {
                plan.insert(partition, offset);
            }
            _ => without.push((partition, OffsetSpec::LATEST)),
        }
    }
    for (partition, found) in admin.list_offsets(&without, false).await? {
        let (topic, index) = &partition;
        io.line(format!(
            "\nWarn: Partition {index} from topic {topic} is empty. Falling back to latest known \
             offset."
        ));
        plan.insert(partition, found?.offset);
    }
    Ok(plan)
}

/// Moves offsets that do not exist to the nearest that do.
async fn within(admin: &Admin, wanted: Plan) -> Answer<Plan> {
    let specs = |spec| wanted.keys().map(|p| (p.clone(), spec)).collect::<Vec<_>>();
    let starts = admin
        .list_offsets(&specs(OffsetSpec::EARLIEST), false)
        .await?;
    let ends = admin
        .list_offsets(&specs(OffsetSpec::LATEST), false)
        .await?;
    let mut plan = Plan::new();
    for ((partition, start), (_, end)) in starts.into_iter().zip(ends) {
        let (start, end) = (start?.offset, end?.offset);
        let offset = wanted.get(&partition).copied().unwrap_or(start);
        plan.insert(partition, offset.clamp(start, end.max(start)));
    }
    Ok(plan)
}

fn print(io: &mut Io, plans: &[(String, Plan)], as_csv: bool) {
    if as_csv {
        for (group, plan) in plans {
            for ((topic, partition), offset) in plan {
                match plans.len() {
                    1 => io.line(format!("{topic},{partition},{offset}")),
                    _ => io.line(format!("{group},{topic},{partition},{offset}")),
                }
            }
        }
        io.line("");
        return;
    }
    let groups = plans.iter().map(|(group, _)| group.len());
    let width = groups.max().unwrap_or(0).max(15);
    let topics = plans
        .iter()
        .flat_map(|(_, plan)| plan.keys())
        .map(|(topic, _)| topic.len());
    let topic_width = topics.max().unwrap_or(0).max(15);
    io.line("");
    io.line(format!(
        "{:width$} {:topic_width$} {:10} {}",
        "GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"
    ));
    for (group, plan) in plans {
        for ((topic, partition), offset) in plan {
            io.line(format!(
                "{group:width$} {topic:topic_width$} {partition:<10} {offset}"
            ));
        }
    }
}
