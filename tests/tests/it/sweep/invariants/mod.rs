//! The contract, checked on the rows of the disk (S5).
//!
//! One segment is one write of a row, with every store. So what the specification allows where an admission or an
//! acknowledgement is torn apart (S5.6, S5.13, S5.14, S5.16, S5.17) is not allowed here.

mod lane;
mod relay;
mod whole;

use std::fmt;

use super::image::Image;
use super::ledger::Ledger;

/// A broken promise.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Violation {
    /// The item of the specification that says so.
    pub(super) number: &'static str,
    pub(super) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.number, self.what)
    }
}

/// What is broken.
#[derive(Default)]
pub(super) struct Findings(Vec<Violation>);

impl Findings {
    pub(super) fn require(
        &mut self,
        number: &'static str,
        holds: bool,
        what: impl FnOnce() -> String,
    ) {
        if !holds {
            let what = what();
            self.0.push(Violation { number, what });
        }
    }
}

/// What must hold of the disk at any time.
pub(super) fn always(image: &Image, ledger: &Ledger) -> Vec<Violation> {
    let mut findings = Findings::default();
    whole::always(image, ledger, &mut findings);
    for (name, row) in image.lanes() {
        lane::always(name, row, ledger, &mut findings);
    }
    relay::always(image, ledger, &mut findings);
    findings.0
}

/// What must hold besides once nothing is left to do (S5.22 to S5.24).
pub(super) fn drained(image: &Image, ledger: &Ledger) -> Vec<Violation> {
    let mut findings = Findings::default();
    whole::drained(image, &mut findings);
    for (name, row) in image.lanes() {
        lane::drained(name, row, ledger, &mut findings);
    }
    relay::drained(image, ledger, &mut findings);
    findings.0
}
