//! All issuers, and the tokens that were found good.

use std::time::SystemTime;

use ahash::RandomState;
use pinned_domain::Domain;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use tokio::time::Instant;

use super::compact::Compact;
use super::provider::{JwtProvider, Verdict, Vouched};
use crate::passport::Principal;
use crate::passport::digest::TokenDigest;

/// How many bytes of tokens are remembered, counted as they were sent. What is kept of one takes a few times that; a dozen at the
/// worst, when all it says is in the smallest members.
const REMEMBERED_BYTES: u64 = 8 << 20;
/// What remembering a token costs beside what it says.
const ENTRY_BYTES: u64 = 512;

/// All issuers, and the tokens that were found good: checking a signature takes longer than all else that a request needs.
#[derive(Debug)]
pub(in crate::passport) struct JwtProviders {
    providers: Vec<JwtProvider>,
    good: Cache<TokenDigest, Good, ByLength, RandomState>,
    domain: Domain,
}

/// A token that was found good: with the keys that its provider had, and for as long as it lasts.
#[derive(Clone, Debug)]
struct Good {
    provider: usize,
    vouched: Vouched,
    length: usize,
}

#[derive(Clone, Debug)]
struct ByLength;

impl Weighter<TokenDigest, Good> for ByLength {
    fn weight(&self, _: &TokenDigest, good: &Good) -> u64 {
        ENTRY_BYTES + good.length as u64
    }
}

/// What can be said of a token without waiting.
pub(in crate::passport) enum Found {
    /// Whose it is; nobody's, mostly.
    Now(Option<Principal>),
    /// It may be someone's, once keys have been fetched: ask [`JwtProviders::find_later`].
    Later,
}

impl JwtProviders {
    pub(in crate::passport) fn new(providers: Vec<JwtProvider>, domain: &Domain) -> Self {
        let options = OptionsBuilder::new()
            .estimated_items_capacity((REMEMBERED_BYTES / (2 * ENTRY_BYTES)) as usize)
            .weight_capacity(REMEMBERED_BYTES)
            .build()
            .expect("both capacities are given");
        let good = Cache::with_options(
            options,
            ByLength,
            RandomState::new(),
            DefaultLifecycle::default(),
        );
        Self {
            providers,
            good,
            domain: domain.clone(),
        }
    }

    /// The providers.
    pub(in crate::passport) fn iter(&self) -> impl Iterator<Item = &JwtProvider> {
        self.providers.iter()
    }

    /// Whose token it is, as far as that can be said without waiting.
    pub(in crate::passport) fn find(&self, token: &str, digest: &TokenDigest) -> Found {
        let (now, wall) = (self.domain.monotonic(), self.domain.now());
        if let Some(principal) = self.recall(digest, now, wall) {
            return Found::Now(Some(principal));
        }
        let Some(compact) = Compact::parse(token) else {
            return Found::Now(None);
        };
        let mut found = Found::Now(None);
        for (index, provider) in self.providers.iter().enumerate() {
            match provider.verify(&compact, now, wall) {
                Verdict::Vouched(vouched) => {
                    return Found::Now(Some(self.remember(index, token, digest, vouched)));
                }
                Verdict::UnknownKey if provider.remote().is_some_and(|keys| keys.may_refresh()) => {
                    found = Found::Later;
                }
                Verdict::UnknownKey | Verdict::Refused => {}
            }
        }
        found
    }

    /// As [`find`](Self::find), and fetches the keys of providers that could know the token by a new one.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(in crate::passport) async fn find_later(
        &self,
        token: &str,
        digest: &TokenDigest,
    ) -> Option<Principal> {
        let compact = Compact::parse(token)?;
        for (index, provider) in self.providers.iter().enumerate() {
            let verify = || provider.verify(&compact, self.domain.monotonic(), self.domain.now());
            let mut verdict = verify();
            if let (Verdict::UnknownKey, Some(keys)) = (&verdict, provider.remote()) {
                keys.refresh().await;
                verdict = verify();
            }
            if let Verdict::Vouched(vouched) = verdict {
                return Some(self.remember(index, token, digest, vouched));
            }
        }
        None
    }

    /// A token that was found good, if it still is.
    fn recall(&self, digest: &TokenDigest, now: Instant, wall: SystemTime) -> Option<Principal> {
        let good = self.good.get(digest)?;
        let provider = &self.providers[good.provider];
        if let Some(keys) = provider.remote() {
            keys.keep_fresh(now);
        }
        let vouched = good.vouched;
        if vouched.generation == provider.generation() && vouched.validity.holds(wall) {
            return Some(vouched.principal);
        }
        self.good.remove(digest);
        None
    }

    fn remember(
        &self,
        provider: usize,
        token: &str,
        digest: &TokenDigest,
        vouched: Vouched,
    ) -> Principal {
        let principal = vouched.principal.clone();
        let good = Good {
            provider,
            vouched,
            length: token.len(),
        };
        self.good.insert(*digest, good);
        principal
    }
}
