//! The end of a live tray: closed with its row kept, or deleted (T14, T15).

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::core::{Core, chunk_namespace, is_chunk_of};
use super::definition::Tray;
use super::error::TrayError;
use super::handle::TrayHandle;
use super::reserved;
use crate::domain::until;
use crate::durability::{Receipt, RowFilter, TrayKey};

type Ended = BoxFuture<'static, Result<(), crate::BoxError>>;

/// How a live tray ends, and whether it has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retirement {
    pub(super) how: How,
    pub(super) ended: bool,
    /// Nothing that ran at its end has failed (D18.10).
    pub(super) clean: bool,
}

/// The two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The row stays.
    Closed,
    /// The row goes.
    Deleted,
}

impl Retirement {
    pub(super) fn new(how: How) -> Self {
        Self {
            how,
            ended: false,
            clean: true,
        }
    }

    pub(super) fn refusal(&self, key: &TrayKey) -> TrayError {
        match self.how {
            How::Closed => TrayError::Closed(key.clone()),
            How::Deleted => TrayError::Deleted(key.clone()),
        }
    }
}

impl<W: Tray> Core<W> {
    /// Begins to close: admissions are refused from here on (T14.2). Whether the caller is to carry it out.
    pub(super) fn begin_close(self: &Arc<Self>) -> Result<bool, TrayError> {
        let begun = self.look(|state| match state.retirement {
            Some(Retirement {
                how: How::Deleted, ..
            }) => Err(TrayError::Deleted(self.key.clone())),
            Some(_) => Ok(false),
            None => {
                state.retirement = Some(Retirement::new(How::Closed));
                Ok(true)
            }
        })??;
        self.changed.notify_waiters();
        Ok(begun)
    }

    /// Waits until it has ended.
    pub(super) async fn ended(self: Arc<Self>) {
        until(&self.changed, || {
            self.look(|state| state.has_ended()).unwrap_or(false)
        })
        .await;
    }

    /// The opening failed, or was given up: whoever has got a handle meanwhile finds a closed tray, and the next opening
    /// is the only one.
    pub(super) fn give_up(&self) {
        let staged = self.look(|state| {
            state.sealed = true;
            state.retirement = Some(Retirement {
                ended: true,
                ..Retirement::new(How::Closed)
            });
            state.staged
        });
        if let (Ok(position @ 1..), Some(trays)) = (staged, self.trays.upgrade()) {
            trays.given_up(&self.key, position);
        }
        self.changed.notify_waiters();
    }

    /// Carries a close out, once the pump has wound down (T14.3).
    pub(super) async fn close_after_pump(self: Arc<Self>) {
        until(&self.changed, || {
            self.look(|state| state.is_at_rest() || state.has_ended())
                .unwrap_or(false)
        })
        .await;
        // One that was given up in its opening has ended already.
        if !self.look(|state| state.has_ended()).unwrap_or(false) {
            self.retire().await;
        }
    }

    /// Seals, tears down, makes what is enlisted durable, and leaves the directory. The retirement has begun.
    pub(super) async fn retire(self: Arc<Self>) {
        let deletes = self
            .look(|state| {
                state.sealed = true;
                state
                    .retirement
                    .is_some_and(|retirement| retirement.how == How::Deleted)
            })
            .unwrap_or(false);
        let clean = self.tear_down().await;
        let outcome = match deletes {
            true => self.delete_row().await,
            false => self.frontier.wait().await.map_err(TrayError::from),
        };
        if let Err(error) = outcome {
            // The failed log aborts the instance by itself; what is stored decides what the next activation finds.
            tracing::debug!(
                target: "pinned::tray",
                tray = %self.key,
                error = %crate::error::ErrorChain(&error),
                "a tray retired without its last write being confirmed"
            );
        }
        if let Some(trays) = self.trays.upgrade() {
            trays.remove(&self.key);
        }
        let _ = self.look(|state| {
            if let Some(retirement) = &mut state.retirement {
                retirement.ended = true;
                retirement.clean = clean;
            }
        });
        self.changed.notify_waiters();
    }

    /// Hooks in reverse, then the tray's own lifecycle (T9.9). Whether all went well.
    async fn tear_down(self: &Arc<Self>) -> bool {
        self.tear_down_after(self.hooks.len()).await
    }

    /// The same when only the first `opened` hooks have run (T9.10).
    pub(super) async fn tear_down_after(self: &Arc<Self>, opened: usize) -> bool {
        let mut clean = true;
        for hook in self.hooks.iter().take(opened).rev() {
            clean &= self
                .report(|| (hook.close)(TrayHandle::new(Arc::clone(self))))
                .await;
        }
        clean
            & self
                .report(|| W::teardown(TrayHandle::new(Arc::clone(self))))
                .await
    }

    async fn report(&self, teardown: impl FnOnce() -> Ended + Send) -> bool {
        // Making the future is the user's code too, where it is no `async fn`.
        let teardown = async move { teardown().await };
        let ended = std::panic::AssertUnwindSafe(teardown).catch_unwind().await;
        let error = match ended {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("panicked: {}", crate::domain::panic_message(&*panic)),
        };
        tracing::error!(target: "pinned::tray", tray = %self.key, error, "the teardown of a tray failed");
        false
    }

    /// The row delete is the only durable step (T15.4); chunks go with it.
    async fn delete_row(&self) -> Result<(), TrayError> {
        let mut fields = Vec::new();
        self.look(|state| state.value.fields(&mut |name, _| fields.push(name)))?;
        let mut chunks = Vec::new();
        for field in fields {
            let has_chunks = self.look(|state| {
                let entry = state.image.get(field);
                state.replaced
                    || entry
                        .is_some_and(|text| text.starts_with('{') && text.contains("\"chunks\""))
            })?;
            if has_chunks {
                // What is on its way yet would be written after it was looked for.
                self.frontier.wait().await?;
                let filter = RowFilter::tray(chunk_namespace(&self.key, field));
                let listed = self.frontier.store().list(self.frontier.claim(), filter);
                let rows = match listed.await {
                    Ok(rows) => rows,
                    Err(error) => {
                        // The row stays: nobody may write it before the next activation has deleted it (T15.4).
                        self.frontier.fail_store(error);
                        return Ok(self.frontier.wait().await?);
                    }
                };
                let of_this = rows
                    .into_iter()
                    .filter(|row| is_chunk_of(&self.key.tray_id, &row.key.tray_id));
                chunks.extend(of_this.map(|row| row.key));
            }
        }
        self.frontier.segment(|segment| {
            segment.stage(self.key.clone(), None);
            for chunk in chunks {
                segment.stage(chunk, None);
            }
        })?;
        Ok(self.frontier.wait().await?)
    }

    /// Durably admits the command to delete (T15.1).
    pub(super) fn condemn(self: &Arc<Self>) -> Result<Receipt, TrayError> {
        let condemned = self.receipted(|state, _| match state.retirement {
            Some(Retirement {
                how: How::Deleted, ..
            }) => Ok(()),
            Some(_) => Err(TrayError::Closed(self.key.clone())),
            None => {
                state.kick();
                if !reserved::is_condemned(&state.image) {
                    reserved::condemn(&mut state.image);
                }
                Ok(())
            }
        })?;
        // A pump that waits for a slot deletes at once (T15.2).
        self.changed.notify_waiters();
        Ok(condemned)
    }
}
