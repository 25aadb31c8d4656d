//! What the process itself costs, for the stats (W10.3).

use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// The process, since its worker was made.
pub(super) struct Process {
    started: Instant,
    last: Mutex<Option<Reading>>,
}

#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    cpu: Duration,
}

impl Process {
    pub(super) fn new(started: Instant) -> Self {
        Self {
            started,
            last: Mutex::new(None),
        }
    }

    /// The process's part of the stats; the share of a processor covers the time since the last read, and the first
    /// read says 0.
    pub(super) fn stats(&self, now: Instant) -> Value {
        let mut stats = Map::new();
        let uptime = now.saturating_duration_since(self.started).as_millis();
        stats.insert(
            "uptimeMs".into(),
            json!(u64::try_from(uptime).unwrap_or(u64::MAX)),
        );
        if let Some(usage) = usage() {
            stats.insert("rssBytes".into(), json!(usage.rss_bytes));
            stats.insert("cpuPercent".into(), json!(self.cpu_percent(now, usage.cpu)));
        }
        Value::Object(stats)
    }

    fn cpu_percent(&self, now: Instant, cpu: Duration) -> f64 {
        let last = self.last.lock().replace(Reading { at: now, cpu });
        let Some(last) = last else { return 0.0 };
        let wall = now.saturating_duration_since(last.at).as_secs_f64();
        if wall > 0.0 {
            cpu.saturating_sub(last.cpu).as_secs_f64() / wall * 100.0
        } else {
            0.0
        }
    }
}

struct Usage {
    rss_bytes: u64,
    cpu: Duration,
}

#[cfg(target_os = "linux")]
fn usage() -> Option<Usage> {
    let stat = procfs::process::Process::myself().ok()?.stat().ok()?;
    let ticks = stat.utime.checked_add(stat.stime)?;
    Some(Usage {
        rss_bytes: stat.rss.checked_mul(procfs::page_size())?,
        cpu: Duration::from_secs_f64(ticks as f64 / procfs::ticks_per_second() as f64),
    })
}

#[cfg(not(target_os = "linux"))]
fn usage() -> Option<Usage> {
    None
}
