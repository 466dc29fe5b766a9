//! `--describe`: offsets and lag, members, or the state of groups.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::admin::{Admin, AdminError, Answer, GroupDetail, MemberDetail, OffsetSpec};
use crate::cli::exit::Exit;
use crate::cli::io::Io;
use crate::cli::options::Options;

use super::{Called, group_names};

type Partition = (String, i32);

pub(super) async fn run(io: &mut Io, admin: &Admin, options: &Options) -> Called {
    let view = View {
        verbose: options.has("verbose"),
    };
    let names = match group_names(admin, options).await {
        Ok(names) => names,
        Err(error) => return Ok(Err(error)),
    };
    let mut details = Vec::new();
    for name in &names {
        match admin.describe_group(name).await {
            Ok(detail) => details.push(detail),
            Err(error) => return Ok(Err(error)),
        }
    }
    for detail in &details {
        let printed = if options.has("members") {
            view.members(io, detail);
            Ok(())
        } else if options.has("state") {
            view.state(io, admin, detail).await
        } else {
            view.offsets(io, admin, detail).await
        };
        if let Err(error) = printed {
            return Ok(Err(error));
        }
    }
    Ok::<Result<(), AdminError>, Exit>(Ok(()))
}

struct View {
    verbose: bool,
}

/// Says what is special about a state.
fn print_state_note(io: &mut Io, detail: &GroupDetail) {
    let name = &detail.group;
    match detail.state.as_str() {
        "Dead" => io.line(format!("\nError: Consumer group '{name}' does not exist.")),
        "Empty" => io.error_line(format!("\nConsumer group '{name}' has no active members.")),
        "PreparingRebalance" | "CompletingRebalance" | "Assigning" | "Reconciling" => {
            io.error_line(format!(
                "\nWarning: Consumer group '{name}' is rebalancing."
            ));
        }
        _ => {}
    }
}

/// One line of the offsets table.
struct OffsetRow {
    partition: Partition,
    leader_epoch: Option<i32>,
    current: Option<i64>,
    end: Option<i64>,
    /// Id, host and client of the member that reads it.
    member: Option<(String, String, String)>,
}

impl View {
    async fn offsets(&self, io: &mut Io, admin: &Admin, detail: &GroupDetail) -> Answer<()> {
        let committed = admin.group_offsets(&detail.group, None).await?;
        let mut rows = Vec::new();
        let mut assigned: BTreeSet<Partition> = BTreeSet::new();
        let mut members: Vec<&MemberDetail> = detail.members.iter().collect();
        members.sort_by_key(|member| std::cmp::Reverse(member.partitions.len()));
        for member in members {
            for partition in &member.partitions {
                assigned.insert(partition.clone());
                let who = (
                    member.id.clone(),
                    member.host.clone(),
                    member.client_id.clone(),
                );
                rows.push((partition.clone(), Some(who)));
            }
        }
        let others = committed
            .keys()
            .filter(|partition| !assigned.contains(*partition));
        rows.extend(others.map(|partition| (partition.clone(), None)));
        let ends = ends(admin, rows.iter().map(|(partition, _)| partition)).await?;
        let rows: Vec<OffsetRow> = rows
            .into_iter()
            .map(|(partition, member)| {
                let offset = committed.get(&partition).filter(|row| row.offset >= 0);
                OffsetRow {
                    leader_epoch: offset
                        .map(|row| row.leader_epoch)
                        .filter(|epoch| *epoch >= 0),
                    current: offset.map(|row| row.offset),
                    end: ends.get(&partition).copied(),
                    partition,
                    member,
                }
            })
            .collect();
        print_state_note(io, detail);
        if detail.state != "Dead" && !rows.is_empty() {
            self.print_offsets(io, &detail.group, &rows);
        }
        Ok(())
    }

    fn print_offsets(&self, io: &mut Io, group: &str, rows: &[OffsetRow]) {
        let cells: Vec<[String; 10]> = rows.iter().map(|row| offset_cells(group, row)).collect();
        let width = |index: usize| {
            cells
                .iter()
                .map(|row| row[index].chars().count())
                .max()
                .unwrap_or(0)
                .max(15)
        };
        let (group_width, topic_width) = (width(0), width(1));
        let (id_width, host_width) = (width(7), width(8));
        let header = [
            "GROUP",
            "TOPIC",
            "PARTITION",
            "LEADER-EPOCH",
            "CURRENT-OFFSET",
            "LOG-END-OFFSET",
            "LAG",
            "CONSUMER-ID",
            "HOST",
            "CLIENT-ID",
        ];
        io.line("");
        for row in std::iter::once(&header.map(str::to_owned)).chain(&cells) {
            let [
                group,
                topic,
                partition,
                epoch,
                current,
                end,
                lag,
                id,
                host,
                client,
            ] = row;
            let epoch = match self.verbose {
                true => format!("{epoch:15} "),
                false => String::new(),
            };
            io.line(format!(
                "{group:group_width$} {topic:topic_width$} {partition:10} {epoch}{current:15} \
                 {end:15} {lag:15} {id:id_width$} {host:host_width$} {client}"
            ));
        }
    }

