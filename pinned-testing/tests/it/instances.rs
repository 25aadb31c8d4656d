//! Instances without an app.

use http::StatusCode;
use pinned::durability::{Claim, Doc, InstanceKey, StateStore as _, TrayKey};
use pinned::{Context, Refusal, Unavailable, lifespan, pinned_api};
use pinned_testing::{Gate, InstanceError, instance, instance_with};

use crate::ledger::Ledger;
use crate::room::Room;

#[tokio::test]
async fn an_instance_has_a_real_context() -> Result<(), Box<dyn std::error::Error>> {
    // H17.4
    let room = instance::<Room>("blue").await?;
    let ctx = room.context();
    assert_eq!((ctx.namespace(), ctx.id()), ("/test", "blue"));
    assert_eq!(ctx.placement_epoch()?, 0);
    ctx.frontier()?.wait().await.expect("the store confirms");
    room.write().await?.count = 5;
    assert_eq!(room.handle().read().await?.count, 5);
    let answer = room.client().post("/test/blue/increment").send().await;
    assert_eq!(answer.json::<u64>().await, 6);
    room.close().await?;
    Ok(())
}

#[tokio::test]
async fn a_bad_id_is_an_error() {
    // H17.4
    let error = instance::<Room>("a b").await.expect_err("no id");
    assert!(
        matches!(
            &error,
            InstanceError::Unavailable(Unavailable::Refused(Refusal::InvalidId(_)))
        ),
        "{error}"
    );
}

#[tokio::test]
async fn an_abort_is_seen() -> Result<(), Box<dyn std::error::Error>> {
    // H17.4
    let room = instance::<Room>("blue").await?;
    assert!(!room.is_aborted());
    room.context().abort();
    room.aborted().await;
    assert!(room.is_aborted());
    assert!(room.host().is_empty());
    let answer = room.client().get("/test/blue/frontier").send().await;
    assert_eq!(answer.status(), StatusCode::OK, "a fresh instance answers");
    room.close().await?;
    Ok(())
}

struct Staged {
    gate: std::sync::Arc<Gate>,
}

#[pinned_api]
impl Staged {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Result<Self, std::io::Error> {
        let gate = ctx.state::<Gate>();
        Ok(Self {
            gate: gate.ok_or_else(|| std::io::Error::other("no gate"))?,
        })
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        self.gate.pass().await;
    }
}

#[tokio::test]
async fn a_setup_that_fails_is_an_error() {
    let error = instance::<Staged>("blue")
        .await
        .expect_err("there is no gate");
    assert!(
        matches!(
            &error,
            InstanceError::Unavailable(Unavailable::SetupFailed(_))
        ),
        "{error}"
    );
}

#[tokio::test]
async fn closing_waits_for_the_teardown() -> Result<(), Box<dyn std::error::Error>> {
    let gate = Gate::new();
    let staged = instance_with::<Staged>("blue", |worker| worker.state(gate.clone())).await?;
    let (closed, ()) = tokio::join!(staged.close(), async {
        gate.reached().await;
        gate.open();
    });
    closed?;
    Ok(())
}

#[tokio::test]
async fn what_an_instance_keeps_is_in_its_store() -> Result<(), Box<dyn std::error::Error>> {
    // S11.2
    let ledger = instance::<Ledger>("blue").await?;
    let (store, ctx) = (ledger.store().clone(), ledger.context());
    let claim = Claim::new(InstanceKey::new("/test", "blue"), ctx.placement_epoch()?);
    let write = store.set_tray(claim, TrayKey::new("a", "~"), true, Doc::empty());
    ctx.frontier()?.enlist(write)?.await?;
    assert_eq!(store.rows("/test", "blue").len(), 1);
    ledger.close().await?;
    Ok(())
}

#[tokio::test]
async fn an_abort_takes_the_write_along_that_the_store_holds_up()
-> Result<(), Box<dyn std::error::Error>> {
    // S11.1, D17.3
    let ledger = instance::<Ledger>("blue").await?;
    let (store, ctx) = (ledger.store().clone(), ledger.context());
    store.hold();
    let claim = Claim::new(InstanceKey::new("/test", "blue"), 0);
    let write = store.set_tray(claim, TrayKey::new("a", "~"), true, Doc::empty());
    let receipt = ctx.frontier()?.enlist(write)?;
    store.parked().await;
    ctx.abort();
    receipt.await.expect_err("it was cut");
    ledger.aborted().await;
    store.release();
    assert_eq!(store.rows("/test", "blue"), []);
    ledger.close().await?;
    Ok(())
}
