//! How much memory is free (W11).

use std::fs;
use std::path::Path;

/// A limit from which on a control group counts as unlimited (W11.2).
const UNLIMITED: u64 = 1 << 60;
/// What is said where nothing can be measured (W11.3).
const UNKNOWN_MIB: u64 = 1024;

const CONTROL_GROUPS: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
];

/// Free memory in MiB: what the control group and the machine have left, whichever is less.
pub(crate) fn free_mib() -> u64 {
    let group = group_mib(&CONTROL_GROUPS, |path| {
        fs::read_to_string(Path::new(path)).ok()
    });
    smaller(group, machine_mib())
}

fn smaller(one: Option<u64>, other: Option<u64>) -> u64 {
    one.into_iter().chain(other).min().unwrap_or(UNKNOWN_MIB)
}

/// What is left of the first group whose files can be read; no limit ends the search.
fn group_mib(groups: &[(&str, &str)], read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    for (limit, usage) in groups {
        let Some(limit) = read(limit) else { continue };
        let limit = limit.trim();
        if limit == "max" {
            return None;
        }
        let Ok(limit) = limit.parse::<u64>() else {
            continue;
        };
        if limit >= UNLIMITED {
            return None;
        }
        let usage = read(usage).and_then(|usage| usage.trim().parse::<u64>().ok());
        if let Some(usage) = usage {
            return Some(limit.saturating_sub(usage) >> 20);
        }
    }
    None
}

#[cfg(target_os = "linux")]
fn machine_mib() -> Option<u64> {
    use procfs::Current as _;

    let memory = procfs::Meminfo::current().ok()?;
    memory.mem_available.map(|bytes| bytes >> 20)
}

#[cfg(not(target_os = "linux"))]
fn machine_mib() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [(&str, &str); 2] = [("max2", "now2"), ("max1", "now1")];

    fn group(files: &[(&str, &str)]) -> Option<u64> {
        group_mib(&GROUPS, |path| {
            let (_, text) = files.iter().find(|(name, _)| *name == path)?;
            Some((*text).to_owned())
        })
    }

    #[test]
    fn a_control_group_has_left_its_limit_less_its_usage() {
        // W11.2
        let mib = |count: u64| (count << 20).to_string();
        let (limit, usage) = (mib(100) + "\n", mib(30));
        assert_eq!(group(&[("max2", &limit), ("now2", &usage)]), Some(70));
        assert_eq!(group(&[("max2", &usage), ("now2", &limit)]), Some(0));
        assert_eq!(group(&[("max1", &limit), ("now1", &usage)]), Some(70));
        assert_eq!(
            group(&[("max2", "?"), ("max1", &limit), ("now1", &usage)]),
            Some(70)
        );
        assert_eq!(
            group(&[("max2", &limit), ("max1", &limit), ("now1", &usage)]),
            Some(70)
        );
    }

    #[test]
    fn no_limit_is_no_figure() {
        // W11.2
        let rest = [("max1", "1048576"), ("now1", "0")];
        let unlimited = UNLIMITED.to_string();
        for limit in ["max", &unlimited] {
            let files = [("max2", limit), ("now2", "0"), rest[0], rest[1]];
            assert_eq!(group(&files), None, "{limit}");
        }
        assert_eq!(group(&[]), None);
    }

    #[test]
    fn the_smaller_figure_counts() {
        // W11.3
        assert_eq!(smaller(Some(3), Some(2)), 2);
        assert_eq!(smaller(None, Some(2)), 2);
        assert_eq!(smaller(Some(3), None), 3);
        assert_eq!(smaller(None, None), UNKNOWN_MIB);
    }
}
