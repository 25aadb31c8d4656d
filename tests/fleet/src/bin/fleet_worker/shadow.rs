//! A writer that knows no lease: it goes on with the epoch it was given until the store refuses it.

use std::sync::Arc;
use std::time::Duration;

use pinned::Context;
use pinned::durability::{Claim, Doc, InstanceKey, StateStore, TrayKey};

use crate::activity::Activity;

/// The worker's store, for what writes past the trays.
pub(crate) struct Store(pub(crate) Arc<dyn StateStore>);

/// A row that no tray declares, and that activations do not read because it is never marked (T8.2).
const TRAY: &str = "shadow";
const PAUSE: Duration = Duration::from_millis(20);

/// Writes again and again, whatever becomes of the instance, and notes `refused` once the fence has held.
pub(crate) fn follow(ctx: &Context, store: Arc<Store>, activity: Arc<Activity>) {
    let id = ctx.id().to_owned();
    let epoch = ctx.placement_epoch().unwrap_or(0);
    let claim = Claim::new(InstanceKey::new(ctx.namespace(), ctx.id()), epoch);
    let domain = ctx.domain().clone();
    ctx.domain().clone().spawn(async move {
        loop {
            let key = TrayKey::new(TRAY, "~");
            match store
                .0
                .set_tray(claim.clone(), key, false, Doc::empty())
                .await
            {
                Err(error) if error.is_fence_lost() => {
                    activity.note("refused", &id, epoch);
                    return;
                }
                // A database that is away comes back.
                Ok(()) | Err(_) => domain.sleep(PAUSE).await,
            }
        }
    });
}
