//! What the workers wrote down, and the one rule that it must keep: one live instance per id (P4.6).

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Line {
    pub(super) at: u64,
    pub(super) pid: u32,
    pub(super) event: String,
    pub(super) id: String,
    pub(super) epoch: u64,
}

/// Everything that was written down, in the order of the clock.
pub(super) fn read(path: &Path) -> Vec<Line> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut lines: Vec<Line> = text
        .lines()
        // A process may have been killed in the middle of its last line.
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    lines.sort_by_key(|line| line.at);
    lines
}

/// Fails on any sign of two live instances of an id:
///
/// - a handler that ran under an epoch after one of a higher epoch had run or been set up, in whatever process;
/// - two processes that set up the id under one epoch.
///
/// Returns how many activations there were.
pub(super) fn check(lines: &[Line]) -> usize {
    let mut highest: HashMap<&str, &Line> = HashMap::new();
    let mut owners: BTreeMap<(&str, u64), u32> = BTreeMap::new();
    let mut activations = 0;
    for line in lines {
        match line.event.as_str() {
            "start" => {
                activations += 1;
                let owner = owners.entry((&line.id, line.epoch)).or_insert(line.pid);
                assert_eq!(
                    *owner, line.pid,
                    "two processes set up {} under epoch {}",
                    line.id, line.epoch
                );
            }
            "run" => {}
            // A late teardown is allowed: it serves nobody.
            _ => continue,
        }
        let known = highest.entry(&line.id).or_insert(line);
        assert!(
            line.epoch >= known.epoch,
            "{} ran under epoch {} in {} after epoch {} had begun in {}: {line:?} after {known:?}",
            line.id,
            line.epoch,
            line.pid,
            known.epoch,
            known.pid,
        );
        *known = line;
    }
    activations
}
