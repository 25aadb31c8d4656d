//! One entry of a queue.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::BoxError;
use crate::tray::entries::EntryText;
use crate::tray::field::{encode, encode_kept};
use crate::tray::key::Key;

/// The member of a queued object that holds the key it was admitted under (T2.3).
const ADMIT: &str = "~admit";

/// An entry with its value.
pub(super) struct Item<T> {
    pub(super) value: T,
    /// As it is stored, the key included.
    pub(super) text: EntryText,
    pub(super) key: Option<Key>,
    /// Which entry it is, whatever happens around it.
    pub(super) serial: u64,
}

/// An entry without its value, which is elsewhere or can be had from the text.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) text: EntryText,
    pub(super) key: Option<Key>,
    pub(super) serial: u64,
}

impl<T: Serialize + DeserializeOwned> Item<T> {
    pub(super) fn new(value: T, key: Option<Key>, serial: u64) -> Result<Self, BoxError> {
        let text = render(&value, key.as_ref())?;
        Ok(Self {
            value,
            text,
            key,
            serial,
        })
    }

    /// An entry as it is stored.
    pub(super) fn stored(text: EntryText, serial: u64) -> Result<Self, BoxError> {
        let (value, key) = read(&text)?;
        Ok(Self {
            value,
            text,
            key,
            serial,
        })
    }

    /// An entry that comes back.
    pub(super) fn returned(held: Held) -> Result<Self, BoxError> {
        let (value, _) = read(&held.text)?;
        Ok(Self {
            value,
            text: held.text,
            key: held.key,
            serial: held.serial,
        })
    }

    /// The text of a value that was changed in place.
    pub(super) fn encode_anew(&mut self) -> Result<(), BoxError> {
        self.text = render(&self.value, self.key.as_ref())?;
        Ok(())
    }

    pub(super) fn held(&self) -> Held {
        Held {
            text: EntryText::clone(&self.text),
            key: self.key.clone(),
            serial: self.serial,
        }
    }

    pub(super) fn into_parts(self) -> (T, Held) {
        let held = Held {
            text: self.text,
            key: self.key,
            serial: self.serial,
        };
        (self.value, held)
    }
}

impl Held {
    /// The value, made anew.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, BoxError> {
        read(&self.text).map(|(value, _)| value)
    }
}

fn render<T: Serialize + DeserializeOwned>(
    value: &T,
    key: Option<&Key>,
) -> Result<EntryText, BoxError> {
    let text = encode_kept(value)?;
    let has_key =
        || format!("an entry of a queue has a member `{ADMIT}`, which is reserved").into();
    let Some(key) = key else {
        return match may_hold_key(&text) && members(&text)?.contains_key(ADMIT) {
            true => Err(has_key()),
            false => Ok(text),
        };
    };
    if !text.starts_with('{') {
        return Err("an entry that is admitted under a key is a JSON object".into());
    }
    let mut members = members(&text)?;
    let key = serde_json::value::to_raw_value(key.as_value())?;
    match members.insert(ADMIT.to_owned(), key) {
        Some(_) => Err(has_key()),
        None => encode(&members),
    }
}

/// Whether the text may be an object with the reserved member; mostly it cannot, and need not be looked at.
fn may_hold_key(text: &str) -> bool {
    text.starts_with('{') && text.contains(ADMIT)
}

/// The members as they are written: a number need not be one that a [`Value`] holds.
fn members(text: &str) -> Result<BTreeMap<String, Box<RawValue>>, BoxError> {
    Ok(serde_json::from_str(text)?)
}

fn read<T: DeserializeOwned>(text: &str) -> Result<(T, Option<Key>), BoxError> {
    if may_hold_key(text) {
        let mut members = members(text)?;
        if let Some(key) = members.remove(ADMIT) {
            let value = serde_json::from_str(&serde_json::to_string(&members)?)?;
            let key: Value = serde_json::from_str(key.get())?;
            return Ok((value, Some(Key::from(key))));
        }
    }
    Ok((serde_json::from_str(text)?, None))
}
