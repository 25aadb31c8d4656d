//! The half of the self-probe that runs beside the runtime: a thread that looks after its pulse.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::oneshot;

use super::health::Fault;
use super::{Health, Probing};
use crate::domain::{Domain, TaskHandle};
use crate::error::{Error, Result};

/// How many probes are answered at one time. For one more the oldest has to go: whoever asks is answered at once, so that the
/// oldest is one that does not ask.
const AT_ONCE: usize = 32;
/// How long a connection may take to ask and to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to leave the listener alone after it failed to accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A thread with a small runtime of its own, beside the worker's. Dropping this ends it, and waits for that: then where it
/// answered is free again.
pub(in crate::worker) struct Watchdog {
    until_dropped: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Where probes are answered.
    address: Option<SocketAddr>,
}

impl Watchdog {
    /// Looks after the pulse in `health` as `probing` says, and answers `probes` at `address`, whichever of both is asked for. In a
    /// simulation, where no thread lives by the clock of the tasks, there is nothing to look after.
    pub(in crate::worker) fn start(
        domain: &Domain,
        health: &Arc<Health>,
        probing: Option<&Probing>,
        probes: Option<(SocketAddr, Router)>,
    ) -> Result<Option<Self>> {
        let looking = probing
            .filter(|_| domain.is_real())
            .map(|probing| Looking::new(health, probing));
        if looking.is_none() && probes.is_none() {
            return Ok(None);
        }
        let probes = match probes {
            None => None,
            Some((address, router)) => {
                let listener = bind(address).map_err(|source| Error::Bind {
                    address: address.to_string(),
                    source,
                })?;
                Some((listener, router))
            }
        };
        let address = probes
            .as_ref()
            .and_then(|(listener, _)| listener.local_addr().ok());
        let (until_dropped, dropped) = oneshot::channel::<()>();
        let thread = thread::Builder::new()
            .name("pinned-watchdog".to_owned())
            .spawn(move || watch(looking, probes, dropped))
            .map_err(|error| Error::config(format!("the self-probe gets no thread: {error}")))?;
        Ok(Some(Self {
            until_dropped: Some(until_dropped),
            thread: Some(thread),
            address,
        }))
    }

    pub(in crate::worker) fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.until_dropped = None;
        if let Some(thread) = self.thread.take() {
            // It waits for nobody. Where it has panicked, that was said there.
            let _ = thread.join();
        }
    }
}

/// What the thread does until its other half is dropped.
fn watch(
    looking: Option<Looking>,
    probes: Option<(StdListener, Router)>,
    dropped: oneshot::Receiver<()>,
) {
    let beside = runtime::Builder::new_current_thread().enable_all().build();
    let beside = match beside {
        Ok(beside) => beside,
        Err(error) => {
            tracing::error!(target: "pinned::worker", %error, "the self-probe gets no event loop; nobody looks after the runtime");
            return;
        }
    };
    // The clock of this thread is the real one in any case: it answers other processes.
    let domain = Domain::real();
    beside.block_on(async {
        tokio::select! {
            // Nothing is ever sent: this is the end of the other half.
            _ = dropped => {}
            () = look(&domain, looking) => {}
            () = answer_all(&domain, probes) => {}
        }
    });
}

// --- Looking ---

struct Looking {
    health: Arc<Health>,
    interval: Duration,
    /// How many looks in a row may find no new pulse.
    looks: u32,
    seen: u64,
    missed: u32,
}

impl Looking {
    fn new(health: &Arc<Health>, probing: &Probing) -> Self {
        let looks = probing.threshold.div_duration_f64(probing.interval).ceil();
        Self {
            health: Arc::clone(health),
            interval: probing.interval,
            // One more: a pulse may come just after each look.
            looks: (looks as u32).saturating_add(1),
            seen: 0,
            missed: 0,
        }
    }

    /// Looks are counted, and not time: of a process that was stopped whole, thread and runtime alike, nobody missed anything.
    fn look(&mut self) {
        let pulses = self.health.pulses();
        if pulses != self.seen {
            self.seen = pulses;
            self.missed = 0;
            self.health.set(Fault::Runtime, false, Duration::ZERO);
            return;
        }
        self.missed = self.missed.saturating_add(1);
        if self.missed >= self.looks {
            let after = self.interval.saturating_mul(self.missed);
            self.health.set(Fault::Runtime, true, after);
        }
    }
}

async fn look(domain: &Domain, looking: Option<Looking>) {
    let Some(mut looking) = looking else {
        return std::future::pending().await;
    };
    loop {
        domain.sleep(looking.interval).await;
        looking.look();
    }
}

// --- Answering ---

fn bind(address: SocketAddr) -> io::Result<StdListener> {
    let listener = StdListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn answer_all(domain: &Domain, probes: Option<(StdListener, Router)>) {
    let Some((listener, router)) = probes else {
        return std::future::pending().await;
    };
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(target: "pinned::worker", %error, "probes are not answered");
            return std::future::pending().await;
        }
    };
    let mut answering: VecDeque<TaskHandle<()>> = VecDeque::with_capacity(AT_ONCE);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                answering.retain(|task| !task.is_finished());
                if answering.len() >= AT_ONCE
                    && let Some(oldest) = answering.pop_front()
                {
                    oldest.abort();
                }
                let (answered, limit) = (answer(stream, router.clone()), domain.clone());
                answering.push_back(domain.spawn(async move {
                    // Whoever is too slow is cut off; probes ask again.
                    let _ = limit.timeout(PATIENCE, answered).await;
                }));
            }
            Err(_) => domain.sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn answer(stream: TcpStream, router: Router) {
    let service = TowerToHyperService::new(router);
    // One question per connection: a probe that keeps its connection would be cut off in the middle of the next one.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // A client that breaks off is its own affair.
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::probe::SelfProbe;

    fn looking(interval: u64, threshold: u64) -> (Arc<Health>, Looking) {
        let probe = SelfProbe::new()
            .interval(Duration::from_millis(interval))
            .threshold(Duration::from_millis(threshold));
        let probing = probe.check().expect("valid").expect("on");
        let health = Arc::new(Health::new());
        let looking = Looking::new(&health, &probing);
        (health, looking)
    }

    #[test]
    fn a_pulse_that_stays_away_for_the_threshold_is_a_stall_until_it_is_back() {
        let (health, mut looking) = looking(100, 250);
        health.pulse();
        looking.look();
        for _ in 0..3 {
            looking.look();
            assert_eq!(health.fault(), None);
        }
        looking.look();
        assert_eq!(health.fault(), Some(Fault::Runtime));
        health.pulse();
        looking.look();
        assert_eq!(health.fault(), None);
    }

    #[test]
    fn a_process_that_was_stopped_whole_has_missed_one_look_only() {
        let (health, mut looking) = looking(1_000, 5_000);
        health.pulse();
        looking.look();
        // However long it was stopped.
        looking.look();
        assert_eq!(health.fault(), None);
    }

    #[test]
    fn one_fault_does_not_cover_up_the_other() {
        let (health, _) = looking(100, 100);
        health.set(Fault::Router, true, Duration::ZERO);
        health.set(Fault::Runtime, true, Duration::ZERO);
        assert_eq!(health.fault(), Some(Fault::Runtime));
        health.set(Fault::Runtime, false, Duration::ZERO);
        assert_eq!(health.fault(), Some(Fault::Router));
        health.set(Fault::Router, false, Duration::ZERO);
        assert_eq!(health.fault(), None);
    }
}
