//! Of the relay, and what it admits into the sink (S5.18 to S5.21, S5.24).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Findings;
use super::lane::{is_set, log};
use crate::sweep::image::{Image, RowImage, n_of, name};
use crate::sweep::ledger::Ledger;

pub(super) fn always(image: &Image, ledger: &Ledger, findings: &mut Findings) {
    let sent = ledger.relays().sent;
    let keys: Vec<Value> = sent.iter().map(|n| json!(["r", n])).collect();
    let (relay, sink) = (image.row("relay", "~"), image.row("sink", "~"));
    if let Some(relay) = relay {
        source(relay, &sent, &keys, findings);
    }
    if let Some(sink) = sink {
        target(sink, &keys, findings);
    }
    if let (Some(relay), Some(sink)) = (relay, sink) {
        held(relay, sink, findings);
    }
}

/// S5.18, S5.19
fn source(relay: &RowImage, sent: &BTreeSet<u64>, keys: &[Value], findings: &mut Findings) {
    let queued = relay.queue("queue").numbers();
    let known = queued.iter().all(|n| sent.contains(n));
    findings.require("S5.18", is_set(&queued) && known, || {
        format!("the relay queues {queued:?} of {sent:?}")
    });
    for record in relay.list("relayed") {
        let known = record[0].as_u64().is_some_and(|n| sent.contains(&n));
        findings.require("S5.18", known && is_outcome(&record[1]), || {
            format!("the relay has recorded {record}")
        });
    }
    for record in relay.list("~dispatch") {
        let legal = record["target"] == json!(["sink", "~"])
            && keys.contains(&record["key"])
            && is_outcome(&record["outcome"])
            && record["cleaned"].is_boolean();
        findings.require("S5.19", legal, || format!("the relay remembers {record}"));
    }
}

fn is_outcome(outcome: &Value) -> bool {
    matches!(outcome.as_str(), Some("admitted" | "absorbed"))
}

/// S5.20, S5.21
fn target(sink: &RowImage, keys: &[Value], findings: &mut Findings) {
    let ignored = sink.list("~ignore");
    let known = ignored.iter().all(|key| keys.contains(key));
    let once = ignored
        .iter()
        .all(|key| ignored.iter().filter(|other| *other == key).count() == 1);
    findings.require("S5.20", known && once, || {
        format!("the sink ignores {ignored:?}")
    });
    let queue = sink.queue("queue");
    findings.require("S5.21", is_set(&queue.numbers()), || {
        format!("the sink queues an item twice: {queue:?}")
    });
    for item in queue.all() {
        let tagged = item["~admit"] == json!(["r", n_of(item)]);
        findings.require("S5.21", tagged, || format!("the sink queues {item}"));
    }
    let mut of_log = Findings::default();
    log(&name("sink", "~"), sink, &mut of_log);
    for violation in of_log.0 {
        findings.require("S5.21", false, || violation.to_string());
    }
}

/// While the source may deliver an item again, what it has admitted is held against that: by the target's `~ignore`, or by
/// the source's own record (T13.11).
fn held(relay: &RowImage, sink: &RowImage, findings: &mut Findings) {
    let pending = relay.queue("queue").numbers();
    for item in sink.queue("queue").all() {
        let key = &item["~admit"];
        let recorded = relay
            .list("~dispatch")
            .iter()
            .any(|record| record["key"] == *key);
        let held = recorded || sink.list("~ignore").contains(key);
        findings.require("S5.20", held || !pending.contains(&n_of(item)), || {
            format!("nothing keeps {item} from being admitted again")
        });
    }
}

/// S5.24
pub(super) fn drained(image: &Image, ledger: &Ledger, findings: &mut Findings) {
    let (Some(relay), Some(sink)) = (image.row("relay", "~"), image.row("sink", "~")) else {
        findings.require("S5.24", false, || {
            "the rows of `relay` and `sink` are not there".to_owned()
        });
        return;
    };
    let relayed = relay.list("relayed").iter();
    let relayed: BTreeSet<u64> = relayed.filter_map(|record| record[0].as_u64()).collect();
    let executed: BTreeSet<u64> = sink.log().iter().map(|run| run.0).collect();
    let acknowledged = ledger.relays().acknowledged;
    // Of what was not acknowledged nobody can tell whether it came; where a crash was, it is known from the disk.
    let same = relayed == executed && acknowledged.is_subset(&relayed);
    findings.require("S5.24", same, || {
        format!("of {acknowledged:?}, {relayed:?} were relayed and {executed:?} executed")
    });
    for (row, entry) in [
        (relay, "queue"),
        (relay, "~dispatch"),
        (relay, "~attempts"),
        (sink, "queue"),
        (sink, "~ignore"),
        (sink, "~attempts"),
    ] {
        findings.require("S5.24", !row.doc.contains_key(entry), || {
            format!("{entry} is left behind: {}", row.doc[entry])
        });
    }
}
