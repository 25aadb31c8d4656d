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
use crate::durability::{RowFilter, RowState, TrayKey};
use crate::error::BoxError;

/// Opens the tray, in the order of T9.7; the pump starts when the tray is in its directory.
pub(super) async fn open<W: Tray>(
    declared: &Arc<Declared<W>>,
    trays: &Arc<Trays>,
    key: TrayKey,
    row: Option<RowState>,
) -> Result<Arc<Core<W>>, TrayError> {
    let version = W::SETTINGS.version;
    let existed = row.is_some();
    let mut value = W::declared();
    let mut image = Image::default();
    let mut restored = false;
    // A dead claim to work must not bring the instance back for ever (T9.6).
    let mut writes_blank = !existed;
    if let Some(row) = row {
        let entries = entries_of(&row.doc);
        let malformed = |entry: &str, reason: String| TrayError::Malformed {
            tray: key.clone(),
            entry: entry.to_owned(),
            reason,
        };
        let stored = reserved::version_of(&entries)
            .map_err(|reason| malformed(reserved::VERSION, reason))?;
        if stored == version {
            reserved::check(&entries).map_err(|(entry, reason)| malformed(&entry, reason))?;
            restored = true;
            image = Image::restored(row.marked, entries);
            hydrate(trays, &key, &mut value, &image).await?;
        } else {
            writes_blank = row.marked;
        }
    }
    if !restored {
        reserved::set_version(&mut image, version);
        image.commit();
    }
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
        State::new(value, image),
    );
    // What hydration changed (T6.5), and a row that must be there.
    core.segment(|state, segment| {
        if writes_blank {
            segment.stage(core.key.clone(), Some(state.image.to_state()));
        }
        Ok(())
    })?;
    set_up(&core).await?;
    Ok(core)
}

async fn hydrate<W: Tray>(
    trays: &Arc<Trays>,
    key: &TrayKey,
    value: &mut W,
    image: &Image,
) -> Result<(), TrayError> {
    let malformed = |entry: &str, error: BoxError| TrayError::Malformed {
        tray: key.clone(),
        entry: entry.to_owned(),
        reason: error.to_string(),
    };
    let mut chunked = Vec::new();
    let mut failed = None;
    value.fields(&mut |name, field| {
        let stored = image.get(name).map(|text| raw(text));
        match stored.transpose().and_then(|stored| field.hydrate(stored)) {
            Ok(hydrated) => chunked.extend(hydrated.chunks.map(|range| (name, range))),
            Err(error) => {
                failed.get_or_insert_with(|| malformed(name, error));
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
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

fn raw(text: &str) -> Result<&RawValue, BoxError> {
    Ok(serde_json::from_str(text)?)
}

/// The tray's own lifecycle, then the hooks in their order; what has run is taken down again when a later one fails.
async fn set_up<W: Tray>(core: &Arc<Core<W>>) -> Result<(), TrayError> {
    let handle = || TrayHandle::new(Arc::clone(core));
    run(core, W::setup(handle())).await?;
    for (index, hook) in core.hooks.iter().enumerate() {
        if let Err(error) = run(core, (hook.open)(handle())).await {
            core.tear_down_after(index).await;
            return Err(error);
        }
    }
    Ok(())
}

async fn run<W: Tray>(
    core: &Core<W>,
    setup: BoxFuture<'static, Result<(), BoxError>>,
) -> Result<(), TrayError> {
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
