//! Which server has which place.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use redis::{Pipeline, Value};
use tokio::sync::watch;

use super::error::Failure;
use super::keys::Place;
use super::node::{ANSWER, CONNECT, Node, Surroundings};
use super::url::Address;

/// The server of each place, as last found out.
#[derive(Default)]
pub(super) struct Owners {
    nodes: HashMap<Address, Arc<Node>>,
    of: HashMap<Place, Address>,
    /// Why nothing has been found out yet.
    trouble: Option<Failure>,
}

/// Finds out which server has which place.
pub(super) enum Topology {
    /// One server has everything.
    Single(Address),
    /// The servers of a cluster are asked, those first that are known to be there.
    Cluster {
        seeds: Vec<Address>,
        /// The hash slot of each place, once some server has told.
        slots: Mutex<HashMap<Place, u16>>,
    },
}

// ===== impl Owners =====

impl Owners {
    pub(super) fn of(&self, place: Place) -> Option<&Arc<Node>> {
        self.nodes.get(self.of.get(&place)?)
    }

    /// Why nobody is known to have a place.
    pub(super) fn trouble(&self) -> Failure {
        self.trouble.clone().unwrap_or_else(|| {
            let nobody = Address {
                host: "nowhere".to_owned(),
                port: 0,
            };
            Failure::away(&nobody, "no server is known to have the hash slot")
        })
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// Whether every place has a server that is connected to.
    pub(super) fn are_up(&self, places: impl IntoIterator<Item = Place>) -> bool {
        places
            .into_iter()
            .all(|place| self.of(place).is_some_and(|node| node.is_up()))
    }
}

// ===== impl Topology =====

impl Topology {
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster { .. })
    }

    /// Finds out anew; leaves `owners` as they are when nobody can tell, or nothing has changed.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(super) async fn refresh(
        &self,
        around: &Arc<Surroundings>,
        shards: u16,
        owners: &watch::Sender<Arc<Owners>>,
    ) {
        let of = match self {
            Self::Single(address) => Place::all(shards)
                .map(|place| (place, address.clone()))
                .collect(),
            Self::Cluster { seeds, slots } => {
                let before = owners.borrow().clone();
                match find(around, shards, seeds, slots, &before).await {
                    Ok(of) => of,
                    Err(why) => {
                        if before.of.is_empty() {
                            let trouble = Some(why);
                            owners.send_replace(Arc::new(Owners {
                                trouble,
                                ..Owners::default()
                            }));
                        }
                        return;
                    }
                }
            }
        };
        let before = owners.borrow().clone();
        if before.of == of {
            return;
        }
        let mut nodes = HashMap::new();
        for address in of.values() {
            if !nodes.contains_key(address) {
                let node = match before.nodes.get(address) {
                    Some(node) => Arc::clone(node),
                    None => Node::start(address.clone(), around),
                };
                nodes.insert(address.clone(), node);
            }
        }
        let moved = !before.of.is_empty();
        owners.send_replace(Arc::new(Owners {
            nodes,
            of,
            trouble: None,
        }));
        if moved {
            tracing::info!(target: "pinboard::store", "hash slots of Redis have moved");
            // What was read of them is watched where they were.
            around.invalidations.everything();
        }
    }
}

/// Asks one server after the other where the places are.
async fn find(
    around: &Surroundings,
    shards: u16,
    seeds: &[Address],
    slots: &Mutex<HashMap<Place, u16>>,
    before: &Owners,
) -> Result<HashMap<Place, Address>, Failure> {
    let (up, down): (Vec<_>, Vec<_>) = before.nodes().partition(|node| node.is_up());
    let known = up.into_iter().chain(down).map(|node| &node.address);
    let mut asked = Vec::new();
    let mut best: HashMap<Place, Address> = HashMap::new();
    let mut trouble: Option<Failure> = None;
    for address in known.chain(seeds) {
        if asked.contains(&address) {
            continue;
        }
        asked.push(address);
        let limit = CONNECT + ANSWER;
        let answer = ask(around, address, shards, slots);
        let why = match around.dialer.domain.timeout(limit, answer).await {
            Ok(Ok(of)) if Place::all(shards).all(|place| of.contains_key(&place)) => {
                return Ok(of);
            }
            // One that was cut off from the others may know less than the next.
            Ok(Ok(of)) => {
                if best.len() < of.len() {
                    best = of;
                }
                continue;
            }
            Ok(Err(why)) => why,
            Err(_) => Failure::timed_out(address),
        };
        tracing::debug!(target: "pinboard::store", error = %why, "cannot learn where hash slots are");
        // One that may come back is worth waiting for, whatever the others are.
        if trouble
            .as_ref()
            .is_none_or(|trouble| !trouble.is_transient())
        {
            trouble = Some(why);
        }
    }
    match trouble {
        Some(why) if best.is_empty() => Err(why),
        _ => Ok(best),
    }
}

