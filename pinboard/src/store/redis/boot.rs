//! Making ready, and the quarantine.

use std::time::Duration;

use redis::cmd;

use super::RedisStore;
use super::answer::only;
use super::keys::Place;
use super::request::{Call, Request};
use super::scripts::{BOOT, SELFTEST};
use crate::store::StoreError;

/// For how long a store that does not answer yet is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// How long what the test of itself leaves behind is kept.
const LEFTOVERS: Duration = Duration::from_secs(60);

impl RedisStore {
    /// Writes the boot marks that are missing, and tries that the server keeps its promises.
    pub(super) async fn make_ready(&self) -> Result<(), StoreError> {
        let domain = self.router.domain();
        let start = domain.monotonic();
        loop {
            match self.test_itself().await {
                Err(error) if error.is_transient() && domain.monotonic() - start < PATIENCE => {
                    domain.sleep(PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// A compare-and-set that must fail, and one that must not, in every place.
    async fn test_itself(&self) -> Result<(), StoreError> {
        self.longest_quarantine(Duration::ZERO).await?;
        let token = self.router.domain().token_hex(16);
        let requests = Place::all(self.options.shards).map(|place| {
            // Of its own for each test: several nodes may try at once.
            let key = place.key_of("selftest", &token);
            let set = |from: &str, to: &str| {
                Call::with_keys(&SELFTEST, vec![place.key("boot"), key.clone()])
                    .arg(from)
                    .arg(to)
                    .millis(LEFTOVERS)
            };
            let (mut first, mut last, mut clear) = (cmd("SET"), cmd("GET"), cmd("DEL"));
            first
                .arg(&key)
                .arg("first")
                .arg("PX")
                .arg(LEFTOVERS.as_millis() as u64);
            last.arg(&key);
            clear.arg(&key);
            Request::new(place)
                .plain(first)
                .call(set("other", "wrong"))
                .plain(last.clone())
                .call(set("first", "second"))
                .plain(last)
                .plain(clear)
        });
        let expected = (0, "first".to_owned(), 1, "second".to_owned());
        for answers in self.router.all(requests.collect()).await? {
            let answers = answers.into_iter().skip(1).take(4).collect();
            let found: (u64, String, u64, String) =
                super::answer::read(redis::Value::Array(answers))?;
            if found != expected {
                return Err(StoreError::Unusable(format!(
                    "a compare-and-set that must fail, and one that must succeed, came to {found:?} instead of {expected:?}"
                )));
            }
        }
        Ok(())
    }

    /// What is left of the quarantine, which is made `at_least` so long.
    pub(super) async fn longest_quarantine(
        &self,
        at_least: Duration,
    ) -> Result<Option<Duration>, StoreError> {
        let requests = Place::all(self.options.shards).map(|place| {
            let boot = Call::with_keys(&BOOT, vec![place.key("boot")]).millis(at_least);
            boot.at(place)
        });
        let answers = self.router.all(requests.collect()).await?;
        let mut longest = 0;
        // The fleet's mark comes last, and keeps nothing from being placed.
        for answers in answers.into_iter().take(usize::from(self.options.shards)) {
            longest = longest.max(only::<u64>(answers)?);
        }
        Ok((longest > 0).then(|| Duration::from_millis(longest)))
    }
}
