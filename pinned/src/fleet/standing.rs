//! How a worker stands with the control plane, for people.

use std::sync::Arc;

use tokio::sync::watch;

/// What came of the last attempt to register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There was none yet, or it was told to come again later and has not tried often enough to be worth a word.
    #[default]
    Pending,
    /// It failed, for this reason.
    Refused(Arc<str>),
    Registered,
}

/// The latest standing, and who waits for the next.
#[derive(Default)]
pub(super) struct Standings(watch::Sender<Standing>);

impl Standings {
    pub(super) fn refused(&self, why: &str) {
        self.set(Standing::Refused(why.into()));
    }

    pub(super) fn registered(&self) {
        self.set(Standing::Registered);
    }

    fn set(&self, standing: Standing) {
        self.0.send_if_modified(|known| {
            let changed = *known != standing;
            *known = standing;
            changed
        });
    }

    pub(super) fn watch(&self) -> watch::Receiver<Standing> {
        self.0.subscribe()
    }

    /// Why the last attempt failed; `None` when it did not.
    pub(super) fn refusal(&self) -> Option<Arc<str>> {
        match &*self.0.borrow() {
            Standing::Refused(why) => Some(Arc::clone(why)),
            Standing::Pending | Standing::Registered => None,
        }
    }
}

/// Tells people why a worker does not come up, until it does.
#[derive(Default)]
pub(crate) struct Teller {
    told: Option<Arc<str>>,
}

impl Teller {
    /// What there is to say of `standing`.
    pub(crate) fn line(&mut self, standing: &Standing) -> Option<String> {
        match standing {
            Standing::Pending => None,
            Standing::Refused(why) if self.told.as_ref() == Some(why) => None,
            Standing::Refused(why) => {
                self.told = Some(Arc::clone(why));
                Some(format!(
                    "pinned: not registered with the control plane, which is tried again: {why}"
                ))
            }
            Standing::Registered => {
                self.told.take()?;
                Some("pinned: registered with the control plane".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_when_it_is_another_than_before_and_so_is_the_end() {
        let mut teller = Teller::default();
        let mut said = |standing| teller.line(&standing);
        let refused = |why: &str| Standing::Refused(why.into());
        assert_eq!(said(Standing::Pending), None);
        let first = said(refused("connection refused")).expect("a line");
        assert!(
            first.ends_with("tried again: connection refused"),
            "{first}"
        );
        assert_eq!(said(refused("connection refused")), None);
        assert!(said(refused("401")).is_some());
        assert_eq!(
            said(Standing::Registered).as_deref(),
            Some("pinned: registered with the control plane")
        );
        assert_eq!(said(Standing::Registered), None, "nothing was wrong");
    }
}
