//! The registry store on Redis.
//!
//! # Slots
//!
//! Each script, and each read, stays in one hash slot: that of a *shard*, `{s0}` to `{s<PINBOARD_SHARDS - 1>}`, or that of
//! the *fleet*, `{fleet}`. The shard of an id is the 64-bit XXH3 of its member (below) modulo the number of shards. A shard
//! is self-contained: whether an id may be placed is decided by what its own slot holds, so the loss of any slot is noticed
//! by the claims that it concerns. All keys of a script are declared.
//!
//! # Keys
//!
//! All begin with `pinboard:`, then the hash tag. What comes from outside is percent-encoded, with the colon, the percent
//! sign, braces, whitespace and all that is not ASCII; so it stays in its place. A *member* is `<env>:<ns>:<id>`; a
//! *namespace* is `<env>:<ns>`; the env of single mode is `*`. Times are milliseconds since the Unix epoch by the server's
//! clock, and epochs are decimal.
//!
//! | In each shard | Type | What |
//! |---|---|---|
//! | `boot` | string | the boot mark: `<run id> <generation> <when the quarantine ends>` |
//! | `sessions` | hash | session -> `<generation> <expires> <state> <client>`; the state is `l` (lives), `e` (takes neither heartbeats nor ids) or `s` (dead, and swept) |
//! | `row:<member>` | string | `h <generation> <epoch> <placed> <fence starts> <fence ends> <session>`; a release that is remembered is `f <epoch> <session>`, with an expiry |
//! | `rows:<session>` | set | the members whose rows name it; that of a dead session may have more |
//! | `epoch` | string | the highest epoch of any row that has gone |
//! | `counts` | hash | namespace -> rows |
//!
//! | In the fleet | Type | What |
//! |---|---|---|
//! | `boot` | string | as in a shard |
//! | `versions` | hash | `last`: the version of the latest change; `base`: the first of this generation; `trimmed`: up to which changes have been forgotten; `namespaces`: when these last grew; `generation` |
//! | `sessions` | hash | session -> `<generation> <expires> <state> <last heartbeat> <client>`; the state is `l`, `e` or `x` (dead, and known to be) |
//! | `records` | hash | session -> JSON of what it registered with |
//! | `updates` | hash | session -> JSON of its latest heartbeat |
//! | `addresses` | hash | session -> JSON, where they were found out anew |
//! | `changes` | sorted set | session, by the version of its latest change |
//! | `expiries` | sorted set | session, by when it expires; of those whose end has not been noted |
//! | `drains` | hash | client -> `c`, or the deadline of its drain |
//! | `namespaces` | set | every namespace that was ever served |
//! | `clients` | sorted set | client, by when it is forgotten, but for orders |
//! | `latest` | hash | client -> its latest session |
//! | `client-records` | hash | client -> JSON |
//! | `ended` | sorted set | session, by when its end was noted |
//! | `messages:<session>` | sorted set | member, by the number of its control message. With an expiry, as the next |
//! | `deadlines:<session>` | hash | member -> the deadline of its message, or `-` |
//! | `events` | stream | the ring of events; an id is the event's number |
//! | `events-last` | hash | `last`: the latest number; `generation` |
//! | `lease:<name>` | string | the node that leads, with an expiry |
//! | `selftest:<token>` | string | what [`prepare`](crate::store::RegistryStore::prepare) tries, in shards too; with an expiry |
//!
//! Hostname-aware mode and the fleet license (P9, P10) add keys in `{fleet}`, beginning with `binding:`, `epoch:` and
//! `license`, and change none of these.
//!
//! # Lives of the data
//!
//! A server that was restarted, failed over to, or restored from a copy may lack what was last written. Every script is
//! given the run id that its connection has seen, and compares it with the boot mark of its slot. When they differ, or
//! there is no mark, it begins a new *generation*: all sessions of earlier ones are dead, and nothing new is placed until
//! the quarantine ends (P4.4). Rows stay, and name whom they named. Until the quarantine ends they are given to nobody but
//! their holder's next session: the holder may be alive, and has not had its chance to say so. In a cluster a slot begins a
//! new generation as well when another server gets it, by a failover or by an operator who moves it.
//!
//! Generations and epochs never fall, as long as the clock does not: they are no lower than the time.
//!
//! # Epochs
//!
//! A new epoch is above that of the row, above [`Claim::above`](crate::store::Claim::above), above every epoch of a row that
//! has gone from its shard, and no lower than the time in milliseconds. So an id needs no memory of its own once nobody
//! holds it, and no counter runs ahead of the clock because many ids are placed.
//!
//! # What nodes remember
//!
//! Rows are read in a way that has the server tell when they change (client-side caching, opted in to for rows alone). What
//! a connection has read is forgotten when it is lost. A server keeps count of `tracking-table-max-keys` keys (a million by
//! default); with more ids in use it forgets some, and tells.

mod answer;
mod batches;
mod boot;
mod claims;
mod error;
mod fleet;
mod invalidations;
mod keeper;
mod keys;
mod link;
mod lists;
mod node;
mod orders;
mod owners;
mod placements;
mod request;
mod router;
mod rows;
mod scripts;
mod sessions;
mod store;
mod url;

pub use store::RedisStore;
pub use url::{InvalidRedisUrl, RedisUrl};
