use std::{fs, net::SocketAddr, process::Command, time::Duration};

use tempfile::TempDir;

use crate::Result;

/// `wrk`, over keep-alive connections, with a `POST` to each of so many ids in turn.
pub struct Wrk {
    connections: usize,
    script: std::path::PathBuf,
    _folder: TempDir,
}

/// What a run of it counted.
#[derive(Clone, Copy, Debug)]
pub struct WrkReport {
    /// Answers per second.
    pub rate: f64,
    /// The median latency.
    pub p50: Duration,
    /// The latency that 99 of 100 answers did not exceed.
    pub p99: Duration,
}

impl Wrk {
    /// A load on `/counters/<id>/increment` for `ids` ids.
    ///
    /// # Errors
    /// When its script cannot be written.
    pub fn new(connections: usize, ids: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let script = folder.path().join("ids.lua");
        fs::write(
            &script,
            format!(
                "local requests, next = {{}}, 0\n\
                 init = function()\n\
                 for i = 1, {ids} do requests[i] = wrk.format('POST', '/counters/user-' .. i .. '/increment') end\n\
                 end\n\
                 request = function() next = next % {ids} + 1 return requests[next] end\n\
                 done = function(summary, latency, requests)\n\
                 local e = summary.errors\n\
                 io.write(string.format('RESULT %d %d %d %d %d\\n', summary.requests, summary.duration,\n\
                 latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))\n\
                 end\n"
            ),
        )?;
        Ok(Self {
            connections,
            script,
            _folder: folder,
        })
    }

    /// Runs it against `addr`.
    ///
    /// # Errors
    /// When `wrk` is not installed, or any answer is not a success.
    pub fn run(&self, addr: SocketAddr, duration: Duration) -> Result<WrkReport> {
        let output = Command::new("wrk")
            .args(["--threads", "1", "--latency"])
            .args(["--connections", &self.connections.to_string()])
            .args(["--duration", &format!("{}s", duration.as_secs().max(1))])
            .arg("--script")
            .arg(&self.script)
            .arg(format!("http://{addr}"))
            .output()
            .map_err(|error| format!("wrk: {error}; on Debian: apt-get install wrk"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<u64> = text
            .lines()
            .find_map(|line| line.strip_prefix("RESULT "))
            .ok_or_else(|| format!("wrk said {text}"))?
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let [requests, micros, p50, p99, errors] = numbers[..] else {
            return Err(format!("wrk said {text}").into());
        };
        if errors > 0 {
            return Err(format!("{errors} of {requests} answers were errors: {text}").into());
        }
        Ok(WrkReport {
            rate: requests as f64 / (micros as f64 / 1e6),
            p50: Duration::from_micros(p50),
            p99: Duration::from_micros(p99),
        })
    }
}
