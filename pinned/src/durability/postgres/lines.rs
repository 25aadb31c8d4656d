//! The operations of one instance, one after the other in the order of their calls (D10.6).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::durability::InstanceKey;

/// A line of places for each instance that has any (D10.8).
#[derive(Default)]
pub(super) struct Lines {
    lines: Mutex<HashMap<InstanceKey, VecDeque<Waiter>>>,
}

/// The first in line has its turn.
struct Waiter {
    number: u64,
    called: Option<oneshot::Sender<()>>,
}

/// A place in line. Dropping it leaves the line.
pub(super) struct Place {
    lines: Arc<Lines>,
    instance: InstanceKey,
    number: u64,
    turn: Option<oneshot::Receiver<()>>,
}

impl Lines {
    /// Enters the line of `instance` at its end, now.
    pub(super) fn enter(self: &Arc<Self>, instance: &InstanceKey) -> Place {
        let mut lines = self.lines.lock();
        let line = lines.entry(instance.clone()).or_default();
        let number = line.back().map_or(0, |last| last.number + 1);
        let (called, turn) = if line.is_empty() {
            (None, None)
        } else {
            let (called, turn) = oneshot::channel();
            (Some(called), Some(turn))
        };
        line.push_back(Waiter { number, called });
        drop(lines);
        Place {
            lines: Arc::clone(self),
            instance: instance.clone(),
            number,
            turn,
        }
    }
}

impl Place {
    /// Whether it had its turn from the start.
    pub(super) fn is_first(&self) -> bool {
        self.turn.is_none()
    }

    /// Resolves once every earlier place has been left.
    pub(super) async fn turn(&mut self) {
        if let Some(turn) = &mut self.turn {
            // The sender is dropped unused only with this very place.
            let _ = turn.await;
            self.turn = None;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lines = self.lines.lines.lock();
        let Some(line) = lines.get_mut(&self.instance) else {
            return;
        };
        // Numbers ascend along the line.
        if let Ok(index) = line.binary_search_by_key(&self.number, |waiter| waiter.number) {
            line.remove(index);
        }
        match line.front_mut() {
            Some(first) => {
                if let Some(called) = first.called.take() {
                    // It may have just been dropped; then its own drop, which waits for this lock, calls the next one.
                    let _ = called.send(());
                }
            }
            None => {
                lines.remove(&self.instance);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    // D10.6, D10.8
    #[test]
    fn turns_come_in_the_order_of_entry_and_no_line_is_kept_without_a_place() {
        let lines = Arc::new(Lines::default());
        let room = InstanceKey::new("/rooms", "blue");
        let mut places: VecDeque<Place> = (0..4).map(|_| lines.enter(&room)).collect();
        let mut other = lines.enter(&InstanceKey::new("/rooms", "red"));
        assert!(other.turn().now_or_never().is_some(), "lines do not meet");

        places.remove(2);
        while let Some(mut first) = places.pop_front() {
            assert!(first.turn().now_or_never().is_some());
            if let Some(second) = places.front_mut() {
                assert!(second.turn().now_or_never().is_none());
            }
        }
        drop(other);
        assert!(lines.lines.lock().is_empty());
    }
}
