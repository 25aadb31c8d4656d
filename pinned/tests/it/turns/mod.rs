//! Turns: what the receivers of handlers promise (design.md, "Authoring").

mod chains;
mod endings;
mod order;
mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use axum::extract::Path;
use pinned::{Context, HostOptions, Instance, Refusal, Unavailable, lifespan, pinned_api, route};

use crate::rig::{App, Probe, bounded, domain, millis, pass, secs, settle};

struct Ledger {
    probe: Probe,
    ctx: Context,
    torn: bool,
    entries: Vec<String>,
}

#[pinned_api]
impl Ledger {
    #[lifespan::setup]
    async fn setup(ctx: Context) -> Self {
        let probe = Probe::clone(&ctx.state().expect("a probe"));
        if ctx.id() == "selfish" {
            let answer = ctx
                .cluster()
                .get("/t/selfish/")
                .send()
                .await
                .expect("an answer");
            probe.note(answer.status().as_str());
            probe.note(answer.text().await.expect("text"));
        }
        if ctx.id() == "slow" {
            probe.gate("slow").await;
        }
        probe.note("setup");
        Self {
            probe,
            ctx,
            torn: false,
            entries: Vec::new(),
        }
    }

    #[lifespan::teardown]
    async fn teardown(&mut self) {
        if self.ctx.id() == "selfish" {
            let again = self.ctx.cluster().get("/t/selfish/").send();
            let answer = again.await.expect("an answer");
            self.probe
                .note(format!("teardown {}", answer.status().as_u16()));
        }
        self.probe.note("teardown");
    }

    #[route::get("/")]
    async fn entries(&self) -> String {
        if self.torn {
            return "torn".to_owned();
        }
        self.entries.join(",")
    }

    /// Shared, until its gate opens.
    #[route::get("/shared/{gate}")]
    async fn shared(&self, Path(gate): Path<String>) -> String {
        let _cleanup = self.probe.cleanup(format!("left {gate}"));
        self.probe.gate(&gate).await;
        gate
    }

    /// Exclusive, until its gate opens.
    #[route::get("/exclusive/{gate}")]
    async fn exclusive(&mut self, Path(gate): Path<String>) -> String {
        let _cleanup = self.probe.cleanup(format!("left {gate}"));
        self.entries.push(gate.clone());
        self.probe.gate(&gate).await;
        gate
    }

    /// Shared, and asks `path` of this worker meanwhile.
    #[route::get("/shared-ask/{*path}")]
    async fn shared_ask(&self, ctx: Context, Path(path): Path<String>) -> String {
        self.probe.gate("ask").await;
        ask(&ctx, &path).await
    }

    /// Exclusive, and asks `path` of this worker meanwhile.
    #[route::get("/exclusive-ask/{*path}")]
    async fn exclusive_ask(&mut self, ctx: Context, Path(path): Path<String>) -> String {
        self.probe.gate("ask").await;
        ask(&ctx, &path).await
    }

    /// Without a turn: takes the exclusive one to ask, and gives it back to ask again.
    #[route::get("/instance-ask/{*path}")]
    async fn instance_ask(
        this: Instance<Self>,
        ctx: Context,
        Path(path): Path<String>,
    ) -> Result<String, Refusal> {
        let turn = this.write().await?;
        let within = ask(&ctx, &path).await;
        drop(turn);
        let after = ask(&ctx, &path).await;
        Ok(format!("{within}; {after}"))
    }

    /// What an `Instance` grants within the turns that its own handler took.
    #[route::get("/nested")]
    async fn nested(this: Instance<Self>) -> Result<String, Refusal> {
        let first = this.read().await?;
        let second = this.read().await?;
        let within_shared = this.write().await.map(drop);
        drop((first, second));
        let exclusive = this.write().await?;
        let within_exclusive = this.read().await.map(drop);
        drop(exclusive);
        drop(this.write().await?);
        Ok(format!(
            "{:?} {:?}",
            is_chain(&within_shared),
            is_chain(&within_exclusive)
        ))
    }

    /// A task of a handler that holds the exclusive turn wants a turn of its own.
    #[route::get("/spawn")]
    async fn spawn(&mut self, ctx: Context, this: Instance<Self>) {
        let probe = self.probe.clone();
        ctx.spawn(async move {
            let mut turn = this.write().await?;
            turn.entries.push("task".to_owned());
            probe.note("task had its turn");
            Ok::<(), Refusal>(())
        });
        self.probe.gate("spawn").await;
        self.entries.push("handler".to_owned());
    }

    /// A task that asks its own instance while it holds the exclusive turn.
    #[route::get("/spawn-ask")]
    async fn spawn_ask(&self, ctx: Context, this: Instance<Self>) {
        self.ctx.spawn(async move {
            let turn = this.write().await?;
            let answer = ask(&ctx, "t/a/").await;
            turn.probe.note(&answer[..3]);
            Ok::<(), Refusal>(())
        });
    }

    #[route::get("/tear/{gate}")]
    async fn tear(&mut self, Path(gate): Path<String>) {
        self.torn = true;
        self.probe.gate(&gate).await;
        panic!("half done");
    }

    #[route::get("/tear-instance/{gate}")]
    async fn tear_instance(this: Instance<Self>, Path(gate): Path<String>) -> Result<(), Refusal> {
        let mut turn = this.write().await?;
        turn.torn = true;
        let probe = turn.probe.clone();
        probe.gate(&gate).await;
        panic!("half done");
    }
}

fn is_chain(outcome: &Result<(), Refusal>) -> bool {
    matches!(outcome, Err(Refusal::CallChain(_)))
}

/// The status and text of an answer of this worker.
async fn ask(ctx: &Context, path: &str) -> String {
    let answer = ctx
        .cluster()
        .get(format!("/{path}"))
        .send()
        .await
        .expect("an answer");
    let status = answer.status().as_u16();
    format!("{status} {}", answer.text().await.expect("text"))
}

/// Counts who is inside.
#[derive(Default)]
struct Room {
    inside: AtomicI64,
    visits: AtomicU64,
}

const EXCLUSIVE: i64 = 1_000_000;

struct Visit<'a>(&'a Room, i64);

impl Room {
    fn enter(&self, weight: i64) -> Visit<'_> {
        let before = self.inside.fetch_add(weight, Ordering::SeqCst);
        let fits = if weight == EXCLUSIVE {
            before == 0
        } else {
            before < EXCLUSIVE
        };
        assert!(fits, "{before} were inside");
        self.visits.fetch_add(1, Ordering::SeqCst);
        Visit(self, weight)
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(self.1, Ordering::SeqCst);
    }
}

#[pinned_api]
impl Room {
    #[route::get("/shared/{yields}")]
    async fn shared(&self, Path(yields): Path<u32>) {
        let _visit = self.enter(1);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
    }

    #[route::get("/exclusive/{yields}")]
    async fn exclusive(&mut self, Path(yields): Path<u32>) {
        let _visit = self.enter(EXCLUSIVE);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
    }
}
