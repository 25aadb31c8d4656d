//! Sends what is asked of a place to the server that has it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use pinned_domain::{Domain, TaskHandle};
use redis::{Pipeline, Value};
use tokio::sync::{Notify, watch};

use super::error::Failure;
use super::invalidations::Invalidations;
use super::keeper::Keeper;
use super::keys::Place;
use super::link::{Dialer, Link};
use super::node::{Node, Surroundings};
use super::owners::{Owners, Topology, ping};
use super::request::{Request, millis};
use super::url::{Address, RedisUrl};
use crate::store::{StoreError, StoreOptions};

/// How often a request is sent at most: it may find that its place has moved, and that a script is not loaded.
const ATTEMPTS: usize = 4;
/// How long a request waits for news of where its place has moved.
const MOVING: Duration = Duration::from_secs(1);

/// Sends requests to the servers that have their places.
pub(super) struct Router {
    around: Arc<Surroundings>,
    options: StoreOptions,
    owners: watch::Receiver<Arc<Owners>>,
    keeper: TaskHandle<()>,
}

/// What came of one attempt at a request.
enum Outcome {
    Done(Vec<Value>),
    /// It has not been carried out, and may be sent again.
    Again(Again, Failure),
    Failed(Failure),
}

#[derive(Clone, Copy)]
enum Again {
    /// Another server has its place now.
    Moved,
    /// The server does not have the script.
    NoScript,
}

// ===== impl Router =====

impl Router {
    /// # Errors
    ///
    /// As [`Dialer::new`].
    pub(super) fn new(
        url: &RedisUrl,
        options: StoreOptions,
        domain: &Domain,
    ) -> Result<Self, StoreError> {
        let jitter = domain
            .rng("redis-reconnect")
            .map_err(|error| StoreError::Unusable(error.to_string()))?;
        let around = Arc::new(Surroundings {
            dialer: Dialer::new(url, domain.clone())?,
            invalidations: Arc::new(Invalidations::new(domain)),
            stirred: Arc::new(Notify::new()),
            jitter,
        });
        let (sender, owners) = watch::channel(Arc::default());
        let topology = match &url.seeds[..] {
            [address] if !url.cluster => Topology::Single(address.clone()),
            seeds => Topology::Cluster {
                seeds: seeds.to_vec(),
                slots: Default::default(),
            },
        };
        let keeper = Keeper {
            around: Arc::clone(&around),
            options,
            topology,
            owners: sender,
        };
        Ok(Self {
            around,
            options,
            owners,
            keeper: domain.spawn(keeper.run()),
        })
    }

    pub(super) fn invalidations(&self) -> &Invalidations {
        &self.around.invalidations
    }

    pub(super) fn domain(&self) -> &Domain {
        &self.around.dialer.domain
    }

