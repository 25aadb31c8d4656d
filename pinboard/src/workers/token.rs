//! The attestation of anonymous requests, minted at most once a second.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use http::HeaderValue;
use parking_lot::Mutex;
use tokio::time::Instant;

/// For how long a token is used.
const KEPT: Duration = Duration::from_secs(1);

/// How old a token may be that is used because a newer one is just being minted: far less than what it is good for.
const STILL_GOOD: Duration = Duration::from_secs(10);

/// The latest token. Reading it takes no lock.
#[derive(Default)]
pub(super) struct TokenCache {
    kept: ArcSwapOption<Minted>,
    /// Held by the one who mints the next.
    minting: Mutex<()>,
}

struct Minted {
    at: Instant,
    header: HeaderValue,
}

impl Minted {
    /// A request that read the clock a moment before this was minted may have it as well.
    fn is_younger_than(&self, age: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < age
    }
}

impl TokenCache {
    /// Gives `take` a token that is less than a second old by `now`; while another thread mints, one of less than ten. `mint`
    /// makes it, by the wall clock. Of all who find it too old, one mints.
    #[inline]
    pub(super) fn with<T>(
        &self,
        now: Instant,
        mint: impl Fn() -> HeaderValue,
        take: impl FnOnce(&HeaderValue) -> T,
    ) -> T {
        {
            let kept = self.kept.load();
            if let Some(kept) = kept
                .as_deref()
                .filter(|kept| kept.is_younger_than(KEPT, now))
            {
                return take(&kept.header);
            }
        }
        let minted = self.renewed(now, || {
            Arc::new(Minted {
                at: now,
                header: mint(),
            })
        });
        take(&minted.header)
    }

    fn renewed(&self, now: Instant, fresh: impl Fn() -> Arc<Minted>) -> Arc<Minted> {
        let young = |age| {
            let kept = self.kept.load_full();
            kept.filter(|kept| kept.is_younger_than(age, now))
        };
        let Some(_minting) = self.minting.try_lock() else {
            return young(STILL_GOOD).unwrap_or_else(fresh);
        };
        // Whoever held the lock a moment ago may have minted it.
        if let Some(kept) = young(KEPT) {
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

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use pinned_domain::Domain;
    use pinned_wire::attestation::{Claims, mint, verify};

    use super::*;

    /// Two clocks that can be set apart.
    struct Clocks {
        start: Instant,
        cache: TokenCache,
    }

    impl Clocks {
        fn new() -> Self {
            Self {
                start: Domain::real().monotonic(),
                cache: TokenCache::default(),
            }
        }

        /// A token when the monotonic clock has gone on for `millis` and the wall clock shows `wall`.
        fn token(&self, millis: u64, wall: SystemTime) -> HeaderValue {
            let mint = || header(&mint("0f1e2d", &Claims::new("session-1", wall)));
            let now = self.start + Duration::from_millis(millis);
            self.cache.with(now, mint, HeaderValue::clone)
        }

        /// The same, when both have gone on alike.
        fn token_at(&self, millis: u64) -> HeaderValue {
            self.token(millis, at(millis))
        }
    }

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + Duration::from_millis(millis)
    }

    /// Whether two are one allocation, and so one minting.
    fn same(one: &HeaderValue, other: &HeaderValue) -> bool {
        one.as_bytes().as_ptr() == other.as_bytes().as_ptr()
    }

    // P6.1, W8.3
    #[test]
    fn a_token_is_minted_once_a_second() {
        let clocks = Clocks::new();
        let first = clocks.token_at(0);
        assert!(same(&first, &clocks.token_at(999)));
        let second = clocks.token_at(1_000);
        assert!(!same(&first, &second));
        let text = second.to_str().expect("text");
        let claims = verify("0f1e2d", &["session-1"], at(1_000), text).expect("it is valid");
        assert_eq!((claims.iat, claims.exp), (1_800_000_001, 1_800_000_031));
    }

    #[test]
    fn a_wall_clock_that_is_set_back_gets_tokens_of_its_time() {
        let clocks = Clocks::new();
        clocks.token(0, at(3_600_000));
        let text = clocks.token(1_000, at(0));
        let text = text.to_str().expect("text");
        assert!(verify("0f1e2d", &["session-1"], at(0), text).is_some());
    }

    #[test]
    fn who_comes_while_another_mints_takes_the_last_one_if_it_is_not_old() {
        let clocks = Clocks::new();
        let first = clocks.token_at(0);
        let minting = clocks.cache.minting.lock();
        assert!(same(&first, &clocks.token_at(9_999)));
        let own = clocks.token_at(10_000);
        drop(minting);
        assert!(!same(&first, &own));
        let text = own.to_str().expect("text");
        assert!(verify("0f1e2d", &["session-1"], at(10_000), text).is_some());
    }

    #[test]
    fn who_read_the_clock_before_another_minted_takes_that_one() {
        let clocks = Clocks::new();
        let first = clocks.token_at(1_000);
        assert!(same(&first, &clocks.token_at(0)));
    }
}
