//! Who holds which id.

use std::time::Duration;

use redis::{Cmd, Value, cmd};

use super::RedisStore;
use super::answer::{only, read};
use super::error::unexpected;
use super::keys::Member;
use super::request::{Call, Request};
use super::rows;
use super::scripts::{CLAIM, FENCE, ROW};
use crate::store::{
    Claim, Claimed, Expected, Fence, FencedRow, PlacementKey, Row, SessionId, StoreError,
};

/// The highest epoch that claims are asked to be above. So there are always more, and all fit 63 bits.
const HIGHEST: u64 = 1 << 62;

impl RedisStore {
    pub(super) async fn read_row(&self, key: &PlacementKey) -> Result<Option<Row>, StoreError> {
        let member = self.member(key);
        let call = Call::new(member.place(), &ROW).key(member.row());
        let request = Request::new(member.place())
            .call(call)
            .plain(remember())
            .plain(get(&member));
        let [answer, _, seen] = three(self.router.one(request).await?)?;
        let (line, seen): (Option<String>, Option<String>) = (read(answer)?, read(seen)?);
        // A release that is remembered is no row.
        let seen = seen.as_deref().filter(|seen| seen.starts_with("h "));
        if line.as_deref().and_then(row_of) != seen {
            // It has changed since, before the server watched it.
            self.router.invalidations().row(key.clone());
        }
        match line.as_deref().map(claimed).transpose()? {
            None => Ok(None),
            Some(Claimed::Held(row)) => Ok(Some(row)),
            Some(_) => Err(unexpected("a row was due")),
        }
    }

    pub(super) async fn claim_row(&self, claim: Claim) -> Result<Claimed, StoreError> {
        if claim.above > HIGHEST {
            return Err(StoreError::Unusable(format!(
                "no epoch is left above {}",
                claim.above
            )));
        }
        let member = self.member(&claim.key);
        if claim.expected == Expected::Vacant
            && let Some(claimed) = self.claims.make(claim.clone(), member.clone()).await?
        {
            return Ok(claimed);
        }
        let place = member.place();
        let mut call = Call::new(place, &CLAIM)
            .key(member.row())
            .key(place.rows_of(&claim.candidate));
        if let Expected::HeldByDead { session, .. } = &claim.expected {
            call = call.key(place.rows_of(session));
        }
        call = call
            .arg(claim.candidate.as_str())
            .arg(&member.text)
            .number(claim.above)
            .arg(match claim.expected {
                Expected::VacantForAnyone => "a",
                Expected::Vacant | Expected::HeldByDead { .. } => "v",
            });
        if let Expected::HeldByDead { session, epoch } = &claim.expected {
            call = call.arg(session.as_str()).number(epoch);
        }
        // The server remembers for this connection what is read last: the row as the script has left it.
        let request = Request::new(place)
            .call(call)
            .plain(remember())
            .plain(get(&member));
        let answers = self.router.one(request).await?;
        let [answer, _, seen] = three(answers)?;
        let (line, seen): (String, Option<String>) = (read(answer)?, read(seen)?);
        let claimed = claimed(&line)?;
        if !agree(&claimed, &line, &claim.candidate, seen.as_deref()) {
            // It has changed since, before the server watched it.
            self.router.invalidations().row(claim.key);
        }
        Ok(claimed)
    }

    pub(super) async fn fence_row(
        &self,
        key: &PlacementKey,
        fence: Option<Fence>,
    ) -> Result<Option<FencedRow>, StoreError> {
        let member = self.member(key);
        let mut call = Call::new(member.place(), &FENCE).key(member.row());
        call = match fence {
            Some(fence) => call
                .millis(fence.starts_in)
                .millis(fence.ends_in.max(fence.starts_in)),
            None => call.arg(""),
        };
        let answers = self.router.one(call.at(member.place())).await?;
        let fenced: Option<(String, u64)> = only(answers)?;
        Ok(fenced.map(|(session, epoch)| FencedRow {
            session: SessionId::new(session),
            epoch,
        }))
    }

    pub(super) fn member(&self, key: &PlacementKey) -> Member {
        Member::new(key, self.options.shards)
    }
}

