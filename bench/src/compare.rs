//! Several servers under the same load, in turns.

use std::{process, time::Duration};

use crate::{
    Result,
    load::{Load, Report},
    proc,
    server::Server,
};

/// One server's turn under load.
pub struct Sample {
    /// What the load generator saw.
    pub report: Report,
    /// CPU time of the server during the turn.
    pub server_cpu: Duration,
    /// CPU time of the load generator during the turn.
    pub client_cpu: Duration,
}

impl Sample {
    /// Runs `turn` and notes what it costs both sides.
    ///
    /// # Errors
    /// When the turn fails or any of its answers was not 200.
    pub fn take(server: &Server, turn: impl FnOnce() -> std::io::Result<Report>) -> Result<Self> {
        let before = (
            proc::cpu_time(server.pid())?,
            proc::cpu_time(process::id())?,
        );
        let report = turn()?;
        let after = (
            proc::cpu_time(server.pid())?,
            proc::cpu_time(process::id())?,
        );
        if report.failed() > 0 {
            let (failed, answered) = (report.failed(), report.answered());
            let name = server.role().name();
            return Err(format!("{name}: {failed} of {answered} answers were not 200").into());
        }
        Ok(Self {
            report,
            server_cpu: after.0 - before.0,
            client_cpu: after.1 - before.1,
        })
    }

    /// CPU time of the server per answer, in microseconds: unlike a rate, hardly moved by a noisy machine.
    pub fn server_micros_per_request(&self) -> f64 {
        self.server_cpu.as_secs_f64() * 1e6 / self.report.answered() as f64
    }

    /// One line of a bench's table.
    pub fn print(&self, label: &str) {
        let Self { report, .. } = self;
        let micros = |quantile| report.latency(quantile).as_secs_f64() * 1e6;
        let elapsed = report.elapsed().as_secs_f64();
        println!(
            "{label:<16} {:>9.0} req/s   p50 {:>7.0} us   p99 {:>7.0} us   max {:>7.0} us   \
             server {:>6.2} us/req, {:>3.0} % cpu   client {:>3.0} % cpu",
            report.rate(),
            micros(0.5),
            micros(0.99),
            micros(1.0),
            self.server_micros_per_request(),
            100.0 * self.server_cpu.as_secs_f64() / elapsed,
            100.0 * self.client_cpu.as_secs_f64() / elapsed,
        );
    }
}

/// Loads each server for `turn` in every round, the order reversed from round to round so that a drift of the machine
/// favours none. The result has one row per server and one sample per round.
///
/// # Errors
/// As [`Sample::take`].
pub fn interleave(
    contestants: &[(Server, Load)],
    rounds: usize,
    turn: Duration,
) -> Result<Vec<Vec<Sample>>> {
    // Every id is live and every allocator warm before the first round counts.
    for (server, load) in contestants {
        Sample::take(server, || load.run_once())?;
        Sample::take(server, || load.run_for(turn / 4))?;
    }
    let mut rows: Vec<Vec<Sample>> = contestants.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..contestants.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let (server, load) = &contestants[index];
            let sample = Sample::take(server, || load.run_for(turn))?;
            sample.print(server.role().name());
            rows[index].push(sample);
        }
    }
    Ok(rows)
}

/// The median over rounds of `value` of one row divided by that of another, taken within each round.
pub fn median_ratio(above: &[Sample], below: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    median(
        above
            .iter()
            .zip(below)
            .map(|(above, below)| value(above) / value(below)),
    )
}

/// The middle of `values`, or the mean of the two middle ones; NaN of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_not_moved_by_an_outlier() {
        assert_eq!(median([1.0, 900.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 900.0]), 3.0);
    }
}
