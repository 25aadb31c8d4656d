//! Keeps up with what happens to the servers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;

use super::keys::Place;
use super::node::Surroundings;
use super::owners::{Owners, Topology};
use super::request::{Call, millis};
use super::scripts::BOOT;
use crate::store::StoreOptions;

/// How long owners that are all there are taken to stay.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// The pause between two looks while an owner is not there.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Knows the owners anew whenever something has happened to them, and marks what has begun a new life.
pub(super) struct Keeper {
    pub(super) around: Arc<Surroundings>,
    pub(super) options: StoreOptions,
    pub(super) topology: Topology,
    pub(super) owners: watch::Sender<Arc<Owners>>,
}

// ===== impl Keeper =====

impl Keeper {
    pub(super) async fn run(self) {
        let shards = self.options.shards;
        loop {
            self.topology
                .refresh(&self.around, shards, &self.owners)
                .await;
            self.mark().await;
            let well = self.owners.borrow().are_up(Place::all(shards));
            let pause = if well || !self.topology.is_cluster() {
                LOOK_EVERY
            } else {
                LOOK_AGAIN
            };
            let _ = self
                .around
                .dialer
                .domain
                .timeout(pause, self.around.stirred.notified())
                .await;
        }
    }

    /// Has every place that is there look at its boot mark: a server that has lost what it knew is found out although nobody
    /// asks anything of it. What is not there, or does not answer, is looked at when it comes.
    async fn mark(&self) {
        let owners = self.owners.borrow().clone();
        let marks = owners
            .nodes()
            .filter(|node| node.is_up())
            .map(|node| async {
                let link = node.link().await.ok()?;
                let mut commands = redis::pipe();
                for place in Place::all(self.options.shards) {
                    if owners
                        .of(place)
                        .is_some_and(|owner| Arc::ptr_eq(owner, node))
                    {
                        let boot = Call::with_keys(&BOOT, vec![place.key("boot")]).number(0);
                        boot.at(place).write(
                            &link.run_id,
                            millis(self.options.quarantine),
                            false,
                            &mut commands,
                        );
                    }
                }
                node.send(&link, &commands).await.ok()
            });
        join_all(marks).await;
    }
}
