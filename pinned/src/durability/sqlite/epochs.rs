//! The epochs that are known to stand in the file.

use hashbrown::HashMap;

use crate::durability::InstanceKey;

/// How many are remembered; then they are read anew.
const MOST: usize = 1 << 16;

/// Epochs that this connection has read or written. They are good for as long as it alone writes to the file, which each
/// transaction asks first ([`Epochs::stand_at`]): what another connection has committed makes all of them unknown.
#[derive(Default)]
pub(super) struct Epochs {
    /// What SQLite calls the state of the file (`PRAGMA data_version`): it changes when another connection commits.
    version: Option<i64>,
    known: HashMap<InstanceKey, i64>,
}

impl Epochs {
    /// The transaction that has just begun finds the file at `version`.
    pub(super) fn stand_at(&mut self, version: i64) {
        if self.version != Some(version) {
            self.known.clear();
            self.version = Some(version);
        }
    }

    /// Nothing is known: a transaction did not come to its end, and took with it what it had written.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    pub(super) fn get(&self, instance: &InstanceKey) -> Option<i64> {
        self.known.get(instance).copied()
    }

    /// It stands in the file, or will once the transaction that is open has come to its end.
    pub(super) fn remember(&mut self, instance: &InstanceKey, epoch: i64) {
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(instance.clone(), epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_known_until_another_writes_or_a_transaction_breaks_off() {
        let blue = InstanceKey::new("/rooms", "blue");
        let mut epochs = Epochs::default();
        epochs.stand_at(1);
        epochs.remember(&blue, 7);
        epochs.stand_at(1);
        assert_eq!(epochs.get(&blue), Some(7));
        epochs.stand_at(2);
        assert_eq!(epochs.get(&blue), None);
        epochs.remember(&blue, 8);
        epochs.forget();
        assert_eq!(epochs.get(&blue), None);
    }

    #[test]
    fn no_more_are_known_than_fit() {
        let mut epochs = Epochs::default();
        for n in 0..=MOST {
            epochs.remember(&InstanceKey::new("/rooms", n.to_string()), 1);
        }
        assert_eq!(epochs.known.len(), 1);
    }
}
