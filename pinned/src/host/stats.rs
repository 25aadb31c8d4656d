//! Rows for `/_pinned/stats` (W10.3).

use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::core::Host;
use super::record::Record;
use crate::api::seam::TurnKind;

impl Host {
    /// One row for every record, cold ones too.
    pub(crate) fn rows(&self) -> Vec<Value> {
        self.directory.records().iter().map(row).collect()
    }
}

fn row(record: &Arc<Record>) -> Value {
    let mut row = extra(record);
    let stats = record.stats();
    let millis =
        |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    // Core fields go in last: a hook never replaces them (H15.3).
    row.insert("namespace".into(), json!(&*record.host.namespace));
    row.insert("id".into(), json!(record.id()));
    row.insert("connections".into(), json!(stats.connections));
    row.insert("tasks".into(), json!(stats.tasks));
    row.insert("idleMs".into(), json!(millis(stats.idle)));
    row.remove("activatedAt");
    if let Some(at) = stats.activated_at {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        row.insert("activatedAt".into(), json!(millis(since)));
    }
    Value::Object(row)
}

/// What the instance's own hook adds; nothing without one, or while no shared turn is free.
fn extra(record: &Arc<Record>) -> Map<String, Value> {
    let hook = record.host.blueprint.stats;
    // A turn like any other: a handler that begins meanwhile waits for it instead of finding the value locked.
    let Some(turn) = record.take_free_turn(TurnKind::Shared) else {
        return Map::new();
    };
    let look = std::panic::AssertUnwindSafe(|| hook(&turn.value));
    let extra = std::panic::catch_unwind(look).unwrap_or_else(|_| {
        tracing::error!(
            target: "pinned::host",
            instance_id = record.id(),
            namespace = &*record.host.namespace,
            "the stats hook panicked"
        );
        None
    });
    record.finish_work(None, Some(turn), false);
    match extra {
        Some(Ok(Value::Object(extra))) => extra,
        None | Some(Ok(Value::Null)) => Map::new(),
        Some(Ok(other)) => Map::from_iter([("stats".to_owned(), other)]),
        Some(Err(error)) => {
            tracing::error!(
                target: "pinned::host",
                instance_id = record.id(),
                namespace = &*record.host.namespace,
                %error,
                "the stats hook's value is no JSON"
            );
            Map::new()
        }
    }
}
