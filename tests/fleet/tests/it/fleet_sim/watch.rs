//! What is seen of a run, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Response;
use parking_lot::Mutex;
use pinboard::testing::{
    ActivationLog, Counters, InstanceKey, Ledger, ScriptedWorker, WorkerBody, WorkerCall,
    WorkerHandler,
};
use pinned_domain::Domain;
use pinned_wire::attestation::verify;
use pinned_wire::headers::{ATTESTATION, EPOCH, PROXY_SECRET};

use super::admission::Admission;
use super::mutant::Mutant;

/// The header that numbers a client's requests.
pub(super) const NUMBER: &str = "x-number";

/// What is seen of a run. Clones see the same.
#[derive(Clone, Default)]
pub(super) struct Watch {
    seen: Arc<Mutex<Seen>>,
    pub(super) log: ActivationLog,
    pub(super) ledger: Ledger,
}

#[derive(Default)]
struct Seen {
    /// By the name that the log has them under.
    workers: BTreeMap<Arc<str>, ScriptedWorker>,
    delivered: BTreeSet<u64>,
    /// The highest epoch that the registry was seen to have for each id.
    epochs: BTreeMap<Arc<str>, u64>,
    violations: Vec<String>,
}

impl Watch {
    pub(super) fn know(&self, name: Arc<str>, worker: ScriptedWorker) {
        self.seen.lock().workers.insert(name, worker);
    }

    pub(super) fn violation(&self, what: impl Into<String>) {
        self.seen.lock().violations.push(what.into());
    }

    pub(super) fn was_delivered(&self, number: u64) -> bool {
        self.seen.lock().delivered.contains(&number)
    }

    /// The registry says that `id` is held under `epoch`.
    pub(super) fn see_epoch(&self, id: &str, epoch: u64) {
        let mut seen = self.seen.lock();
        let highest = seen.epochs.entry(id.into()).or_default();
        if epoch < *highest {
            let what = format!("P4.3: {id} is held under {epoch}, and was under {highest}");
            seen.violations.push(what);
        } else {
            *highest = epoch;
        }
    }

    /// All that is wrong, at the end.
    pub(super) fn verdict(&self) -> Vec<String> {
        let mut violations = std::mem::take(&mut self.seen.lock().violations);
        let overlaps = self.log.overlaps();
        violations.extend(overlaps.iter().map(|overlap| format!("P4.6: {overlap}")));
        let lost = std::panic::AssertUnwindSafe(|| self.ledger.assert_nothing_lost());
        if let Err(panic) = std::panic::catch_unwind(lost) {
            violations.push(pinned_domain::panic_message(&*panic).to_string());
        }
        // Workers hold what holds this.
        self.seen.lock().workers.clear();
        violations
    }

    /// What instances of `worker` do: count in the ledger, and look at what was delivered.
    pub(super) fn handler(
        &self,
        worker: Arc<str>,
        domain: Domain,
        mutant: Option<Mutant>,
        admission: Option<Arc<Admission>>,
    ) -> Scribe {
        Scribe {
            counters: Counters::kept_in(self.ledger.clone()),
            watch: self.clone(),
            worker,
            domain,
            mutant,
            admission,
        }
    }
}

pub(super) struct Scribe {
    counters: Counters,
    watch: Watch,
    worker: Arc<str>,
    domain: Domain,
    mutant: Option<Mutant>,
    admission: Option<Arc<Admission>>,
}

impl Scribe {
    fn look_at(&self, call: &WorkerCall) {
        let mut seen = self.watch.seen.lock();
        let headers = call.request.headers();
        let key = &call.instance.key;
        let Some(worker) = seen.workers.get(&self.worker).cloned() else {
            return;
        };
        // P6.2
        let secret = worker.secret().expose().as_bytes();
        let has_it = |value: &[u8]| value.windows(secret.len()).any(|part| part == secret);
        if headers.contains_key(PROXY_SECRET) || headers.values().any(|v| has_it(v.as_bytes())) {
            let what = format!("P6.2: the secret of {} was forwarded", self.worker);
            seen.violations.push(what);
        }
        // P6.1
        let token = headers
            .get(ATTESTATION)
            .and_then(|token| token.to_str().ok());
        let session = worker.session();
        let sound = token.zip(session).is_some_and(|(token, session)| {
            let now = self.domain.now();
            verify(worker.secret().expose(), &[&*session], now, token).is_some()
        });
        if !sound {
            let what = format!("P6.1: {} served {key} for another session", self.worker);
            seen.violations.push(what);
        }
        if !headers.contains_key(EPOCH) {
            seen.violations
                .push(format!("P5.6: no epoch came with {key}"));
        }
        // P5.11
        let number = headers
            .get(NUMBER)
            .and_then(|n| n.to_str().ok()?.parse().ok());
        match number {
            Some(number) if !seen.delivered.insert(number) => {
                seen.violations
                    .push(format!("P5.11: request {number} was delivered twice"));
            }
            Some(_) => {}
            None => seen.violations.push("a request without its number".into()),
        }
    }
}

impl WorkerHandler for Scribe {
    fn handle(&self, call: WorkerCall) -> BoxFuture<'static, Response<WorkerBody>> {
        self.look_at(&call);
        if self.mutant == Some(Mutant::ForgetsWrites) {
            let key: &InstanceKey = &call.instance.key;
            let count = self.watch.ledger.count(key) + 1;
            return async move { pinboard::testing::text(http::StatusCode::OK, count.to_string()) }
                .boxed();
        }
        match self.admission.clone() {
            None => self.counters.handle(call),
            Some(admission) => {
                let (counters, worker) = (self.counters.clone(), Arc::clone(&self.worker));
                async move { admission.admit(&worker, counters, call).await }.boxed()
            }
        }
    }
}
