//! `pinboard workers`.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::format::{ago, cell, duration, list};
use super::table::Align::{Left, Right};
use super::table::table;

/// The answer of `GET /registry/workers` as a table.
pub(super) fn show(answer: &Value, now: SystemTime) -> String {
    let workers = rows(answer, "workers");
    if workers.is_empty() {
        return "no workers\n".to_owned();
    }
    // In single mode they are all the same and say nothing.
    let worlds = workers.iter().any(|worker| {
        ["hostname", "env"].iter().any(|name| {
            worker
                .get(name)
                .and_then(Value::as_str)
                .is_some_and(|value| value != "*")
        })
    });
    let mut columns = vec![
        ("CLIENT ID", Left),
        ("STATE", Left),
        ("NAMESPACES", Left),
        ("HEADROOM", Right),
        ("HEARTBEAT", Right),
        ("REGISTERED", Right),
        ("URL", Left),
    ];
    if worlds {
        columns.extend([("HOSTNAME", Left), ("ENV", Left)]);
    }
    let rows: Vec<Vec<String>> = workers
        .iter()
        .map(|worker| {
            let age = |name: &str| match worker.get(name).and_then(Value::as_u64) {
                Some(at) => ago(now, at),
                None => "-".to_owned(),
            };
            let headroom = match worker.get("headroom").and_then(Value::as_u64) {
                Some(mib) => format!("{mib} MiB"),
                None => "-".to_owned(),
            };
            let mut row = vec![
                cell(worker.get("clientId")),
                state(worker),
                list(worker.get("namespaces")),
                headroom,
                age("lastHeartbeatAt"),
                age("registeredAt"),
                cell(worker.get("advertiseUrl")),
            ];
            if worlds {
                row.extend([cell(worker.get("hostname")), cell(worker.get("env"))]);
            }
            row
        })
        .collect();
    table(&columns, &rows)
}

/// The list under `name`; nothing when the server has none.
pub(super) fn rows<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    let list = answer.get(name).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Whether a worker takes ids, and why not.
pub(super) fn state(worker: &Value) -> String {
    let is = |name: &str| worker.get(name).and_then(Value::as_bool);
    let deadline = worker.get("drainDeadline").and_then(Value::as_f64);
    let mut states = Vec::new();
    if is("draining") == Some(true) || is("cordoned") == Some(true) {
        states.push(match deadline.map(Duration::try_from_secs_f64) {
            Some(Ok(left)) => format!("draining, {} left", duration(left)),
            _ if is("cordoned") == Some(true) => "cordoned".to_owned(),
            _ => "draining".to_owned(),
        });
    }
    if is("reachable") == Some(false) {
        states.push("unreachable".to_owned());
    }
    if states.is_empty() {
        "ready".to_owned()
    } else {
        states.join(", ")
    }
}
