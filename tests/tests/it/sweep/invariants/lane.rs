//! Of each lane of work (S5.4 to S5.17, S5.22).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Findings;
use crate::sweep::image::{Name, RowImage, n_of};
use crate::sweep::ledger::Ledger;
use crate::sweep::workload::MAX_ATTEMPTS;

pub(super) fn always(name: &Name, row: &RowImage, ledger: &Ledger, findings: &mut Findings) {
    log(name, row, findings);
    let sent = ledger.items(name).sent;
    let queued = row.queue("queue").numbers();
    findings.require("S5.7", is_set(&queued), || {
        format!("{name:?} queues an item twice: {queued:?}")
    });
    let runs = row.log();
    let unsent = |n: &&u64| !sent.contains(n);
    let stray = queued
        .iter()
        .chain(runs.iter().map(|(n, _)| n))
        .find(unsent);
    findings.require("S5.8", stray.is_none(), || {
        format!("{name:?} has {stray:?}, which nobody sent")
    });
    reserved(name, row, &queued, findings);
    takes(name, row, &queued, findings);
    stage(name, row, ledger, findings);
    steered(name, row, findings);
}

/// The effects of the lane, or of the sink (S5.4, S5.5, S5.6).
pub(super) fn log(name: &Name, row: &RowImage, findings: &mut Findings) {
    let runs = row.log();
    let (done, len) = (row.number("done"), runs.len() as u64);
    findings.require("S5.4", done == len || done + 1 == len, || {
        format!("{name:?} has done {done} of a log of {len}")
    });
    let mut over = BTreeSet::new();
    for pair in runs.windows(2) {
        let ((before, first), (n, again)) = (pair[0], pair[1]);
        if before == n {
            findings.require("S5.6", again > first, || {
                format!("{name:?} ran {n} as attempt {first}, and then as {again}")
            });
        } else {
            over.insert(before);
        }
        findings.require("S5.5", !over.contains(&n), || {
            format!("{name:?} ran {n} again after others: {runs:?}")
        });
    }
}

/// S5.10, S5.11
fn reserved(name: &Name, row: &RowImage, queued: &[u64], findings: &mut Findings) {
    let (attempts, parked) = (row.doc.get("~attempts"), row.doc.get("~parked"));
    let counted = attempts.is_none_or(|attempts| attempts.as_u64().is_some_and(|n| n > 0));
    let flagged = parked.is_none_or(|parked| *parked == json!(true));
    findings.require("S5.10", counted && flagged, || {
        format!("{name:?} has ~attempts {attempts:?} and ~parked {parked:?}")
    });
    let at_cap = !queued.is_empty() && row.number("~attempts") >= MAX_ATTEMPTS;
    findings.require("S5.11", parked.is_none() || at_cap, || {
        format!("{name:?} is parked at attempt {attempts:?} with {queued:?}")
    });
}

/// What goes along with the queued items comes and goes with them, in one write (S5.12, S5.16).
fn takes(name: &Name, row: &RowImage, queued: &[u64], findings: &mut Findings) {
    let fed = row.queue("feed").numbers();
    findings.require("S5.12", fed == queued, || {
        format!("{name:?} feeds {fed:?} for {queued:?}")
    });
    let steer = row.queue("steer");
    let steers: Vec<&Value> = steer.all().collect();
    let pairs: Vec<Value> = queued.iter().flat_map(|n| pair(*n)).collect();
    findings.require("S5.16", steers.iter().copied().eq(&pairs), || {
        format!("{name:?} steers {steers:?} for {queued:?}")
    });
}

fn pair(n: u64) -> [Value; 2] {
    [json!({ "n": n }), json!({ "n": n, "tail": true })]
}

/// S5.13, S5.14, S5.15
fn stage(name: &Name, row: &RowImage, ledger: &Ledger, findings: &mut Findings) {
    let state = row.doc.get("~state");
    let attempted = row.doc.contains_key("~attempts");
    findings.require("S5.13", state.is_none() || attempted, || {
        format!("{name:?} has {state:?} of a delivery that was never counted")
    });
    let (fed, steer) = (row.queue("feed").taken, row.queue("steer").taken);
    let untaken = fed.is_empty() && steer.is_empty();
    findings.require("S5.14", state.is_some() || untaken, || {
        format!("{name:?} has taken {fed:?} and {steer:?} for no delivery")
    });
    let Some(state) = state.filter(|state| state["stage"] == "took") else {
        return;
    };
    let healed = ledger.faulty || ledger.residue.get(name) == Some(state);
    let last = fed.last().map(n_of);
    findings.require("S5.15", last == Some(n_of(state)) || healed, || {
        format!("{name:?} took {state}, and the last taken is {last:?}")
    });
}

/// S5.17
fn steered(name: &Name, row: &RowImage, findings: &mut Findings) {
    for record in row.list("steered") {
        let own = record["steers"] == json!(pair(n_of(record)));
        findings.require("S5.17", own, || format!("{name:?} has consumed {record}"));
    }
}

/// S5.22
pub(super) fn drained(name: &Name, row: &RowImage, ledger: &Ledger, findings: &mut Findings) {
    for entry in [
        "queue",
        "feed",
        "steer",
        "~attempts",
        "~state",
        "~inbox",
        "~parked",
    ] {
        findings.require("S5.22", !row.doc.contains_key(entry), || {
            format!("{name:?} still has {entry}: {}", row.doc[entry])
        });
    }
    let runs = row.log();
    findings.require("S5.22", row.number("done") == runs.len() as u64, || {
        format!("{name:?} has not done all of {runs:?}")
    });
    let executed: BTreeSet<u64> = runs.iter().map(|run| run.0).collect();
    let consumed: BTreeSet<u64> = row.list("steered").iter().map(n_of).collect();
    findings.require("S5.22", consumed == executed, || {
        format!("{name:?} has executed {executed:?} and consumed {consumed:?}")
    });
    let acknowledged = ledger.items(name).acknowledged;
    findings.require("S5.22", acknowledged.is_subset(&executed), || {
        format!("{name:?} has executed {executed:?} of {acknowledged:?}")
    });
}

pub(super) fn is_set(numbers: &[u64]) -> bool {
    numbers.iter().collect::<BTreeSet<_>>().len() == numbers.len()
}
