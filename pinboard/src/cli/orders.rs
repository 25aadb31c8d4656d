//! `pinboard drain`, `undrain` and `wind-down`.

use std::time::Duration;

use pinned_wire::registry::{Deadline, DrainOrder, UndrainOrder, WindDownOrder};
use serde_json::Value;

use super::CliError;
use super::format::duration;
use super::remote::Node;

/// What the server answered, and the same for people.
pub(super) type Answer = (Value, String);

pub(super) async fn drain(
    node: &Node,
    client_id: String,
    deadline: Option<Duration>,
) -> Result<Answer, CliError> {
    let order = DrainOrder {
        client_id,
        deadline: Deadline(deadline),
    };
    let answer = node.order("/registry/drain", &order, true).await?;
    let client_id = super::table::plain(&order.client_id);
    let text = match deadline {
        None => format!(
            "cordoned {client_id}: it takes no new ids until `pinboard undrain {client_id}`\n"
        ),
        Some(asked) => {
            // The registry grants one lease time at least, and says what it has granted.
            let granted = answer.get("drainDeadline").and_then(Value::as_f64);
            let granted = granted.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let left = granted.unwrap_or(asked);
            let why = if left > asked {
                " (one lease time, the least there is)"
            } else {
                ""
            };
            format!(
                "draining {client_id}: it must be empty within {}{why}\n",
                duration(left)
            )
        }
    };
    Ok((answer, text))
}

pub(super) async fn undrain(node: &Node, client_id: String) -> Result<Answer, CliError> {
    let order = UndrainOrder { client_id };
    let answer = node.order("/registry/undrain", &order, true).await?;
    let client_id = super::table::plain(&order.client_id);
    Ok((answer, format!("{client_id} takes new ids again\n")))
}

pub(super) async fn wind_down(node: &Node, order: WindDownOrder) -> Result<Answer, CliError> {
    let answer = node.order("/registry/wind_down", &order, false).await?;
    let what = match &order.id {
        Some(id) => format!("{}/{id}", order.namespace),
        None => format!("any id of {}", order.namespace),
    };
    let within = match order.deadline.0 {
        None => "it may stay".to_owned(),
        Some(Duration::ZERO) => "it has one lease time to let go".to_owned(),
        Some(left) => format!(
            "it has {} (no less than one lease time) to let go",
            duration(left)
        ),
    };
    let text = match answer.get("queued") {
        Some(Value::Bool(true)) => format!("told the holder of {what}: {within}\n"),
        Some(Value::Number(ids)) if ids.as_u64() != Some(0) => {
            let what = if ids.as_u64() == Some(1) { "id" } else { "ids" };
            format!(
                "told the holders of {ids} {what} of {}: {within}\n",
                order.namespace
            )
        }
        _ => format!("nobody holds {what}\n"),
    };
    Ok((answer, text))
}
