//! The half of the self-probe that runs in the runtime: it asks, and leaves a pulse.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::health::Fault;
use super::{Health, Probing};
use crate::domain::{Domain, panic_message, saturating_add};

/// Asks once; ended when there is an answer, whatever it is.
pub(in crate::worker) type Ask = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Asks `ask`, and what the program wants asked besides, at each interval or as soon as the last answer is there. Never returns.
pub(in crate::worker) async fn keep_asking(
    domain: Domain,
    health: Arc<Health>,
    probing: Probing,
    ask: Ask,
) {
    let Probing {
        interval,
        threshold,
        also,
    } = probing;
    // A request that is under way stays so over many pulses: only that tells a router that hangs from a runtime that stalls.
    let mut under_way = None;
    loop {
        health.pulse();
        let now = domain.monotonic();
        let (since, ticks, mut request) = under_way
            .take()
            .unwrap_or_else(|| (now, 0_u32, once(Arc::clone(&ask), also.clone())));
        let mut tick = pin!(domain.sleep_until(saturating_add(now, interval)));
        let answer = tokio::select! {
            biased;
            answer = &mut request => Some(answer),
            () = &mut tick => None,
        };
        let waited = domain.monotonic().saturating_duration_since(since);
        match answer {
            Some(Answer::Came) => {
                health.set(Fault::Router, false, Duration::ZERO);
                tick.await;
            }
            Some(Answer::Panicked) => {
                health.set(Fault::Router, true, waited);
                tick.await;
            }
            None => {
                // Ticks are counted, and not time: where the process was stopped or the runtime stalled, the router has
                // not had the time that has passed.
                let ticks = ticks.saturating_add(1);
                if interval.saturating_mul(ticks) >= threshold {
                    health.set(Fault::Router, true, waited);
                }
                under_way = Some((since, ticks, request));
            }
        }
    }
}

enum Answer {
    Came,
    Panicked,
}

fn once(ask: Ask, also: Option<Ask>) -> BoxFuture<'static, Answer> {
    let asked = async move {
        ask().await;
        if let Some(also) = also {
            also().await;
        }
    };
    Box::pin(async move {
        // The program's own part may panic, and must not take the pulse along.
        match AssertUnwindSafe(asked).catch_unwind().await {
            Ok(()) => Answer::Came,
            Err(panic) => {
                tracing::debug!(target: "pinned::worker", panic = panic_message(&*panic), "the self-probe panicked");
                Answer::Panicked
            }
        }
    })
}
