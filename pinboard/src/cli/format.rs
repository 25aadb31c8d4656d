//! Durations, sizes and moments, as people read them.

use std::time::{Duration, SystemTime};

use serde_json::Value;

/// Two units at most: `850ms`, `12s`, `3m 20s`, `2h 5m`, `4d 1h`.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let two = |large: u64, unit: &str, small: u64, rest: &str| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit} {small}{rest}"),
    };
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{seconds}s"),
        60..3_600 => two(seconds / 60, "m", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// How long ago a moment was, in milliseconds since the Unix epoch.
pub(super) fn ago(now: SystemTime, at_ms: u64) -> String {
    // Clocks of other machines may be a little ahead.
    let ago = now.duration_since(moment(at_ms)).unwrap_or_default();
    if ago < Duration::from_secs(1) {
        "now".to_owned()
    } else {
        format!("{} ago", duration(ago))
    }
}

/// A number of bytes.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A moment in milliseconds since the Unix epoch as `2026-01-31T12:00:00.000Z`.
pub(super) fn timestamp(at_ms: u64) -> String {
    humantime::format_rfc3339_millis(moment(at_ms)).to_string()
}

/// No later than the year 9999, beyond which moments have no agreed form.
fn moment(at_ms: u64) -> SystemTime {
    const LATEST: u64 = 253_402_300_799_999;
    SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms.min(LATEST))
}

/// A value in one cell; what is missing is a dash.
pub(super) fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A list of texts in one cell.
pub(super) fn list(value: Option<&Value>) -> String {
    let texts = value.and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = texts.filter_map(Value::as_str).collect();
    if texts.is_empty() {
        "-".to_owned()
    } else {
        texts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        for (millis, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (59_999, "59s"),
            (200_000, "3m 20s"),
            (7_200_000, "2h"),
            (90_061_000, "1d 1h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn moments_are_told_in_utc() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"),
            (1_767_225_599_999, "2025-12-31T23:59:59.999Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(timestamp(millis), text);
        }
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert_eq!(ago(now, 40_000), "1m ago");
        assert_eq!(ago(now, 500_000), "now");
        assert_eq!(ago(now, u64::MAX), "now");
    }

    #[test]
    fn sizes_have_the_largest_fitting_unit() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
