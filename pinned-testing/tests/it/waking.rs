//! Waking instances.

use std::time::Duration;

use http::StatusCode;
use pinned::{Context, PinnedWorker, lifespan, pinned_api};
use pinned_testing::{BarrierStore, Gate, TestApp, WakeError, wake_until_ok};

const SOON: Duration = Duration::from_secs(5);

struct Slow;

#[pinned_api("/slow")]
impl Slow {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        if let Some(gate) = ctx.state::<Gate>() {
            gate.pass().await;
        }
        Self
    }
}

#[tokio::test(start_paused = true)]
async fn waking_polls_until_the_instance_is_resident() -> Result<(), Box<dyn std::error::Error>> {
    // H17.5
    let gate = Gate::new();
    let builder = PinnedWorker::builder().host::<Slow>("/slow");
    let store = BarrierStore::new();
    let app = TestApp::start(builder.state(gate.clone()).store(store)).await?;
    let client = app.client();
    let (woken, ()) = tokio::join!(wake_until_ok(&client, "/slow/a", SOON), async {
        gate.reached().await;
        app.worker().domain().sleep(SOON / 2).await;
        gate.open();
    });
    woken?;
    assert_eq!(app.host::<Slow>().activations(), 1);
    app.shutdown().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn waking_gives_up_in_time_and_at_once_when_refused() -> Result<(), Box<dyn std::error::Error>>
{
    let gate = Gate::new();
    let builder = PinnedWorker::builder().host::<Slow>("/slow");
    let store = BarrierStore::new();
    let app = TestApp::start(builder.state(gate.clone()).store(store)).await?;
    let client = app.client();
    let error = wake_until_ok(&client, "/slow/a", SOON)
        .await
        .expect_err("it stays on its way");
    assert!(matches!(error, WakeError::TimedOut { .. }), "{error}");
    let error = wake_until_ok(&client, "/fast/a", SOON)
        .await
        .expect_err("nothing is there");
    assert!(
        matches!(&error, WakeError::Refused { answer, .. } if answer.status() == StatusCode::NOT_FOUND),
        "{error}"
    );
    gate.open();
    app.shutdown().await?;
    Ok(())
}
