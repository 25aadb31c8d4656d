//! What a lease knows, and the transitions between its healths; all of it behind one lock.

use std::mem;
use std::time::Duration;

use tokio::time::Instant;

use super::hooks::Hook;
use super::settings::LeaseSettings;
use crate::domain::TaskHandle;

/// Reference default (W7.7): a few heartbeats' worth of time to finish what runs.
const DEFAULT_BUFFER: Duration = Duration::from_secs(5);

/// Which side of the last edge the lease is on.
///
/// It follows the clock by a step: whether the lease *is* healthy is computed, this says what has been made known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Health {
    Healthy,
    Unhealthy,
}

pub(super) struct State {
    pub(super) deadline: Option<Instant>,
    pub(super) ttl: Option<Duration>,
    pub(super) cap: Option<Instant>,
    pub(super) buffer: Duration,
    pub(super) flaps: u64,
    pub(super) timer: Option<TaskHandle<()>>,
    health: Health,
    /// The health that hooks and log have been told of.
    told: Health,
    /// Whether someone is telling: there is one teller at a time, so that hooks see the edges in order.
    telling: bool,
    on_unhealthy: Option<Hook>,
    on_restored: Option<Hook>,
}

/// One edge to log and to call a hook for, with no lock held.
pub(super) struct News {
    pub(super) health: Health,
    pub(super) flaps: u64,
    pub(super) hook: Option<Hook>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            deadline: None,
            ttl: None,
            cap: None,
            buffer: DEFAULT_BUFFER,
            flaps: 0,
            timer: None,
            health: Health::Healthy,
            told: Health::Healthy,
            telling: false,
            on_unhealthy: None,
            on_restored: None,
        }
    }

    /// Takes over what `settings` names, and leaves there what it replaces.
    pub(super) fn swap(&mut self, settings: &mut LeaseSettings) {
        if let Some(buffer) = &mut settings.buffer {
            mem::swap(&mut self.buffer, buffer);
        }
        for (mine, given) in [
            (&mut self.on_unhealthy, &mut settings.on_unhealthy),
            (&mut self.on_restored, &mut settings.on_restored),
        ] {
            if given.is_some() {
                mem::swap(mine, given);
            }
        }
    }

    pub(super) fn health(&self) -> Health {
        self.health
    }

    /// Passes the edge into ill health, unless it has been passed before (W7.4).
    pub(super) fn turn_unhealthy(&mut self) {
        if self.health == Health::Healthy {
            self.health = Health::Unhealthy;
            self.flaps += 1;
        }
    }

    /// Passes the edge back (W7.5).
    pub(super) fn restore(&mut self) {
        self.health = Health::Healthy;
    }

    /// Makes the caller the teller when there is something to tell and nobody tells yet.
    pub(super) fn begin_telling(&mut self) -> bool {
        let begin = !self.telling && self.told != self.health;
        self.telling |= begin;
        begin
    }

    /// What the teller has to tell next; with nothing left, its turn is over.
    pub(super) fn next_news(&mut self) -> Option<News> {
        if self.told == self.health {
            self.telling = false;
            return None;
        }
        self.told = self.health;
        let hook = match self.health {
            Health::Healthy => &self.on_restored,
            Health::Unhealthy => &self.on_unhealthy,
        };
        Some(News {
            health: self.health,
            flaps: self.flaps,
            hook: hook.clone(),
        })
    }
}
