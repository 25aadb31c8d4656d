//! `pinboard events`.

use std::io::{self, Write};
use std::pin::pin;
use std::time::Duration;

use pinned_domain::Domain;
use serde_json::Value;

use super::CliError;
use super::format::{cell, list, timestamp};
use super::remote::Node;
use super::table::plain;
use super::workers::rows;

const PATH: &str = "/registry/events";
/// How often the ring is read while it is followed.
const POLL: Duration = Duration::from_millis(500);
/// How many pages are read when the ring is not followed.
const PAGES: usize = 10;
/// How soon again when the fleet does not answer.
const RETRY: Duration = Duration::from_secs(2);

/// Prints the ring after `after`, and with `follow` what comes, until `interrupt`.
///
/// # Cancel safety
///
/// What is printed is printed; a line is never cut.
pub(super) async fn show(
    node: &Node,
    after: u64,
    follow: bool,
    json: bool,
    domain: &Domain,
    interrupt: impl Future<Output = ()>,
    out: &mut (dyn Write + Send),
) -> Result<(), CliError> {
    let mut after = after;
    if !follow {
        // Page by page; the ring has few, and on a busy fleet it would never end otherwise.
        for _ in 0..PAGES {
            if !print(&page(node, after).await?, &mut after, json, out)? {
                break;
            }
        }
        return Ok(());
    }
    let mut interrupt = pin!(interrupt);
    let mut away = false;
    loop {
        let read = tokio::select! {
            biased;
            () = &mut interrupt => return Ok(()),
            read = page(node, after) => read,
        };
        let pause = match read {
            Ok(page) => {
                away = false;
                let more = print(&page, &mut after, json, out)?;
                if more { Duration::ZERO } else { POLL }
            }
            // A fleet that is being rolled is no reason to look away.
            Err(error) if error.is_transient() => {
                if !std::mem::replace(&mut away, true) {
                    tell(&error);
                }
                RETRY
            }
            Err(error) => return Err(error),
        };
        tokio::select! {
            biased;
            () = &mut interrupt => return Ok(()),
            () = domain.sleep(pause) => {}
        }
    }
}

fn tell(error: &CliError) {
    // Where nobody reads it, it is not missed.
    let _ = writeln!(io::stderr(), "pinboard: {error}; waiting for it");
}

async fn page(node: &Node, after: u64) -> Result<Value, CliError> {
    node.get(PATH, Some(&format!("after={after}"))).await
}

/// Prints a page, and moves `after` to its end; whether there may be more by now.
fn print(
    page: &Value,
    after: &mut u64,
    json: bool,
    out: &mut (dyn Write + Send),
) -> Result<bool, CliError> {
    let events = rows(page, "events");
    for event in events {
        if json {
            writeln!(out, "{event}")?;
        } else {
            writeln!(out, "{}", line(event))?;
        }
    }
    out.flush()?;
    let last = events.iter().filter_map(|event| event.get("seq")?.as_u64());
    let next = page.get("next").and_then(Value::as_u64).or(last.max());
    let before = *after;
    // The ring starts over with a store that was wiped, and its numbers with it: what it says counts, forwards or back. A page may
    // have nothing that the caller may see, and go on all the same.
    *after = next.unwrap_or(before);
    Ok(*after > before)
}

/// One event on one line.
fn line(event: &Value) -> String {
    let at = event.get("at").and_then(Value::as_u64).unwrap_or_default();
    let mut line = format!(
        "{}  {:>6}  {:<12}",
        timestamp(at),
        cell(event.get("seq")),
        cell(event.get("kind"))
    );
    let id = event.get("id").and_then(Value::as_str);
    match (id, list(event.get("namespaces"))) {
        (Some(id), namespace) => line.push_str(&format!("  {namespace}/{id}")),
        (None, namespaces) if namespaces != "-" => line.push_str(&format!("  {namespaces}")),
        _ => {}
    }
    for (name, label) in [
        ("epoch", "epoch"),
        ("clientId", "client"),
        ("sessionId", "session"),
        ("hostname", "hostname"),
        ("env", "env"),
    ] {
        match event.get(name) {
            None | Some(Value::Null) => {}
            // Everything is, in single mode.
            Some(Value::String(any)) if any == "*" => {}
            value => line.push_str(&format!("  {label} {}", cell(value))),
        }
    }
    if let Some(detail) = event.get("detail").and_then(Value::as_str) {
        line.push_str("  ");
        line.push_str(detail);
    }
    plain(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event = serde_json::json!({
            "seq": 12, "at": 1_767_225_599_999_u64, "kind": "placed", "namespaces": ["/rooms"], "id": "blue",
            "epoch": 7, "sessionId": "0f", "env": "*", "detail": "two\nlines",
        });
        assert_eq!(
            line(&event),
            "2025-12-31T23:59:59.999Z      12  placed        /rooms/blue  epoch 7  session 0f  two\u{fffd}lines"
        );
    }
}