async fn ask(
    around: &Surroundings,
    address: &Address,
    shards: u16,
    slots: &Mutex<HashMap<Place, u16>>,
) -> Result<HashMap<Place, Address>, Failure> {
    let mut commands = redis::pipe();
    commands.cmd("CLUSTER").arg("SLOTS");
    let known = !slots.lock().is_empty();
    if !known {
        for place in Place::all(shards) {
            commands
                .cmd("CLUSTER")
                .arg("KEYSLOT")
                .arg(place.key("boot"));
        }
    }
    let mut answers = around.dialer.ask(address, &commands).await?.into_iter();
    let ranges = match answers.next() {
        Some(Value::ServerError(error)) if error.code() == "ERR" => {
            return Err(Failure::unfit(
                address,
                "it is not part of a cluster: use redis:// or rediss://",
            ));
        }
        Some(Value::ServerError(error)) => return Err(Failure::of_answer(address, &error)),
        answer => answer.and_then(|answer| ranges(answer, address)),
    }
    .ok_or_else(|| Failure::unfit(address, "CLUSTER SLOTS answers something unexpected"))?;
    if !known {
        let slots_of: HashMap<_, _> = Place::all(shards)
            .zip(answers)
            .filter_map(|(place, slot)| Some((place, number(slot)?)))
            .collect();
        *slots.lock() = slots_of;
    }
    let slots = slots.lock();
    let owner = |slot: u16| {
        let range = ranges
            .iter()
            .find(|range| range.first <= slot && slot <= range.last);
        range.map(|range| range.owner.clone())
    };
    Ok(slots
        .iter()
        .filter_map(|(place, slot)| Some((*place, owner(*slot)?)))
        .collect())
}

struct Range {
    first: u16,
    last: u16,
    owner: Address,
}

/// What `CLUSTER SLOTS` answers: of each range its ends and its primary. Ranges without one are left out.
fn ranges(answer: Value, asked: &Address) -> Option<Vec<Range>> {
    let Value::Array(ranges) = answer else {
        return None;
    };
    let mut found = Vec::with_capacity(ranges.len());
    for range in ranges {
        let Value::Array(range) = range else {
            return None;
        };
        let mut range = range.into_iter();
        let (first, last) = (number(range.next()?)?, number(range.next()?)?);
        let Some(Value::Array(primary)) = range.next() else {
            continue;
        };
        let mut primary = primary.into_iter();
        let host: Option<String> = redis::from_redis_value(primary.next()?).ok()?;
        let port = number(primary.next()?)?;
        let host = match host.as_deref() {
            // The host that it was asked at; '?' is one that nobody knows.
            None | Some("") => asked.host.clone(),
            Some("?") => continue,
            Some(host) => host.to_owned(),
        };
        found.push(Range {
            first,
            last,
            owner: Address { host, port },
        });
    }
    Some(found)
}

/// A number of 16 bits: the client library would cut off what is more.
fn number(value: Value) -> Option<u16> {
    let number: i64 = redis::from_redis_value(value).ok()?;
    u16::try_from(number).ok()
}

/// `PING`, to each server.
pub(super) fn ping() -> Pipeline {
    let mut ping = redis::pipe();
    ping.cmd("PING");
    ping
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
        let primary = vec![host, Value::Int(port), text("id"), Value::Map(vec![])];
        Value::Array(vec![
            Value::Int(first),
            Value::Int(last),
            Value::Array(primary),
        ])
    }

    #[test]
    fn ranges_name_their_primaries() {
        let asked = Address {
            host: "seed".to_owned(),
            port: 7000,
        };
        let answer = Value::Array(vec![
            range(0, 5460, text("10.0.0.1"), 7001),
            range(5461, 10922, Value::Nil, 7002),
            range(10923, 16000, text("?"), 7003),
            Value::Array(vec![Value::Int(16001), Value::Int(16383)]),
        ]);
        let found = ranges(answer, &asked).expect("it is well formed");
        let found: Vec<_> = found
            .iter()
            .map(|range| (range.first, range.last, range.owner.to_string()))
            .collect();
        let expected = [
            (0, 5460, "10.0.0.1:7001".to_owned()),
            (5461, 10922, "seed:7002".to_owned()),
        ];
        assert_eq!(found, expected);
        for malformed in [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![range(-1, 7, text("h"), 1)]),
        ] {
            assert!(ranges(malformed, &asked).is_none());
        }
    }
}
