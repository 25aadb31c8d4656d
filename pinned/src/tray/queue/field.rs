//! The queue as a field of its tray.

use std::collections::VecDeque;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::PersistentQueue;
use super::entry::{self, Stored};
use super::item::Item;
use super::keyed::Keyed;
use crate::error::BoxError;
use crate::tray::entries::EntryText;
use crate::tray::field::{
    Changes, DeclaredField, Field, Hydrated, Keepable, KeyedAdmission, KeyedCount,
};

impl<T: Serialize + DeserializeOwned + Send + 'static> PersistentQueue<T> {
    fn read(&mut self, text: EntryText) -> Result<Item<T>, BoxError> {
        let item = Item::stored(text, self.next_serial)?;
        self.next_serial += 1;
        Ok(item)
    }

    fn texts(&self, from: usize, len: usize) -> impl ExactSizeIterator<Item = &EntryText> {
        self.items.range(from..from + len).map(|item| &item.text)
    }
}

impl<T: Keepable> DeclaredField for PersistentQueue<T> {
    fn declared() -> Self {
        Self::declared()
    }

    fn as_field(&mut self) -> &mut dyn Field {
        self
    }
}

impl<T: Serialize + DeserializeOwned + Send + 'static> Field for PersistentQueue<T> {
    fn hydrate(&mut self, stored: Option<&RawValue>) -> Result<Hydrated, BoxError> {
        let Some(stored) = stored else {
            return Ok(Hydrated::default());
        };
        let stored = Stored::parse(stored)?;
        // T6.5: what was taken when the process ended is back, and the row says so.
        self.changed = !stored.taken.is_empty();
        let mut items = VecDeque::new();
        for text in stored.taken.into_iter().chain(stored.items) {
            items.push_back(self.read(text)?);
        }
        self.layout.head = items.len();
        self.layout.tail = stored.tail.len();
        for text in stored.tail {
            items.push_back(self.read(text)?);
        }
        if let Some((from, _)) = stored.chunks {
            self.layout.first = from;
        }
        self.items = items;
        Ok(Hydrated {
            chunks: stored.chunks,
        })
    }

    /// The chunks come in their order, after the rest.
    fn hydrate_chunk(&mut self, _chunk: u64, stored: &RawValue) -> Result<(), BoxError> {
        let stored: Vec<Box<RawValue>> = serde_json::from_str(stored.get())?;
        let place = self.items.len() - self.layout.tail;
        self.layout.lens.push_back(stored.len());
        let tail = self.items.split_off(place);
        for text in entry::texts(stored) {
            let item = self.read(text)?;
            self.items.push_back(item);
        }
        self.items.extend(tail);
        Ok(())
    }

    fn changes(&mut self) -> Result<Changes, BoxError> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        if !self.changed {
            return Ok(Changes::default());
        }
        let layout = &self.layout;
        let chunks = (!layout.lens.is_empty()).then(|| (layout.first, layout.next()));
        let entry = entry::render(
            self.taken.iter().map(|held| &held.text),
            self.texts(0, layout.head),
            chunks,
            self.texts(self.items.len() - layout.tail, layout.tail),
        );
        let (written, dropped) = self.undo.layout.changed(layout);
        let places = layout.chunks_from(written.start);
        let written = written.zip(places).map(|(number, (from, len))| {
            let text = entry::list(self.texts(from, len));
            (number, Some(text.into()))
        });
        let dropped = dropped.map(|number| (number, None));
        Ok(Changes {
            entry: Some(entry),
            chunks: written.chain(dropped).collect(),
        })
    }

    fn commit(&mut self) {
        self.undo.forget();
        if std::mem::take(&mut self.changed)
            && let Some(mirror) = &self.mirror
        {
            mirror.follow(&*self);
        }
    }

    fn rollback(&mut self) -> Result<(), BoxError> {
        self.refused = None;
        self.keyed = None;
        if self.changed {
            self.undo_all()?;
            self.changed = false;
        }
        Ok(())
    }

    fn commit_takes(&mut self) {
        self.forget_takes();
    }

    fn return_takes(&mut self) -> Result<(), BoxError> {
        self.untake(self.taken.len())?;
        self.refused.take().map_or(Ok(()), Err)
    }

    fn begin_keyed(&mut self, admission: &KeyedAdmission) {
        self.keyed = Some(Keyed::new(admission.clone()));
    }

    fn end_keyed(&mut self) -> KeyedCount {
        self.keyed.take().map(Keyed::into_count).unwrap_or_default()
    }
}
