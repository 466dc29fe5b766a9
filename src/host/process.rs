//! What the kernel says of this process.

use std::io::Read;

/// What a process uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    pub resident_bytes: u64,
    pub cpu_s: f64,
    pub open_files: u64,
    pub open_files_max: u64,
    /// Since 1970.
    pub start_s: f64,
}

/// `None` where there is no /proc.
pub fn usage() -> Option<Usage> {
    let stat = read("/proc/self/stat")?;
    let stat = Stat::parse(&stat)?;
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let boot_s = boot_s(&read("/proc/stat")?)?;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    Some(Usage {
        resident_bytes: stat.resident_pages * rustix::param::page_size() as u64,
        cpu_s: stat.cpu_ticks as f64 / ticks,
        // The one that is open to read them is not counted.
        open_files: (std::fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1),
        open_files_max: limit.current.unwrap_or(u64::MAX),
        start_s: boot_s + stat.start_ticks as f64 / ticks,
    })
}

/// Files of /proc have no length that could be reserved.
fn read(path: &str) -> Option<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(1 << 20).read_to_string(&mut text).ok()?;
    Some(text)
}

#[derive(Debug, PartialEq)]
struct Stat {
    cpu_ticks: u64,
    start_ticks: u64,
    resident_pages: u64,
}

impl Stat {
    /// The second field is a name in brackets and may hold anything, brackets and blanks too.
    fn parse(text: &str) -> Option<Stat> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // proc(5) counts from 1, and two fields are before the rest.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Stat {
            cpu_ticks: field(14)? + field(15)?,
            start_ticks: field(22)?,
            resident_pages: field(24)?,
        })
    }
}

fn boot_s(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_behind_any_name_are_read() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 12345 900000 \
                    4000 18446744073709551615\n";
        let expected = Stat {
            cpu_ticks: 300,
            start_ticks: 12345,
            resident_pages: 4000,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse("7 (a) S 1"), None);
        assert_eq!(boot_s("cpu 1\nbtime 1700000000\n"), Some(1_700_000_000.0));
    }

    #[test]
    fn this_process_is_there() {
        let usage = usage().unwrap();
        assert!(usage.resident_bytes > 1 << 20);
        assert!(usage.open_files >= 3 && usage.open_files < usage.open_files_max);
        let now_s = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs_f64();
        // The kernel's clock of the start may be a second off.
        assert!(usage.start_s <= now_s + 2.0 && usage.start_s > now_s - 86_400.0);
    }
}
