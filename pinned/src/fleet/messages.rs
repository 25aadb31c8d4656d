//! Control messages (W5).

use std::time::Duration;

use serde_json::Value;

use super::metrics::control_failed;

/// What a message asks for: a wind-down of an instance, or its revocation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order<'a> {
    /// `None`: the one namespace that the worker has.
    pub(super) ns: Option<&'a str>,
    pub(super) id: &'a str,
    pub(super) deadline: Option<Duration>,
}

/// Applies the messages of an ack in order; the ids of those that are to be confirmed: the leading run that applied.
pub(super) fn apply(
    messages: Option<&Value>,
    mut act: impl FnMut(&Order<'_>) -> Result<(), String>,
) -> Vec<String> {
    let messages = match messages {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(messages)) => messages,
        Some(other) => {
            control_failed("control_message", "malformed_batch");
            tracing::error!(target: "pinned::fleet", messages = %other, "control messages are no list");
            return Vec::new();
        }
    };
    let mut confirmed = Vec::new();
    // Behind one that failed nothing is confirmed, so that the control plane sends all of it again (W5.2).
    let mut failed = false;
    for message in messages {
        if !message.is_object() {
            control_failed("control_message", "malformed");
            tracing::error!(target: "pinned::fleet", %message, "a control message is no object");
            continue;
        }
        match read(message).and_then(|order| act(&order)) {
            Ok(()) => {
                let id = message.get("msgId").and_then(Value::as_str);
                if let (false, Some(id)) = (failed, id) {
                    confirmed.push(id.to_owned());
                }
            }
            Err(error) => {
                failed = true;
                control_failed("control_message", "callback");
                tracing::error!(target: "pinned::fleet", %message, error, "a control message cannot be applied");
            }
        }
    }
    confirmed
}

/// W5.5, W5.6.
fn read(message: &Value) -> Result<Order<'_>, String> {
    let kind = message.get("type").and_then(Value::as_str);
    if kind != Some("wind_down") {
        return Err(format!("unknown type {kind:?}; `wind_down` is expected"));
    }
    let id = message
        .get("id")
        .and_then(Value::as_str)
        .ok_or("`id` is no string")?;
    let ns = match message.get("ns") {
        None | Some(Value::Null) => None,
        Some(Value::String(ns)) => Some(ns.as_str()),
        Some(_) => return Err("`ns` is no string".to_owned()),
    };
    let deadline = match message.get("deadline") {
        None => return Err("`deadline` is missing".to_owned()),
        Some(Value::Null) => None,
        Some(Value::Number(seconds)) => Some(after(seconds.as_f64().unwrap_or(f64::NAN))?),
        Some(_) => return Err("`deadline` is neither a number nor null".to_owned()),
    };
    Ok(Order { ns, id, deadline })
}

/// Seconds from now; what has passed is now, and what no clock reaches is as far as it goes.
fn after(seconds: f64) -> Result<Duration, String> {
    if seconds.is_finite() {
        Ok(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX))
    } else {
        Err("`deadline` is not finite".to_owned())
    }
}
