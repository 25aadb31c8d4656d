//! `pinboard health` and `pinboard overview`: whatever facts the server tells, one a line.

use serde_json::Value;

use super::format::timestamp;

/// Members one below the other, nested ones indented, values in one column; ends with a line break.
pub(super) fn show(answer: &Value) -> String {
    let mut lines = Vec::new();
    collect(answer, 0, &mut lines);
    let width = lines.iter().map(|(name, _)| name.chars().count()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for (name, value) in lines {
        let line = format!("{name:width$}  {value}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn collect(value: &Value, depth: usize, lines: &mut Vec<(String, String)>) {
    let members = match value {
        Value::Object(members) => members,
        other => {
            lines.push((String::new(), scalar(other)));
            return;
        }
    };
    for (label, value) in members {
        let name = format!("{}{}", "  ".repeat(depth), spelled(label));
        match value {
            Value::Object(inner) if inner.is_empty() => lines.push((name, "none".to_owned())),
            Value::Object(_) => {
                lines.push((name, String::new()));
                collect(value, depth + 1, lines);
            }
            Value::Array(items) if items.is_empty() => lines.push((name, "none".to_owned())),
            Value::Array(items) if items.iter().all(|item| !item.is_object()) => {
                let items: Vec<String> = items.iter().map(scalar).collect();
                lines.push((name, items.join(", ")));
            }
            Value::Array(items) => {
                lines.push((name, String::new()));
                for item in items {
                    match of_namespace(item, depth + 1) {
                        Some(line) => lines.push(line),
                        None => collect(item, depth + 1, lines),
                    }
                }
            }
            other if is_moment(label) => lines.push((name, moment(other))),
            other => lines.push((name, scalar(other))),
        }
    }
}

/// What is counted of one namespace, on one line; `None` when an item is something else.
fn of_namespace(item: &Value, depth: usize) -> Option<(String, String)> {
    let namespace = item.get("namespace")?.as_str()?;
    let count = item.get("instances")?.as_u64()?;
    let env = item.get("env").and_then(Value::as_str);
    // Everything is in the same one, in single mode.
    let env = match env.filter(|env| *env != "*") {
        Some(env) => format!(" in {env}"),
        None => String::new(),
    };
    let name = super::table::plain(&format!("{namespace}{env}"));
    Some((format!("{}{name}", "  ".repeat(depth)), count.to_string()))
}

/// Whether a member tells a moment, in milliseconds since the Unix epoch.
fn is_moment(name: &str) -> bool {
    name == "until" || name.ends_with("At")
}

fn moment(value: &Value) -> String {
    value.as_u64().map_or_else(|| scalar(value), timestamp)
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => super::table::plain(text),
        Value::Number(number) if !number.is_u64() && !number.is_i64() => {
            let rounded = format!("{:.3}", number.as_f64().unwrap_or_default());
            rounded
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
        }
        other => other.to_string(),
    }
}

/// `openConnections` as `open connections`; names that are not ours to respell, such as `/counters` or `no-backends`, as they are.
fn spelled(name: &str) -> String {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return super::table::plain(name);
    }
    let mut label = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            label.push(' ');
        }
        label.push(c.to_ascii_lowercase());
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_facts_are_indented_below_their_name() {
        let answer = serde_json::json!({
            "workers": 2,
            "placementQuarantine": { "active": false, "until": null },
            "instances": { "/counters": 7, "/a\x1b[0m": 1 },
            "namespaces": [
                {"namespace": "/a", "env": "*", "instances": 3},
                {"namespace": "/b", "env": "staging", "instances": 0},
            ],
            "resolutions": {},
            "nodes": ["a", "b"],
            "pingMs": 0.05502,
            "startedAt": 0,
        });
        let expected = [
            "instances",
            "  /a\u{fffd}[0m              1",
            "  /counters           7",
            "namespaces",
            "  /a                  3",
            "  /b in staging       0",
            "nodes                 a, b",
            "ping ms               0.055",
            "placement quarantine",
            "  active              no",
            "  until               -",
            "resolutions           none",
            "started at            1970-01-01T00:00:00.000Z",
            "workers               2",
            "",
        ]
        .join("\n");
        assert_eq!(show(&answer), expected);
    }
}
