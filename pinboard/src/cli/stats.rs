//! `pinboard stats`.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::format::{ago, bytes, cell, duration};
use super::table::Align::{Left, Right};
use super::table::table;
use super::workers::{rows, state};

/// The answer of `GET /registry/stats` as two tables: the workers, and what lives in them.
pub(super) fn show(answer: &Value, now: SystemTime) -> String {
    let workers = rows(answer, "workers");
    if workers.is_empty() {
        return "no workers\n".to_owned();
    }
    let mut text = table(
        &[
            ("CLIENT ID", Left),
            ("STATE", Left),
            ("INSTANCES", Right),
            ("ACTIVATIONS", Right),
            ("EVICTIONS", Right),
            ("LEASE FLAPS", Right),
            ("REREGISTRATIONS", Right),
            ("UPTIME", Right),
            ("MEMORY", Right),
            ("CPU", Right),
            ("URL", Left),
        ],
        &workers.iter().map(worker).collect::<Vec<_>>(),
    );
    let instances: Vec<Vec<String>> = workers
        .iter()
        .flat_map(|worker| {
            rows(worker, "instances")
                .iter()
                .map(move |row| instance(worker, row, now))
        })
        .collect();
    if !instances.is_empty() {
        text.push('\n');
        text.push_str(&table(
            &[
                ("NAMESPACE", Left),
                ("ID", Left),
                ("CONNECTIONS", Right),
                ("TASKS", Right),
                ("IDLE", Right),
                ("ACTIVATED", Right),
                ("CLIENT ID", Left),
            ],
            &instances,
        ));
    }
    text
}

fn worker(worker: &Value) -> Vec<String> {
    let process = worker.get("process");
    let figure = |name: &str| process.and_then(|process| process.get(name));
    let error = worker.get("error").and_then(Value::as_str);
    let of_namespaces = |name: &str| -> String {
        let namespaces = worker.get("namespaces").and_then(Value::as_object);
        match namespaces {
            Some(namespaces) => namespaces
                .values()
                .filter_map(|counts| counts.get(name).and_then(Value::as_u64))
                .fold(0_u64, u64::saturating_add)
                .to_string(),
            None => "-".to_owned(),
        }
    };
    vec![
        cell(worker.get("clientId")),
        error.map_or_else(|| state(worker), |error| format!("no answer: {error}")),
        match worker.get("instances").and_then(Value::as_array) {
            Some(instances) => instances.len().to_string(),
            None => "-".to_owned(),
        },
        of_namespaces("activations"),
        of_namespaces("evictions"),
        cell(worker.get("leaseFlaps")),
        cell(worker.get("reregistrations")),
        millis(figure("uptimeMs")),
        figure("rssBytes")
            .and_then(Value::as_u64)
            .map_or_else(|| "-".to_owned(), bytes),
        match figure("cpuPercent").and_then(Value::as_f64) {
            Some(percent) => format!("{percent:.0}%"),
            None => "-".to_owned(),
        },
        cell(worker.get("advertiseUrl")),
    ]
}

fn instance(worker: &Value, row: &Value, now: SystemTime) -> Vec<String> {
    vec![
        cell(row.get("namespace")),
        cell(row.get("id")),
        cell(row.get("connections")),
        cell(row.get("tasks")),
        millis(row.get("idleMs")),
        match row.get("activatedAt").and_then(Value::as_u64) {
            Some(at) => ago(now, at),
            None => "cold".to_owned(),
        },
        cell(worker.get("clientId")),
    ]
}

fn millis(value: Option<&Value>) -> String {
    match value.and_then(Value::as_u64) {
        Some(millis) => duration(Duration::from_millis(millis)),
        None => "-".to_owned(),
    }
}
