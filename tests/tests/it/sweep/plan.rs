//! What is run: a seed, a lane, and where it crashes.

use std::fmt;
use std::str::FromStr;

use super::mutant::Mutant;

/// How rows reach the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// The writes of a segment, and what has gathered meanwhile, are one operation.
    Batch,
    /// Every row write is an operation, and a crash point, of its own (S2.11).
    Singles,
}

/// One run. Shown as `<seed>:<lane>:<crash points>`, with `:faults` after it where the store fails now and then.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) lane: Lane,
    /// The operations before which the process crashes, each in one of its lives.
    pub(super) crashes: Vec<u64>,
    pub(super) faults: bool,
    pub(super) mutant: Option<Mutant>,
}

impl Lane {
    pub(super) const ALL: [Self; 2] = [Self::Batch, Self::Singles];
}

impl Plan {
    pub(super) fn new(seed: u64, lane: Lane) -> Self {
        Self {
            seed,
            lane,
            crashes: Vec::new(),
            faults: false,
            mutant: None,
        }
    }

    pub(super) fn crashing(&self, crashes: impl Into<Vec<u64>>) -> Self {
        Self {
            crashes: crashes.into(),
            ..self.clone()
        }
    }

    pub(super) fn faulty(&self) -> Self {
        Self {
            faults: true,
            ..self.clone()
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane = match self.lane {
            Lane::Batch => "batch",
            Lane::Singles => "singles",
        };
        let crashes: Vec<String> = self.crashes.iter().map(ToString::to_string).collect();
        write!(f, "{}:{lane}:{}", self.seed, crashes.join(","))?;
        f.write_str(if self.faults { ":faults" } else { "" })
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unreadable = || format!("no run is called {text:?}, but for instance 7:singles:12,80");
        let mut parts = text.split(':');
        let seed = parts.next().and_then(|seed| seed.parse().ok());
        let lane = match parts.next() {
            Some("batch") => Lane::Batch,
            Some("singles") => Lane::Singles,
            _ => return Err(unreadable()),
        };
        let crashes = parts.next().unwrap_or_default().split(',');
        let crashes: Option<Vec<u64>> = crashes
            .filter(|point| !point.is_empty())
            .map(|point| point.parse().ok())
            .collect();
        let plan =
            Self::new(seed.ok_or_else(unreadable)?, lane).crashing(crashes.ok_or_else(unreadable)?);
        match parts.next() {
            None => Ok(plan),
            Some("faults") => Ok(plan.faulty()),
            Some(_) => Err(unreadable()),
        }
    }
}
