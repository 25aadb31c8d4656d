//! What stand-ins park their callers with.

use tokio::sync::watch;

/// Lets everybody through, except while it is held.
pub(crate) struct Valve {
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Default)]
struct State {
    held: bool,
    parked: usize,
}

/// One caller that is parked, for as long as it exists.
struct Parked<'a>(&'a Valve);

impl Valve {
    pub(crate) fn new() -> Self {
        Self {
            state: watch::Sender::new(State::default()),
        }
    }

    pub(crate) fn hold(&self) {
        self.state.send_modify(|state| state.held = true);
    }

    pub(crate) fn release(&self) {
        self.state.send_modify(|state| state.held = false);
    }

    /// Returns once the valve is not held.
    pub(crate) async fn pass(&self) {
        let mut seen = self.state.subscribe();
        if !seen.borrow_and_update().held {
            return;
        }
        let _parked = Parked::new(self);
        // `self` keeps the sender.
        let _ = seen.wait_for(|state| !state.held).await;
    }

    /// Returns once somebody is parked.
    pub(crate) async fn parked(&self) {
        let mut seen = self.state.subscribe();
        let _ = seen.wait_for(|state| state.parked > 0).await;
    }
}

impl<'a> Parked<'a> {
    fn new(valve: &'a Valve) -> Self {
        valve.state.send_modify(|state| state.parked += 1);
        Self(valve)
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.parked -= 1);
    }
}