/// Has the server tell when what the next command reads has changed.
pub(super) fn remember() -> Cmd {
    let mut remember = cmd("CLIENT");
    remember.arg("CACHING").arg("YES");
    remember
}

fn get(member: &Member) -> Cmd {
    let mut get = cmd("GET");
    get.arg(member.row());
    get
}

fn three(answers: Vec<Value>) -> Result<[Value; 3], StoreError> {
    <[Value; 3]>::try_from(answers).map_err(|_| unexpected("three answers were due"))
}

/// What came of a claim, as the script says it.
pub(super) fn claimed(line: &str) -> Result<Claimed, StoreError> {
    let unexpected = || unexpected("what came of a claim was due");
    let number = |text: &str| text.parse::<u64>().map_err(|_| unexpected());
    let (code, rest) = line.split_once(' ').unwrap_or((line, ""));
    match code {
        "placed" | "replaced" => Ok(Claimed::Placed {
            epoch: number(rest)?,
            replaced: code == "replaced",
        }),
        "held" => {
            let (now, rest) = rest.split_once(' ').ok_or_else(unexpected)?;
            let (generation, row) = rest.split_once(' ').ok_or_else(unexpected)?;
            let row = rows::parse(row, generation, number(now)?).ok_or_else(unexpected)?;
            Ok(Claimed::Held(row))
        }
        "quarantined" => Ok(Claimed::Quarantined {
            ends_in: Duration::from_millis(number(rest)?),
        }),
        "preferred" => Ok(Claimed::Preferred(SessionId::new(rest))),
        "gone" => Ok(Claimed::CandidateGone),
        _ => Err(unexpected()),
    }
}

/// Whether the row that was seen after a claim is the one that the claim came to.
pub(super) fn agree(
    claimed: &Claimed,
    line: &str,
    candidate: &SessionId,
    seen: Option<&str>,
) -> bool {
    match claimed {
        Claimed::Placed { epoch, .. } => {
            let seen = seen.and_then(|seen| rows::parse(seen, "", 0));
            seen.is_some_and(|seen| {
                seen.session == *candidate && seen.epoch == *epoch && seen.fence.is_none()
            })
        }
        Claimed::Held(_) => row_of(line) == seen,
        // No row to remember.
        Claimed::Preferred(_) | Claimed::CandidateGone | Claimed::Quarantined { .. } => true,
    }
}

/// The row as a script has read it, which stands last in its line.
fn row_of(line: &str) -> Option<&str> {
    line.splitn(4, ' ').nth(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_claim_comes_to_is_taken_for_it() {
        for line in [
            "",
            "placed",
            "placed -1",
            "held 7",
            "held 7 1",
            "held 7 1 f 9 s",
            "held x 1 h 1 2 3 0 0 s",
            "quarantined",
            "else",
        ] {
            assert!(claimed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_row_that_has_changed_after_the_claim_is_seen() {
        let me = SessionId::new("me");
        for (line, seen, agrees) in [
            ("placed 7", Some("h 1 7 3 0 0 me"), true),
            ("placed 7", Some("h 1 8 3 0 0 me"), false),
            ("placed 7", Some("h 1 7 3 5 6 me"), false),
            ("placed 7", Some("h 1 7 3 0 0 you"), false),
            ("placed 7", Some("f 7 me"), false),
            ("placed 7", None, false),
            ("held 9 1 h 1 7 3 5 6 you", Some("h 1 7 3 5 6 you"), true),
            ("held 9 1 h 1 7 3 5 6 you", Some("h 1 7 3 5 8 you"), false),
            ("held 9 1 h 1 7 3 0 0 you", None, false),
            ("gone", Some("h 1 7 3 0 0 you"), true),
        ] {
            let claimed = claimed(line).expect("it is well formed");
            assert_eq!(agree(&claimed, line, &me, seen), agrees, "{line}, {seen:?}");
        }
    }

    #[test]
    fn epochs_keep_all_of_their_digits() {
        let claimed = claimed("placed 9007199254740993").expect("it is well formed");
        let expected = Claimed::Placed {
            epoch: (1 << 53) + 1,
            replaced: false,
        };
        assert_eq!(claimed, expected);
    }
}
