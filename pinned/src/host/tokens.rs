//! Attestations that were found valid a moment ago.
//!
//! A node of pinboard attests the requests of anonymous callers for one worker with the same token for a second. Who has
//! checked it once need not compute its signature again, only see that it is the same and that its time is not over.

use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use pinned_wire::attestation::{Claims, TokenKey, same_secret};

/// How many are remembered: those of this second and the one before, from nodes whose clocks differ.
const REMEMBERED: usize = 4;

/// The last valid tokens of anonymous callers, the newest first.
#[derive(Default)]
pub(crate) struct RecentTokens {
    tokens: Mutex<[Option<Arc<Valid>>; REMEMBERED]>,
}

struct Valid {
    signed: Box<str>,
    signature: Box<str>,
    claims: Claims,
}

impl RecentTokens {
    /// What `key` says of a token.
    pub(crate) fn verify(
        &self,
        key: &TokenKey,
        audiences: &[&str],
        now: SystemTime,
        token: &str,
    ) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        if let Some(valid) = self.find(signed, signature) {
            let claims = &valid.claims;
            // Whom it is for and when may have changed since.
            return (claims.is_timely(now) && audiences.contains(&claims.aud.as_str()))
                .then(|| claims.clone());
        }
        let claims = key.verify(audiences, now, token)?;
        if claims.is_anonymous() {
            self.remember(Valid {
                signed: signed.into(),
                signature: signature.into(),
                claims: claims.clone(),
            });
        }
        Some(claims)
    }

    fn find(&self, signed: &str, signature: &str) -> Option<Arc<Valid>> {
        let tokens = self.tokens.lock();
        // What is signed is no secret; the signature is.
        let same = |valid: &&Arc<Valid>| {
            *valid.signed == *signed && same_secret(&valid.signature, signature.as_bytes())
        };
        tokens.iter().flatten().find(same).map(Arc::clone)
    }

    fn remember(&self, valid: Valid) {
        let mut tokens = self.tokens.lock();
        // Several threads may have met it first; it must not push out those of other seconds more than once.
        let known = |other: &Arc<Valid>| other.signed == valid.signed;
        if tokens.iter().flatten().any(known) {
            return;
        }
        tokens.rotate_right(1);
        tokens[0] = Some(Arc::new(valid));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pinned_wire::attestation::{LEEWAY, LIFETIME, mint};

    use super::*;

    const SECRET: &str = "the secret of a worker";

    fn key() -> TokenKey {
        TokenKey::new(SECRET)
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
    }

    fn anonymous(second: u64) -> String {
        mint(SECRET, &Claims::new("session", at(second)))
    }

    // W8.4: each time, and not only the first.
    #[test]
    fn a_remembered_token_is_held_to_its_time_and_its_audience() {
        let recent = RecentTokens::default();
        let token = anonymous(0);
        let last = at(0) + LIFETIME + LEEWAY;
        for (audience, now, valid) in [
            ("session", at(0), true),
            ("another", at(0), false),
            ("session", last, true),
            ("session", last + Duration::from_nanos(1), false),
            ("session", at(0) - LEEWAY, true),
            ("session", at(0) - LEEWAY - Duration::from_nanos(1), false),
        ] {
            let plain = key().verify(&[audience], now, &token);
            assert_eq!(plain.is_some(), valid, "{audience} {now:?}");
            assert_eq!(recent.verify(&key(), &[audience], now, &token), plain);
        }
    }

    // W8.4
    #[test]
    fn a_token_that_differs_in_one_character_is_no_remembered_one() {
        let recent = RecentTokens::default();
        let token = anonymous(0);
        assert!(recent.verify(&key(), &["session"], at(0), &token).is_some());
        for index in 0..token.len() {
            let mut forged = token.clone().into_bytes();
            forged[index] = if forged[index] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).expect("ASCII");
            let found = recent.verify(&key(), &["session"], at(0), &forged);
            assert_eq!(found, None, "{index}");
        }
        for forged in [
            "",
            ".",
            "..",
            &token[..token.len() - 1],
            &format!("{token}."),
        ] {
            assert_eq!(recent.verify(&key(), &["session"], at(0), forged), None);
        }
    }

    #[test]
    fn the_newest_tokens_of_anonymous_callers_are_remembered_and_no_others() {
        let recent = RecentTokens::default();
        let known = |token: &str| {
            let (signed, signature) = token.rsplit_once('.').expect("a token");
            recent.find(signed, signature).is_some()
        };
        let named = Claims::new("session", at(0)).with_caller("/rooms/blue", 1);
        let named = mint(SECRET, &named);
        assert!(recent.verify(&key(), &["session"], at(0), &named).is_some());
        assert!(!known(&named));
        for second in 0..6 {
            let token = anonymous(second);
            assert!(recent.verify(&key(), &["session"], at(0), &token).is_some());
        }
        // Who has met it at the same time as another, and is later.
        recent.remember(Valid {
            signed: anonymous(5).rsplit_once('.').expect("a token").0.into(),
            signature: "".into(),
            claims: Claims::new("session", at(5)),
        });
        let seen: Vec<_> = (0..6).map(|second| known(&anonymous(second))).collect();
        assert_eq!(seen, [false, false, true, true, true, true]);
    }
}
