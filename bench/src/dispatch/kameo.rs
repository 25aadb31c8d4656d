use kameo::{
    Actor,
    actor::{ActorRef, Spawn},
    message::{Context, Message},
};

use super::Contender;

/// A kameo actor per counter, asked through a reference that the caller already holds: no lookup by id is charged to it.
pub struct KameoActors(Vec<ActorRef<Counter>>);

/// One actor.
#[derive(Actor, Default)]
struct Counter {
    count: u64,
}

struct Increment;

impl Message<Increment> for Counter {
    type Reply = u64;

    async fn handle(&mut self, _: Increment, _: &mut Context<Self, Self::Reply>) -> u64 {
        self.count += 1;
        self.count
    }
}

impl Contender for KameoActors {
    const NAME: &'static str = "kameo ask";

    async fn start(ids: &[String]) -> Self {
        Self(ids.iter().map(|_| Counter::spawn_default()).collect())
    }

    async fn increment(&self, index: usize) -> u64 {
        self.0[index]
            .ask(Increment)
            .await
            .expect("a counter actor neither stops nor panics")
    }
}
