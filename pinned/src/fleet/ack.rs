//! Reading the registry's answers, whatever they are (W2.5, W3.6, W4.3).

use std::time::Duration;

use serde_json::{Map, Value};

use super::metrics::control_failed;

/// A body that is not an object counts as an empty one.
pub(super) fn object(body: &[u8]) -> Map<String, Value> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

/// `expiresInMs`: a number from 0.
pub(super) fn term(ack: &Map<String, Value>) -> Option<Duration> {
    let milliseconds = ack.get("expiresInMs")?.as_f64()?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

pub(super) fn text<'a>(ack: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    ack.get(name)?.as_str()
}

pub(super) fn truthy(ack: &Map<String, Value>, name: &str) -> bool {
    match ack.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(Value::Bool(true)) => true,
    }
}

/// The duplicates of a register ack, `(ns, id)`; what is malformed is counted and skipped (W3.8).
pub(super) fn duplicates(ack: &Map<String, Value>) -> Vec<(&str, &str)> {
    let malformed = |what: &Value| {
        control_failed("register", "malformed_duplicates");
        tracing::error!(target: "pinned::fleet", duplicates = %what, "malformed duplicates in a register ack");
    };
    match ack.get("duplicates") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(entries)) => entries
            .iter()
            .filter_map(|entry| {
                let pair = entry
                    .get("ns")
                    .and_then(Value::as_str)
                    .zip(entry.get("id").and_then(Value::as_str));
                if pair.is_none() {
                    malformed(entry);
                }
                pair
            })
            .collect(),
        Some(other) => {
            malformed(other);
            Vec::new()
        }
    }
}
