//! Opening one tray (T9).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use super::core::{Core, State, chunk_key, chunk_namespace};
use super::definition::Tray;
use super::entries::{Image, entries_of};
use super::error::TrayError;
use super::handle::TrayHandle;
use super::kind::Declared;
use super::reserved;
use super::trays::Trays;
use crate::durability::{Doc, RowFilter, RowState, TrayKey};
use crate::error::BoxError;

/// Opens the tray, in the order of T9.7; the pump starts when the tray is in its directory.
pub(super) async fn open<W: Tray>(
    declared: &Arc<Declared<W>>,
    trays: &Arc<Trays>,
    key: TrayKey,
    row: Option<RowState>,
) -> Result<Arc<Core<W>>, TrayError> {
    let existed = row.is_some();
    let Read {
        mut value,
        image,
        restored,
        stale_mark,
        chunked,
    } = read(&key, row)?;
    load_chunks(trays, &key, &mut value, chunked).await?;
    let mut state = State::new(value, image);
    state.replaced = existed && !restored;
    let core = Core::new(
        key,
        declared.form,
        trays.frontier().clone(),
        trays.owner(),
        Arc::downgrade(trays),
        trays.slots(),
        Arc::clone(&declared.handler),
        declared.hooks.clone(),
        restored,
        state,
    );
    // What hydration changed (T6.5), and a row that must be there.
    core.segment(|state, segment| {
        // A dead claim to work must not bring the instance back for ever (T9.6).
        if !existed || stale_mark {
            segment.stage(core.key.clone(), Some(state.image.to_state()));
            state.staged = segment.position();
        }
        Ok(())
    })?;
    let opening = Opening(Some(&core));
    set_up(&core).await?;
    opening.done();
    Ok(core)
}

/// Gives the tray up unless it gets to its end: also where its caller goes away.
struct Opening<'a, W: Tray>(Option<&'a Core<W>>);

impl<W: Tray> Opening<'_, W> {
    fn done(mut self) {
        self.0 = None;
    }
}

impl<W: Tray> Drop for Opening<'_, W> {
    fn drop(&mut self) {
        if let Some(core) = self.0 {
            core.give_up();
        }
    }
}

