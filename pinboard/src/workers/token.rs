//! The attestation of anonymous requests, kept for the second in which it was minted.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use http::HeaderValue;
use parking_lot::Mutex;

/// How old a token may be that is used because a newer one is just being minted: far less than what it is good for.
const STILL_GOOD: u64 = 10;

/// The latest token. Reading it takes no lock.
#[derive(Default)]
pub(super) struct TokenCache {
    kept: ArcSwapOption<Minted>,
    /// Held by the one who mints the next.
    minting: Mutex<()>,
}

struct Minted {
    /// The second of `iat`.
    second: u64,
    header: HeaderValue,
}

impl TokenCache {
    /// Gives `take` the token of this second, which `mint` makes. Of all who ask when a second begins, one mints.
    pub(super) fn with<T>(
        &self,
        now: SystemTime,
        mint: impl Fn(SystemTime) -> HeaderValue,
        take: impl FnOnce(&HeaderValue) -> T,
    ) -> T {
        let second = unix_seconds(now);
        {
            let kept = self.kept.load();
            if let Some(kept) = kept.as_deref().filter(|kept| kept.second == second) {
                return take(&kept.header);
            }
        }
        let minted = self.renewed(second, || {
            Arc::new(Minted {
                second,
                header: mint(now),
            })
        });
        take(&minted.header)
    }

    fn renewed(&self, second: u64, fresh: impl Fn() -> Arc<Minted>) -> Arc<Minted> {
        let Some(_minting) = self.minting.try_lock() else {
            let good = |kept: &Arc<Minted>| {
                let age = second.checked_sub(kept.second);
                age.is_some_and(|age| age <= STILL_GOOD)
            };
            return self.kept.load_full().filter(good).unwrap_or_else(fresh);
        };
        // Whoever held the lock a moment ago may have minted it.
        if let Some(kept) = self.kept.load_full().filter(|kept| kept.second == second) {
            return kept;
        }
        let minted = fresh();
        self.kept.store(Some(Arc::clone(&minted)));
        minted
    }
}

/// A token as the value of a header that logs do not show.
pub(super) fn header(token: &str) -> HeaderValue {
    let mut value = HeaderValue::from_str(token)
        .expect("a token is base64url and dots, which a header can hold");
    value.set_sensitive(true);
    value
}

fn unix_seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pinned_wire::attestation::{Claims, mint, verify};

    use super::*;

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + Duration::from_millis(millis)
    }

    fn token(cache: &TokenCache, now: SystemTime) -> HeaderValue {
        let mint = |now| header(&mint("0f1e2d", &Claims::new("session-1", now)));
        cache.with(now, mint, HeaderValue::clone)
    }

    /// Whether two are one allocation, and so one minting.
    fn same(one: &HeaderValue, other: &HeaderValue) -> bool {
        one.as_bytes().as_ptr() == other.as_bytes().as_ptr()
    }

    // P6.1, W8.3
    #[test]
    fn a_token_is_minted_once_a_second() {
        let cache = TokenCache::default();
        let first = token(&cache, at(0));
        assert!(same(&first, &token(&cache, at(999))));
        let second = token(&cache, at(1_000));
        assert!(!same(&first, &second));
        let text = second.to_str().expect("text");
        let claims = verify("0f1e2d", &["session-1"], at(1_000), text).expect("it is valid");
        assert_eq!((claims.iat, claims.exp), (1_800_000_001, 1_800_000_031));
    }

    #[test]
    fn a_clock_that_is_set_back_gets_tokens_of_its_time() {
        let cache = TokenCache::default();
        token(&cache, at(3_600_000));
        let text = token(&cache, at(0));
        let text = text.to_str().expect("text");
        assert!(verify("0f1e2d", &["session-1"], at(0), text).is_some());
    }

    #[test]
    fn who_comes_while_another_mints_takes_the_last_one_if_it_is_not_old() {
        let cache = TokenCache::default();
        let first = token(&cache, at(0));
        let minting = cache.minting.lock();
        assert!(same(&first, &token(&cache, at(10_000))));
        let own = token(&cache, at(11_000));
        drop(minting);
        assert!(!same(&first, &own));
        let text = own.to_str().expect("text");
        assert!(verify("0f1e2d", &["session-1"], at(11_000), text).is_some());
    }
}
