//! What Linux knows about a process, from `/proc`.

use std::{fs, io, time::Duration};

/// `USER_HZ`, the unit of times in `/proc`: 100 on every Linux architecture that Rust's tier 1 names.
const TICKS_PER_SECOND: f64 = 100.0;

/// Resident memory of a process, in bytes.
///
/// # Errors
/// When there is no such process.
pub fn resident_bytes(pid: u32) -> io::Result<u64> {
    let kib = status_field(&pid.to_string(), "VmRSS:")?
        .split_whitespace()
        .next()
        .and_then(|value| value.parse::<u64>().ok())
        .ok_or_else(|| unexpected("VmRSS"))?;
    Ok(kib * 1024)
}

/// User and system time that a process has spent, in steps of 10 ms.
///
/// # Errors
/// When there is no such process.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the command's name in parentheses and may hold spaces: count from its end.
    let ticks: u64 = stat
        .rsplit_once(')')
        .map(|(_, fields)| fields.split_whitespace().skip(11).take(2))
        .and_then(|times| times.map(|time| time.parse::<u64>().ok()).sum())
        .ok_or_else(|| unexpected("stat"))?;
    Ok(Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
}

/// The cores that this process may run on, ascending.
///
/// # Errors
/// When `/proc` is not Linux's.
pub fn allowed_cores() -> io::Result<Vec<usize>> {
    let list = status_field("self", "Cpus_allowed_list:")?;
    parse_cores(&list).ok_or_else(|| unexpected("Cpus_allowed_list"))
}

fn parse_cores(list: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cores.extend(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(cores)
}

fn status_field(process: &str, name: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/{process}/status"))?
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(|value| value.trim().to_owned())
        .ok_or_else(|| unexpected(name))
}

fn unexpected(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("/proc: no readable {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_cores_and_a_cpu_time_that_grows() {
        let pid = std::process::id();
        assert!(resident_bytes(pid).expect("own status") > 64 * 1024);
        assert!(!allowed_cores().expect("own status").is_empty());
        let before = cpu_time(pid).expect("own stat");
        while cpu_time(pid).expect("own stat") == before {}
    }

    #[test]
    fn core_lists_hold_ranges_and_single_cores() {
        assert_eq!(parse_cores("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_cores("some"), None);
    }
}
