//! A type whose durable effects write to its store by hand.

use std::sync::Arc;

use http::StatusCode;
use pinned::axum::extract::Path;
use pinned::durability::{Claim, Doc, InstanceKey, StateStore, TrayKey};
use pinned::{BoxError, Context, pinned_api, route};
use pinned_testing::Gate;

/// The store, for the hands of [`Ledger`].
#[derive(Clone)]
pub(crate) struct Disk(Arc<dyn StateStore>);

impl Disk {
    pub(crate) fn new(store: impl StateStore) -> Self {
        Self(Arc::new(store))
    }
}

#[derive(Default)]
pub(crate) struct Ledger;

impl Ledger {
    /// Enlists a row named `entry`, and waits until it is durable.
    pub(crate) async fn enter(ctx: &Context, entry: &str) -> Result<(), BoxError> {
        let Disk(store) = &*ctx.state::<Disk>().ok_or("no disk")?;
        let instance = InstanceKey::new(ctx.namespace(), ctx.id());
        let claim = Claim::new(instance, ctx.placement_epoch()?);
        let (store, key) = (Arc::clone(store), TrayKey::new(entry, "~"));
        let effect = async move { store.set_tray(claim, key, false, Doc::empty()).await };
        ctx.frontier()?.enlist(effect)?.await?;
        Ok(())
    }
}

#[pinned_api("/ledgers")]
impl Ledger {
    #[route::post("/enter/{entry}")]
    async fn post(&mut self, ctx: Context, Path(entry): Path<String>) -> StatusCode {
        match Self::enter(&ctx, &entry).await {
            Ok(()) => StatusCode::OK,
            Err(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// Waits for ever in the middle of its work.
    #[route::post("/hang")]
    async fn hang(&mut self, ctx: Context) {
        if let Some(gate) = ctx.state::<Gate>() {
            gate.pass().await;
        }
    }
}