    /// Carries out one request; what came of each of its commands.
    ///
    /// # Cancel safety
    ///
    /// What has been sent happens.
    pub(super) async fn one(&self, request: Request) -> Result<Vec<Value>, StoreError> {
        let mut answers = self.all(vec![request]).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// Carries out requests, those of one server in their order; what came of the commands of each.
    ///
    /// # Errors
    ///
    /// One of them failed. The others may have been carried out, and all have been waited for.
    ///
    /// # Cancel safety
    ///
    /// What has been sent happens.
    pub(super) async fn all(&self, requests: Vec<Request>) -> Result<Vec<Vec<Value>>, StoreError> {
        let mut answers: Vec<Option<Vec<Value>>> = requests.iter().map(|_| None).collect();
        let mut pending: Vec<usize> = (0..requests.len()).collect();
        let mut whole_scripts = false;
        for attempt in 1.. {
            let mut owners = self.owners.clone();
            let current = owners.borrow_and_update().clone();
            let mut failed = None;
            let (mut again, mut moved) = (Vec::new(), None);
            for (n, outcome) in self
                .attempt(&current, &requests, &pending, whole_scripts)
                .await
            {
                match outcome {
                    Outcome::Done(values) => answers[n] = Some(values),
                    Outcome::Again(_, why) if attempt == ATTEMPTS => failed = Some(why),
                    Outcome::Again(Again::Moved, why) => {
                        again.push(n);
                        moved = Some(why);
                    }
                    Outcome::Again(Again::NoScript, _) => {
                        again.push(n);
                        whole_scripts = true;
                    }
                    Outcome::Failed(why) => failed = Some(why),
                }
            }
            if let Some(why) = failed {
                return Err(why.into());
            }
            if again.is_empty() {
                break;
            }
            if let Some(why) = moved {
                self.around.stirred.notify_one();
                let news = self.domain().timeout(MOVING, owners.changed()).await;
                if !matches!(news, Ok(Ok(()))) {
                    return Err(why.into());
                }
            }
            pending = again;
        }
        Ok(answers.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Sends the `pending` ones of `requests`, all at once; what came of each.
    async fn attempt(
        &self,
        owners: &Owners,
        requests: &[Request],
        pending: &[usize],
        whole_scripts: bool,
    ) -> Vec<(usize, Outcome)> {
        let mut outcomes = Vec::with_capacity(pending.len());
        let mut of_nodes: Vec<(&Arc<Node>, Vec<usize>)> = Vec::new();
        for &n in pending {
            let Some(node) = owners.of(requests[n].place) else {
                outcomes.push((n, Outcome::Again(Again::Moved, owners.trouble())));
                continue;
            };
            match of_nodes
                .iter_mut()
                .find(|(other, _)| Arc::ptr_eq(other, node))
            {
                Some((_, of_node)) => of_node.push(n),
                None => of_nodes.push((node, vec![n])),
            }
        }
        let sent = of_nodes
            .iter()
            .map(|(node, of_node)| self.send(node, requests, of_node, whole_scripts));
        for sent in join_all(sent).await {
            outcomes.extend(sent);
        }
        outcomes
    }

    /// Sends some of `requests` to one server.
    async fn send(
        &self,
        node: &Node,
        requests: &[Request],
        some: &[usize],
        whole_scripts: bool,
    ) -> Vec<(usize, Outcome)> {
        let sent = async {
            let link = node.link().await?;
            let mut commands = Pipeline::with_capacity(some.len());
            for &n in some {
                let quarantine = millis(self.options.quarantine);
                requests[n].write(&link.run_id, quarantine, whole_scripts, &mut commands);
            }
            let answers = node.send(&link, &commands).await?;
            Ok((link, answers))
        };
        let (link, answers): (Arc<Link>, _) = match sent.await {
            Ok(sent) => sent,
            Err(why) => {
                let why: Failure = why;
                let failed = some.iter().map(|&n| (n, Outcome::Failed(why.clone())));
                return failed.collect();
            }
        };
        let mut answers = answers.into_iter();
        let mut outcomes = Vec::with_capacity(some.len());
        for &n in some {
            let own: Vec<_> = answers.by_ref().take(requests[n].len()).collect();
            let outcome = if own.len() < requests[n].len() {
                Outcome::Failed(Failure::away(&node.address, "an answer is missing"))
            } else {
                judge(&node.address, &link, own)
            };
            outcomes.push((n, outcome));
        }
        outcomes
    }

    /// Whether every server answers.
    ///
    /// # Errors
    ///
    /// One does not.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(super) async fn ping(&self) -> Result<(), StoreError> {
        let owners = self.owners.borrow().clone();
        if let Some(lost) =
            Place::all(self.options.shards).find(|&place| owners.of(place).is_none())
        {
            tracing::debug!(target: "pinboard::store", place = %lost, "nobody has it");
            return Err(owners.trouble().into());
        }
        let pings = owners.nodes().map(|node| async {
            let link = node.link().await?;
            let answers = node.send(&link, &ping()).await?;
            match judge(&node.address, &link, answers) {
                Outcome::Done(_) => Ok(()),
                Outcome::Again(_, why) | Outcome::Failed(why) => Err(why),
            }
        });
        for pong in join_all(pings).await {
            pong?;
        }
        Ok(())
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// What the answers to one request come to.
fn judge(address: &Address, link: &Link, answers: Vec<Value>) -> Outcome {
    let first = answers.iter().find_map(|answer| match answer {
        Value::ServerError(error) => Some(error),
        _ => None,
    });
    let Some(error) = first else {
        return Outcome::Done(answers);
    };
    let why = Failure::of_answer(address, error);
    match error.code() {
        "MOVED" => Outcome::Again(Again::Moved, why),
        "NOSCRIPT" => Outcome::Again(Again::NoScript, why),
        // Another server is the primary now, and may be behind the same address.
        "READONLY" | "MASTERDOWN" => {
            link.lost.set();
            Outcome::Failed(why)
        }
        _ => Outcome::Failed(why),
    }
}
