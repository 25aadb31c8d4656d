//! How a private Redis is set up.

/// The settings of a private Redis.
///
/// ```
/// use pinned_testing::{RedisOptions, RedisPersistence};
///
/// let options = RedisOptions { persistence: RedisPersistence::Aof };
/// assert_ne!(options, RedisOptions::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedisOptions {
    /// What is left of the data after a kill and a restart.
    pub persistence: RedisPersistence,
}

/// What Redis keeps on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedisPersistence {
    /// Nothing: a restart finds it empty.
    #[default]
    None,
    /// The append-only file, synced before each answer: a restart finds all that was acknowledged.
    Aof,
}

impl RedisPersistence {
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::None => &["--save", "", "--appendonly", "no"],
            Self::Aof => &[
                "--save",
                "",
                "--appendonly",
                "yes",
                // Synced once a second, an acknowledged write may be in memory alone while a sync is under way.
                "--appendfsync",
                "always",
                // No process beside the server, which would outlive a kill.
                "--auto-aof-rewrite-percentage",
                "0",
            ],
        }
    }
}
