use std::time::Duration;

/// What the connections of one run counted.
#[derive(Default)]
pub(super) struct Tally {
    failed: usize,
    /// Nanoseconds, one per answer.
    latencies: Vec<u32>,
}

impl Tally {
    pub(super) fn record(&mut self, status: u16, latency: Duration) {
        self.failed += usize::from(status != 200);
        self.latencies
            .push(latency.as_nanos().try_into().unwrap_or(u32::MAX));
    }

    pub(super) fn add(&mut self, other: Self) {
        self.failed += other.failed;
        self.latencies.extend(other.latencies);
    }
}

/// The outcome of one run of a load.
pub struct Report {
    elapsed: Duration,
    failed: usize,
    /// Nanoseconds, ascending.
    latencies: Vec<u32>,
}

impl Report {
    pub(super) fn new(tally: Tally, elapsed: Duration) -> Self {
        let Tally {
            failed,
            mut latencies,
        } = tally;
        latencies.sort_unstable();
        Self {
            elapsed,
            failed,
            latencies,
        }
    }

    /// Answers received.
    pub fn answered(&self) -> usize {
        self.latencies.len()
    }

    /// Answers whose status was not 200.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// From the first request to the last answer.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Answers per second.
    pub fn rate(&self) -> f64 {
        self.answered() as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency that `quantile` (0 to 1) of the answers did not exceed; 1 gives the longest.
    pub fn latency(&self, quantile: f64) -> Duration {
        let rank = (self.latencies.len() as f64 * quantile).ceil() as usize;
        let nanos = self.latencies.get(rank.saturating_sub(1)).copied();
        Duration::from_nanos(nanos.unwrap_or_default().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_ranks_of_the_sorted_latencies() {
        let mut tally = Tally::default();
        for micros in (1..=100).rev() {
            tally.record(
                if micros == 7 { 503 } else { 200 },
                Duration::from_micros(micros),
            );
        }
        let report = Report::new(tally, Duration::from_secs(2));
        assert_eq!(report.latency(0.5), Duration::from_micros(50));
        assert_eq!(report.latency(0.99), Duration::from_micros(99));
        assert_eq!(report.latency(1.0), Duration::from_micros(100));
        assert_eq!((report.answered(), report.failed()), (100, 1));
        assert_eq!(report.rate(), 50.0);
    }
}
