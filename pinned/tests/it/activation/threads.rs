//! Many threads at once.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_an_id_has_at_most_one_instance() {
    // H4.11 under aborts, failures and evictions from all sides
    let options = HostOptions::new()
        .idle_timeout(millis(1))
        .sweep_interval(millis(1))
        .max_concurrent_activations(4);
    let app = std::sync::Arc::new(App::with::<Single>(options).await);
    let callers: Vec<_> = (0..8_u64)
        .map(|seed| {
            let app = std::sync::Arc::clone(&app);
            crate::rig::domain().spawn(async move {
                let rng = pinned::domain::Domain::real_seeded(seed)
                    .rng("ids")
                    .expect("a label");
                for _ in 0..200 {
                    let id = rng.u64() % 3;
                    match rng.u64() % 8 {
                        0 => app.host::<Single>().abort(&id.to_string()),
                        1 => app.client(&format!("/t/{id}")).hang_up(),
                        _ => {
                            let status = app.get(&format!("/t/{id}")).await.status;
                            assert!(matches!(status, 200 | 503), "{status}");
                        }
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        let done = crate::rig::domain().timeout(secs(60), caller).await;
        done.expect("nobody waits for ever")
            .expect("at most one at a time");
    }
    let empty = crate::rig::domain()
        .timeout(secs(30), app.empty::<Single>())
        .await;
    empty.expect("no count was leaked");
    assert!(!app.probe.has("overlap"));
}

/// Notes when there are two of one id.
struct Single {
    probe: Probe,
    key: String,
}

#[pinned_api]
impl Single {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let (probe, key) = (probe(&ctx), format!("live {}", ctx.id()));
        if probe.is_open(&key) {
            probe.note("overlap");
        }
        probe.open(&key);
        let single = Self { probe, key };
        tokio::task::yield_now().await;
        single
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        tokio::task::yield_now().await;
    }

    #[route::get("/")]
    async fn read(&self) {
        tokio::task::yield_now().await;
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        self.probe.shut(&self.key);
    }
}
