//! What the client asks of the instance in a run.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use http::StatusCode;
use pinned::durability::{Claim, Doc, RowFilter, StateStore, StoreError, StoreFuture, TrayKey};
use pinned_testing::sim::StoreFailed;
use pinned_testing::{TestClient, TestResponse};

use super::image::{Name, instance, name};
use super::scene::{Cut, Scene};

/// How long a request, an activation and a drain may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same where an instance may have to be placed anew before it answers.
const BRIEFLY: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// How often an instance whose placement was handed back is placed anew, in a run with faults.
const PLACEMENTS: u32 = 100;

impl Scene {
    pub(super) async fn wake(&mut self) -> Result<(), Cut> {
        self.until("/_wake", "S5.28", |answer| async move {
            answer.status() == StatusCode::OK
        })
        .await
    }

    pub(super) async fn admit(&self, lane: &str, id: &str, n: u64) -> Result<(), Cut> {
        let of_lane: Name = name(lane, id);
        self.watch.ledger.lock().sent(of_lane.clone(), n);
        let path = match (lane, id) {
            ("work", _) => format!("/admit/{n}"),
            ("relay", _) => format!("/relay/{n}"),
            _ => format!("/admit/{id}/{n}"),
        };
        let answer = self.send(&path).await?;
        if self.accepted(&path, &answer)? {
            self.watch.ledger.lock().acknowledged(of_lane, n);
        }
        self.check()
    }

    pub(super) async fn admit_all(&self, items: &[(&str, &str, u64)]) -> Result<(), Cut> {
        let admissions = items.iter().map(|(lane, id, n)| self.admit(lane, id, *n));
        let admitted = join_all(admissions).await;
        admitted.into_iter().collect()
    }

    pub(super) async fn bump(&mut self) -> Result<(), Cut> {
        self.watch.ledger.lock().bump_sent();
        let answer = self.send("/bump").await?;
        if self.accepted("/bump", &answer)? {
            let count: u64 = answer.json().await;
            self.watch.ledger.lock().bump_confirmed(count);
        }
        self.check()
    }

    pub(super) async fn drop_scratch(&mut self) -> Result<(), Cut> {
        self.until("/scratch/drop", "S5.28", |answer| async move {
            answer.status() == StatusCode::OK
        })
        .await?;
        self.scratch_due = false;
        self.check()
    }

    /// S5.27
    pub(super) async fn probe_fence(&mut self) -> Result<(), Cut> {
        let rig = self.rig.lock().clone();
        let rig = rig.expect("the node was started");
        for epoch in 0..self.node.epoch() {
            let claim = Claim::new(instance(), epoch);
            let key = TrayKey::new("work", "~");
            let written = self
                .unfailing(|| rig.set_tray(claim.clone(), key.clone(), false, Doc::empty()))
                .await?;
            let listed = self
                .unfailing(|| rig.list(claim.clone(), RowFilter::all()))
                .await?;
            for (what, is_fenced) in [("write", written), ("list", listed)] {
                if !is_fenced {
                    let what = format!("a {what} at epoch {epoch} was not fenced off");
                    return Err(self.fault("S5.27", what));
                }
            }
        }
        Ok(())
    }

    /// Whether the operation lost its fence; failures that say nothing are tried again.
    async fn unfailing<T: Send + 'static>(
        &self,
        op: impl Fn() -> StoreFuture<T>,
    ) -> Result<bool, Cut> {
        loop {
            // Beside the process: a crash leaves it without an answer.
            let op = op();
            let outcome: Result<T, StoreError> = self.node.run(|_| op).await?;
            match outcome {
                Err(error) if StoreFailed::is_why(&error) => {}
                Err(error) => return Ok(error.is_fence_lost()),
                Ok(_) => return Ok(false),
            }
        }
    }

    pub(super) fn accepted(&self, path: &str, answer: &TestResponse) -> Result<bool, Cut> {
        let accepted = answer.status() == StatusCode::OK;
        if !accepted && !self.faulty {
            let what = format!("{path} was answered with {}", answer.status());
            return Err(self.fault("S4.8", what));
        }
        self.refused.fetch_or(!accepted, Ordering::AcqRel);
        Ok(accepted)
    }

    pub(super) async fn send(&self, path: &str) -> Result<TestResponse, Cut> {
        let url = format!("/desks/a{path}");
        let answer = self.node.run(|client: TestClient| async move {
            let domain = client.worker().domain().clone();
            domain.timeout(PATIENCE, client.post(url).send()).await
        });
        match answer.await? {
            Ok(answer) => {
                self.sim.note(format!("{path} -> {}", answer.status()));
                Ok(answer)
            }
            Err(_elapsed) => Err(self.fault("S5.28", format!("{path} is not answered"))),
        }
    }

    /// Sends it until `done` says so. In a run with faults, an instance whose placement was handed back is placed anew.
    async fn until<F: Future<Output = bool>>(
        &mut self,
        path: &str,
        number: &'static str,
        done: impl Fn(TestResponse) -> F,
    ) -> Result<(), Cut> {
        let mut placements = 0;
        loop {
            let patience = if self.faulty { BRIEFLY } else { PATIENCE };
            let until = self.sim.elapsed() + patience;
            while self.sim.elapsed() < until {
                let answer = self.send(path).await?;
                if done(answer).await {
                    return Ok(());
                }
                self.check()?;
                self.sim.domain().sleep(PAUSE).await;
            }
            if !self.faulty || placements == PLACEMENTS {
                // What is not done says more than that it is not.
                self.watch.check_drained();
                let rows = self.watch.look().to_string();
                return Err(self.fault(number, format!("{path} never came to its end: {rows}")));
            }
            placements += 1;
            self.place_anew().await?;
        }
    }

    /// Waits until all is done (S4.7).
    pub(super) async fn settle(&mut self) -> Result<(), Cut> {
        self.until("/idle", "S5.28", |answer| async move {
            answer.status() == StatusCode::OK && answer.json::<bool>().await
        })
        .await?;
        self.check()
    }
}