/// What a stored row makes of a tray.
struct Read<W> {
    value: W,
    image: Image,
    restored: bool,
    /// It is marked, and of another version (T9.5).
    stale_mark: bool,
    /// What is still to be read of long queues.
    chunked: Vec<(&'static str, (u64, u64))>,
}

/// A tray over its row, without the rows beside it.
fn read<W: Tray>(key: &TrayKey, row: Option<RowState>) -> Result<Read<W>, TrayError> {
    let malformed = |entry: &str, reason: String| TrayError::Malformed {
        tray: key.clone(),
        entry: entry.to_owned(),
        reason,
    };
    let mut read = Read {
        value: W::declared(),
        image: Image::default(),
        restored: false,
        stale_mark: false,
        chunked: Vec::new(),
    };
    let version = W::SETTINGS.version;
    if let Some(row) = row {
        let entries = entries_of(&row.doc);
        let stored = reserved::version_of(&entries)
            .map_err(|reason| malformed(reserved::VERSION, reason))?;
        if stored == version {
            reserved::check(&entries).map_err(|(entry, reason)| malformed(&entry, reason))?;
            read.restored = true;
            read.image = Image::restored(row.marked, entries);
        } else {
            read.stale_mark = row.marked;
        }
    }
    if !read.restored {
        reserved::set_version(&mut read.image, version);
        read.image.commit();
        return Ok(read);
    }
    let mut failed = None;
    let Read {
        value,
        image,
        chunked,
        ..
    } = &mut read;
    value.fields(&mut |name, field| {
        let stored = image.get(name).map(|text| raw(text));
        match stored.transpose().and_then(|stored| field.hydrate(stored)) {
            Ok(hydrated) => chunked.extend(hydrated.chunks.map(|range| (name, range))),
            Err(error) => {
                failed.get_or_insert_with(|| malformed(name, error.to_string()));
            }
        }
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(read),
    }
}

/// Reads the rows that long queues have beside their tray's own.
async fn load_chunks<W: Tray>(
    trays: &Arc<Trays>,
    key: &TrayKey,
    value: &mut W,
    chunked: Vec<(&'static str, (u64, u64))>,
) -> Result<(), TrayError> {
    let malformed = |entry: &str, error: BoxError| TrayError::Malformed {
        tray: key.clone(),
        entry: entry.to_owned(),
        reason: error.to_string(),
    };
    for (name, (from, to)) in chunked {
        let frontier = trays.frontier();
        let filter = RowFilter::tray(chunk_namespace(key, name));
        let rows = frontier.store().list(frontier.claim(), filter).await?;
        for number in from..to {
            let chunk = chunk_key(key, name, number);
            let found = rows.binary_search_by(|row| row.key.cmp(&chunk));
            let row = found
                .ok()
                .and_then(|index| rows.get(index))
                .ok_or_else(|| malformed(name, format!("its chunk {number} is missing").into()))?;
            let entries = entries_of(&row.state.doc);
            let items = entries
                .get("items")
                .ok_or_else(|| malformed(name, "a chunk without `items`".into()))?;
            let mut outcome = Ok(());
            value.fields(&mut |field, slot| {
                if field == name {
                    outcome = slot.hydrate_chunk(number, items);
                }
            });
            outcome.map_err(|error| malformed(name, error))?;
        }
    }
    Ok(())
}

/// The row that a stored one comes to when it is opened and written again; for the fuzzers of stored rows. What a long
/// queue has in rows of its own is not here: its entry stays as it is.
///
/// # Errors
///
/// The row is not one of ours (T2.7).
#[doc(hidden)]
pub fn reopened<W: Tray>(stored: Doc) -> Result<Doc, TrayError> {
    let key = TrayKey::new("fuzz", "~");
    let row = RowState {
        marked: true,
        doc: stored,
    };
    let Read {
        mut value,
        mut image,
        chunked,
        ..
    } = read::<W>(&key, Some(row))?;
    let mut failed = None;
    value.fields(&mut |name, field| match field.changes() {
        Ok(_) if chunked.iter().any(|(long, _)| *long == name) => {}
        Ok(changes) => {
            if let Some(entry) = changes.entry {
                image.set(name, entry);
            }
            field.commit();
        }
        Err(source) => failed = Some((name, source)),
    });
    match failed {
        None => Ok(image.to_state().doc),
        Some((name, source)) => Err(TrayError::Encode {
            tray: key,
            entry: name.to_owned(),
            source,
        }),
    }
}

fn raw(text: &str) -> Result<&RawValue, BoxError> {
    Ok(serde_json::from_str(text)?)
}

/// The tray's own lifecycle, then the hooks in their order; what has run is taken down again when a later one fails.
async fn set_up<W: Tray>(core: &Arc<Core<W>>) -> Result<(), TrayError> {
    let handle = || TrayHandle::new(Arc::clone(core));
    run(core, || W::setup(handle())).await?;
    for (index, hook) in core.hooks.iter().enumerate() {
        if let Err(error) = run(core, || (hook.open)(handle())).await {
            // The hooks of the end cannot write it (T14.4).
            core.give_up();
            core.tear_down_after(index).await;
            return Err(error);
        }
    }
    Ok(())
}

async fn run<W: Tray>(
    core: &Core<W>,
    setup: impl FnOnce() -> BoxFuture<'static, Result<(), BoxError>>,
) -> Result<(), TrayError> {
    let setup = async move { setup().await };
    let ended = AssertUnwindSafe(setup).catch_unwind().await;
    let source: BoxError = match ended {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error,
        Err(panic) => format!("panicked: {}", crate::domain::panic_message(&*panic)).into(),
    };
    Err(TrayError::Setup {
        tray: core.key.clone(),
        source,
    })
}
