//! The handle that everything else is given.

use std::fmt;
use std::sync::Arc;

use rand::Rng as _;
use rand::rand_core::UnwrapErr;
use rand::rngs::SysRng;

use crate::{DomainBackend, EmptyLabel, Rng, RngStreams};

/// The source of time, tasks, randomness and tokens; cheap to clone, and clones are the same domain.
///
/// See the [crate documentation](crate) for what it is for.
#[derive(Clone)]
pub struct Domain {
    pub(crate) world: World,
}

/// The real world is its own case, so that reading its clock costs no dynamic call.
#[derive(Clone)]
pub(crate) enum World {
    Real(Arc<RngStreams>),
    Custom(Arc<dyn DomainBackend>),
}

impl Domain {
    /// System clocks, the tokio runtime, and randomness that differs in every process.
    ///
    /// The streams start from the operating system's entropy so that the members of a fleet do not draw the same
    /// jitter.
    ///
    /// # Panics
    /// When the operating system has no entropy to give.
    #[must_use]
    pub fn real() -> Self {
        let mut root = [0; 32];
        fill_from_system(&mut root);
        Self {
            world: World::Real(Arc::new(RngStreams::from_root(root))),
        }
    }

    /// As [`real`](Self::real), with streams that repeat for the same `seed`. Tokens stay unpredictable.
    #[must_use]
    pub fn real_seeded(seed: u64) -> Self {
        Self {
            world: World::Real(Arc::new(RngStreams::seeded(seed))),
        }
    }

    /// A world of the caller's own, such as a simulation.
    #[must_use]
    pub fn custom(backend: Arc<dyn DomainBackend>) -> Self {
        Self {
            world: World::Custom(backend),
        }
    }

    /// Whether this is the real world: then threads and other processes live by the same clock as its tasks.
    ///
    /// ```
    /// # use pinned_domain::Domain;
    /// assert!(Domain::real().is_real());
    /// ```
    #[must_use]
    pub fn is_real(&self) -> bool {
        matches!(self.world, World::Real(_))
    }

    /// The stream of random numbers behind `label`.
    ///
    /// There is one per label: asking again goes on where the last draw left off, and draws under one label never
    /// shift another's. A stream is kept as long as its domain, so labels should name places in the code rather
    /// than ids.
    ///
    /// # Errors
    /// [`EmptyLabel`] when `label` is empty.
    ///
    /// ```
    /// # use pinned_domain::Domain;
    /// # fn main() -> Result<(), pinned_domain::EmptyLabel> {
    /// let (one, other) = (Domain::real_seeded(7), Domain::real_seeded(7));
    /// other.rng("backoff")?.u64();
    /// assert_eq!(one.rng("sweep")?.u64(), other.rng("sweep")?.u64());
    /// # Ok(()) }
    /// ```
    pub fn rng(&self, label: &str) -> Result<Rng, EmptyLabel> {
        match &self.world {
            World::Real(streams) => streams.get(label),
            World::Custom(_) if label.is_empty() => Err(EmptyLabel),
            World::Custom(backend) => Ok(backend.rng(label)),
        }
    }

    /// A new token of `bytes` random bytes, as `2 * bytes` lower-case hex digits.
    ///
    /// On the real domain the bytes come from the operating system and are fit for secrets.
    ///
    /// # Panics
    /// When the operating system has no entropy to give.
    #[must_use]
    pub fn token_hex(&self, bytes: usize) -> String {
        let mut token = vec![0; bytes];
        match &self.world {
            World::Real(_) => fill_from_system(&mut token),
            World::Custom(backend) => backend.fill_token(&mut token),
        }
        hex(&token)
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Seeds stay out: from one, every later draw follows.
        f.write_str(match self.world {
            World::Real(_) => "Domain::Real",
            World::Custom(_) => "Domain::Custom",
        })
    }
}

fn fill_from_system(bytes: &mut [u8]) {
    UnwrapErr(SysRng).fill_bytes(bytes);
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .map(|nibble| char::from(DIGITS[usize::from(nibble)]))
        .collect()
}
