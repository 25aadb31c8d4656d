//! The entries that belong to the tray itself (T2.2).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::entries::Image;
use super::key::Key;
use crate::durability::TrayKey;

pub(crate) const VERSION: &str = "~v";
const ATTEMPTS: &str = "~attempts";
const PARKED: &str = "~parked";
const INBOX: &str = "~inbox";
const STATE: &str = "~state";
const DISPATCH: &str = "~dispatch";
const IGNORE: &str = "~ignore";

/// A keyed admission that the item in hand made, as its source remembers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DispatchRecord {
    pub(crate) key: Key,
    target: (String, String),
    pub(crate) outcome: Outcome,
    pub(crate) cleaned: bool,
}

/// What came of a keyed admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was admitted now.
    Admitted,
    /// It had been admitted before under the same key; nothing was added.
    Absorbed,
}

impl DispatchRecord {
    pub(crate) fn new(key: Key, target: &TrayKey, outcome: Outcome) -> Self {
        Self {
            key,
            target: (target.tray_ns.to_string(), target.tray_id.to_string()),
            outcome,
            cleaned: false,
        }
    }

    pub(crate) fn target(&self) -> TrayKey {
        TrayKey::new(&*self.target.0, &*self.target.1)
    }

    pub(crate) fn is_for(&self, target: &TrayKey) -> bool {
        *self.target.0 == *target.tray_ns && *self.target.1 == *target.tray_id
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    command: Name,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Name {
    Delete,
}

/// The version that a row was written at.
///
/// # Errors
///
/// It is no version (T2.7).
pub(crate) fn version_of(entries: &BTreeMap<String, Box<RawValue>>) -> Result<i64, String> {
    match entries.get(VERSION) {
        None => Ok(0),
        Some(text) => match serde_json::from_str::<i64>(text.get()) {
            Ok(0) => Err("a version of 0 is written by leaving it out".to_owned()),
            Ok(version) => Ok(version),
            Err(error) => Err(format!("not an integer: {error}")),
        },
    }
}

/// Checks every reserved entry; the first that is malformed, and why.
pub(crate) fn check(entries: &BTreeMap<String, Box<RawValue>>) -> Result<(), (String, String)> {
    for (name, text) in entries.iter().filter(|(name, _)| name.starts_with('~')) {
        check_one(name, text.get()).map_err(|reason| (name.clone(), reason))?;
    }
    Ok(())
}

fn check_one(name: &str, text: &str) -> Result<(), String> {
    fn as_type<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
    match name {
        // Read before anything else is.
        VERSION | STATE => Ok(()),
        ATTEMPTS => match as_type::<u64>(text)? {
            0 => Err("attempts are at least 1".to_owned()),
            _ => Ok(()),
        },
        PARKED => match as_type::<bool>(text)? {
            true => Ok(()),
            false => Err("a tray that is not parked has no such entry".to_owned()),
        },
        INBOX => as_type::<Vec<Command>>(text).map(drop),
        DISPATCH => as_type::<Vec<DispatchRecord>>(text).map(drop),
        IGNORE => as_type::<Vec<Key>>(text).map(drop),
        _ => Err("no entry of this name is known to this version".to_owned()),
    }
}

fn read<'a, T: Deserialize<'a>>(image: &'a Image, name: &str) -> Option<T> {
    // Checked when the tray opened, and written here since.
    serde_json::from_str(image.get(name)?).ok()
}

fn write<T: Serialize>(image: &mut Image, name: &str, value: Option<&T>) {
    let text = value.and_then(|value| serde_json::to_string(value).ok());
    image.set(name, text.map(Into::into));
}

fn write_list<T: Serialize>(image: &mut Image, name: &str, list: &[T]) {
    write(image, name, (!list.is_empty()).then_some(&list));
}

pub(crate) fn set_version(image: &mut Image, version: i64) {
    write(image, VERSION, (version != 0).then_some(&version));
}

/// Deliveries of the item in hand so far.
pub(crate) fn attempts(image: &Image) -> u64 {
    read(image, ATTEMPTS).unwrap_or(0)
}

pub(crate) fn set_attempts(image: &mut Image, attempts: u64) {
    write(image, ATTEMPTS, (attempts > 0).then_some(&attempts));
}

pub(crate) fn is_parked(image: &Image) -> bool {
    image.get(PARKED).is_some()
}

pub(crate) fn set_parked(image: &mut Image, parked: bool) {
    write(image, PARKED, parked.then_some(&true));
}

/// Whether the tray is to be deleted.
pub(crate) fn is_condemned(image: &Image) -> bool {
    read::<Vec<Command>>(image, INBOX).is_some_and(|commands| !commands.is_empty())
}

pub(crate) fn condemn(image: &mut Image) {
    let delete = Command {
        command: Name::Delete,
    };
    write_list(image, INBOX, &[delete]);
}

pub(crate) fn state(image: &Image) -> Option<Value> {
    read(image, STATE)
}

/// Null is no state (T12.2).
pub(crate) fn set_state(image: &mut Image, state: Option<&Value>) {
    write(image, STATE, state.filter(|state| !state.is_null()));
}

pub(crate) fn dispatches(image: &Image) -> Vec<DispatchRecord> {
    read(image, DISPATCH).unwrap_or_default()
}

pub(crate) fn set_dispatches(image: &mut Image, records: &[DispatchRecord]) {
    write_list(image, DISPATCH, records);
}

pub(crate) fn ignored(image: &Image) -> Vec<Key> {
    read(image, IGNORE).unwrap_or_default()
}

pub(crate) fn set_ignored(image: &mut Image, keys: &[Key]) {
    write_list(image, IGNORE, keys);
}
