//! Of the whole instance (S5.1 to S5.3, S5.9, S5.23), and of its own fields.

use super::Findings;
use crate::sweep::image::{Image, Name, RowImage};
use crate::sweep::ledger::Ledger;

const WORK: &[&str] = &[
    "queue",
    "feed",
    "steer",
    "done",
    "log",
    "steered",
    "~attempts",
    "~state",
    "~parked",
    "~inbox",
];

/// The entries that a row of this name may have; `None` for a row that may not be there.
fn entries(name: &Name) -> Option<&'static [&'static str]> {
    match (name.0.as_str(), name.1.as_str()) {
        ("~", "~") => Some(&["bumps"]),
        ("work", "~") | ("kwork", "k1" | "k2") => Some(WORK),
        ("scratch", "pad") => Some(&["value", "~inbox"]),
        ("relay", "~") => Some(&[
            "queue",
            "relayed",
            "~attempts",
            "~state",
            "~parked",
            "~inbox",
            "~dispatch",
        ]),
        ("sink", "~") => Some(&[
            "queue",
            "done",
            "log",
            "~attempts",
            "~state",
            "~parked",
            "~inbox",
            "~ignore",
        ]),
        _ => None,
    }
}

pub(super) fn always(image: &Image, ledger: &Ledger, findings: &mut Findings) {
    for (name, row) in &image.rows {
        let known = entries(name);
        findings.require("S5.1", known.is_some(), || {
            format!("nothing writes row {name:?}")
        });
        for entry in row.doc.keys() {
            let expected = known.is_none_or(|known| known.contains(&entry.as_str()));
            findings.require("S5.2", expected, || {
                format!("row {name:?} has an entry {entry:?}")
            });
        }
        findings.require("S5.3", row.marked || !has_work(row), || {
            format!("row {name:?} has work and no mark: {:?}", row.doc)
        });
    }
    for name in ledger.lanes() {
        let items = ledger.items(name);
        let row = image.rows.get(name);
        let known = row.map(|row| reached(row)).unwrap_or_default();
        for n in &items.acknowledged {
            findings.require("S5.9", known.contains(n), || {
                format!("the admission of {n} to {name:?} was acknowledged and is lost")
            });
        }
    }
    let own = image.row("~", "~").map_or(0, |row| row.number("bumps"));
    let bumps = ledger.bumps();
    findings.require(
        "D15.3",
        own >= bumps.confirmed && own >= bumps.seen && own <= bumps.sent,
        || format!("the counter of the instance's own is {own}, after {bumps:?}"),
    );
}

/// The items that are queued or executed.
fn reached(row: &RowImage) -> Vec<u64> {
    let mut reached = row.queue("queue").numbers();
    reached.extend(row.log().iter().map(|run| run.0));
    let relayed = row.list("relayed").iter();
    reached.extend(relayed.filter_map(|record| record[0].as_u64()));
    reached
}

fn has_work(row: &RowImage) -> bool {
    row.doc.contains_key("~inbox")
        || ["queue", "feed", "steer"]
            .iter()
            .any(|queue| !row.queue(queue).is_empty())
}

pub(super) fn drained(image: &Image, findings: &mut Findings) {
    let work = image.row("work", "~");
    findings.require("S5.23", work.is_some_and(|work| !work.marked), || {
        "the row of `work` is missing or marked".to_owned()
    });
    for (name, row) in &image.rows {
        findings.require("S5.23", !row.marked, || {
            format!("row {name:?} is still marked: {:?}", row.doc)
        });
    }
    findings.require("S5.23", image.row("scratch", "pad").is_none(), || {
        "the row of `scratch` is still there".to_owned()
    });
}
