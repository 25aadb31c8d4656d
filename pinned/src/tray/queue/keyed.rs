//! Appends under a key (T13.7, T13.8).

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::PersistentQueue;
use super::item::Item;
use crate::tray::field::{KeyedAdmission, KeyedCount};

/// A keyed admission under way.
pub(super) struct Keyed {
    admission: KeyedAdmission,
    count: KeyedCount,
    /// Appends that are still to be dropped, because as many entries had landed before a crash; known from the first
    /// append on.
    absorb: Option<usize>,
}

impl Keyed {
    pub(super) fn new(admission: KeyedAdmission) -> Self {
        Self {
            admission,
            count: KeyedCount::default(),
            absorb: None,
        }
    }

    pub(super) fn break_rule(&mut self, rule: &'static str) {
        self.count.broken.get_or_insert(rule);
    }

    pub(super) fn into_count(self) -> KeyedCount {
        self.count
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> PersistentQueue<T> {
    /// `value` as an entry to append; `None` when it is absorbed, or must not be one.
    pub(super) fn admit(&mut self, value: T) -> Option<Item<T>> {
        let Some(keyed) = &mut self.keyed else {
            return self.make(value);
        };
        keyed.count.attempted += 1;
        if keyed.admission.ignored {
            return None;
        }
        let key = &keyed.admission.key;
        let (items, taken) = (&self.items, &self.taken);
        let absorb = keyed.absorb.get_or_insert_with(|| {
            let queued = items.iter().filter(|item| item.key.as_ref() == Some(key));
            let taken = taken.iter().filter(|held| held.key.as_ref() == Some(key));
            queued.count() + taken.count()
        });
        if *absorb > 0 {
            *absorb -= 1;
            return None;
        }
        match Item::new(value, Some(key.clone()), self.next_serial) {
            Ok(item) => {
                keyed.count.landed += 1;
                self.next_serial += 1;
                Some(item)
            }
            Err(error) => {
                self.refused.get_or_insert(error);
                None
            }
        }
    }
}
