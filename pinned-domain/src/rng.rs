//! Labelled streams of random numbers.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::ChaCha12Rng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use sha2::{Digest as _, Sha256};

/// A stream of random numbers was asked for without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a random stream needs a label that is not empty")]
pub struct EmptyLabel;

/// One stream of random numbers; clones draw from the same one.
///
/// The numbers are reproducible, and therefore no secrets: tokens come from
/// [`Domain::token_hex`](crate::Domain::token_hex).
#[derive(Clone)]
pub struct Rng {
    stream: Arc<Mutex<ChaCha12Rng>>,
}

impl Rng {
    /// A stream that starts at `seed`, for a [`DomainBackend`](crate::DomainBackend) that derives its own seeds.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self {
            stream: Arc::new(Mutex::new(ChaCha12Rng::from_seed(seed))),
        }
    }

    /// A number from `range`; its start when the range is empty.
    pub fn uniform(&self, range: Range<f64>) -> f64 {
        let unit: f64 = self.stream.lock().random();
        if range.is_empty() {
            range.start
        } else {
            range.start + (range.end - range.start) * unit
        }
    }

    /// Any number.
    pub fn u64(&self) -> u64 {
        self.stream.lock().next_u64()
    }

    /// A number from `0..n`.
    ///
    /// # Panics
    /// When `n` is zero.
    pub fn below(&self, n: u64) -> u64 {
        self.stream.lock().random_range(0..n)
    }

    /// Several draws at once, or a distribution of the `rand` crate, with no other draw in between.
    ///
    /// `draw` must not use the same stream through another handle; it would wait for itself.
    ///
    /// ```
    /// # use pinned_domain::Domain;
    /// use rand::seq::SliceRandom as _;
    ///
    /// # fn main() -> Result<(), pinned_domain::EmptyLabel> {
    /// let mut workers = ["a", "b", "c"];
    /// Domain::real().rng("order")?.with(|rng| workers.shuffle(rng));
    /// # Ok(()) }
    /// ```
    pub fn with<T>(&self, draw: impl FnOnce(&mut ChaCha12Rng) -> T) -> T {
        draw(&mut self.stream.lock())
    }
}

impl fmt::Debug for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rng")
    }
}

/// The streams of one seed, each made from the seed and its label alone when it is first asked for.
pub struct RngStreams {
    root: [u8; 32],
    streams: Mutex<HashMap<Box<str>, Rng>>,
}

impl RngStreams {
    /// The streams of `seed`.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut root = [0; 32];
        root[..8].copy_from_slice(&seed.to_le_bytes());
        Self::from_root(root)
    }

    pub(crate) fn from_root(root: [u8; 32]) -> Self {
        Self {
            root,
            streams: Mutex::default(),
        }
    }

    /// The stream behind `label`; asking again goes on where the last draw left off.
    ///
    /// # Errors
    /// [`EmptyLabel`] when `label` is empty.
    pub fn get(&self, label: &str) -> Result<Rng, EmptyLabel> {
        if label.is_empty() {
            return Err(EmptyLabel);
        }
        let mut streams = self.streams.lock();
        if let Some(stream) = streams.get(label) {
            return Ok(stream.clone());
        }
        let seed = Sha256::new()
            .chain_update(self.root)
            .chain_update(label)
            .finalize();
        let stream = Rng::from_seed(seed.into());
        streams.insert(label.into(), stream.clone());
        Ok(stream)
    }
}

impl fmt::Debug for RngStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RngStreams").finish_non_exhaustive()
    }
}