    fn members(&self, io: &mut Io, detail: &GroupDetail) {
        print_state_note(io, detail);
        let with_instance = detail
            .members
            .iter()
            .any(|member| member.instance_id.is_some());
        let cells: Vec<Vec<String>> = detail
            .members
            .iter()
            .map(|m| member_cells(&detail.group, m))
            .collect();
        let width = |index: usize| {
            cells
                .iter()
                .map(|row| row[index].chars().count())
                .max()
                .unwrap_or(0)
                .max(15)
        };
        let widths = [width(0), width(1), width(2), width(3), width(4)];
        let header = [
            "GROUP",
            "CONSUMER-ID",
            "GROUP-INSTANCE-ID",
            "HOST",
            "CLIENT-ID",
            "#PARTITIONS",
            "CURRENT-EPOCH",
            "CURRENT-ASSIGNMENT",
            "TARGET-EPOCH",
            "TARGET-ASSIGNMENT",
        ];
        let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
        io.line("");
        for row in std::iter::once(&header).chain(&cells) {
            let mut line = String::new();
            for (index, width) in widths.iter().enumerate() {
                if index != 2 || with_instance {
                    line += &format!("{:width$} ", row[index]);
                }
            }
            line += &format!("{:15} ", row[5]);
            if self.verbose {
                line += &format!("{:15} {:20} {:15} {:20}", row[6], row[7], row[8], row[9]);
            }
            io.line(line);
        }
    }

    async fn state(&self, io: &mut Io, admin: &Admin, detail: &GroupDetail) -> Answer<()> {
        let coordinator = admin.group_coordinator(&detail.group).await?;
        print_state_note(io, detail);
        let (host, port) = (&coordinator.address.host, coordinator.address.port);
        let coordinator = format!("{host}:{port}  ({})", coordinator.id);
        let strategy = match detail.assignor.as_str() {
            "" => "-",
            assignor => assignor,
        };
        let width = detail.group.len().max(15);
        let where_width = coordinator.len().max(25);
        let row = |cells: [&str; 7]| {
            let [group, coordinator, strategy, state, epoch, target, count] = cells;
            let epochs = match self.verbose {
                true => format!("{epoch:15} {target:25} "),
                false => String::new(),
            };
            format!(
                "{group:width$} {coordinator:where_width$} {strategy:20} {state:20} {epochs}{count}"
            )
        };
        io.line("");
        io.line(row([
            "GROUP",
            "COORDINATOR (ID)",
            "ASSIGNMENT-STRATEGY",
            "STATE",
            "GROUP-EPOCH",
            "TARGET-ASSIGNMENT-EPOCH",
            "#MEMBERS",
        ]));
        let none = || ("-".to_owned(), "-".to_owned());
        let epochs = detail.epochs;
        let (epoch, target) = epochs.map_or_else(none, |(a, b)| (a.to_string(), b.to_string()));
        let count = detail.members.len().to_string();
        io.line(row([
            &detail.group,
            &coordinator,
            strategy,
            &detail.state,
            &epoch,
            &target,
            &count,
        ]));
        Ok(())
    }
}

fn offset_cells(group: &str, row: &OffsetRow) -> [String; 10] {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let lag = row.current.zip(row.end).map(|(current, end)| end - current);
    let (id, host, client) = row.member.clone().unzip3();
    [
        group.to_owned(),
        row.partition.0.clone(),
        row.partition.1.to_string(),
        or_dash(row.leader_epoch.map(|epoch| epoch.to_string())),
        or_dash(row.current.map(|offset| offset.to_string())),
        or_dash(row.end.map(|offset| offset.to_string())),
        or_dash(lag.map(|lag| lag.to_string())),
        or_dash(id),
        or_dash(host),
        or_dash(client),
    ]
}

trait Unzip3<T> {
    fn unzip3(self) -> (Option<T>, Option<T>, Option<T>);
}

impl<T> Unzip3<T> for Option<(T, T, T)> {
    fn unzip3(self) -> (Option<T>, Option<T>, Option<T>) {
        match self {
            Some((a, b, c)) => (Some(a), Some(b), Some(c)),
            None => (None, None, None),
        }
    }
}

fn member_cells(group: &str, member: &MemberDetail) -> Vec<String> {
    let epoch = |epoch: Option<i32>| epoch.map_or("-".to_owned(), |epoch| epoch.to_string());
    vec![
        group.to_owned(),
        member.id.clone(),
        member.instance_id.clone().unwrap_or_default(),
        member.host.clone(),
        member.client_id.clone(),
        member.partitions.len().to_string(),
        epoch(member.epoch),
        assignment_text(&member.partitions),
        epoch(member.target_epoch),
        member
            .target
            .as_deref()
            .map_or("-".to_owned(), assignment_text),
    ]
}

/// `a:0,1;b:2`
fn assignment_text(partitions: &[Partition]) -> String {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in partitions {
        topics.entry(topic).or_default().push(*partition);
    }
    let parts = topics.into_iter().map(|(topic, mut partitions)| {
        partitions.sort_unstable();
        let numbers: Vec<String> = partitions.iter().map(i32::to_string).collect();
        format!("{topic}:{}", numbers.join(","))
    });
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => "-".to_owned(),
        false => parts.join(";"),
    }
}

/// The end of each partition that can be asked.
async fn ends<'a>(
    admin: &Admin,
    partitions: impl Iterator<Item = &'a Partition>,
) -> Answer<BTreeMap<Partition, i64>> {
    let wanted: Vec<_> = partitions
        .map(|p| (p.clone(), OffsetSpec::LATEST))
        .collect();
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = admin.list_offsets(&wanted, false).await?;
    let rows = found.into_iter();
    Ok(rows
        .filter_map(|(partition, found)| Some((partition, found.ok()?.offset)))
        .collect())
}
