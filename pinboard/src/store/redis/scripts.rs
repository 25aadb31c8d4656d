//! The scripts, as the server is given them.

use std::sync::LazyLock;

/// One script.
pub(super) struct Script {
    /// The whole of it.
    pub(super) source: String,
    /// What the server knows it by.
    pub(super) sha: String,
}

impl Script {
    fn new(flags: &str, parts: &[&str]) -> Self {
        let source = format!("#!lua{flags}\n{}", parts.concat());
        let sha = redis::Script::new(&source).get_hash().to_owned();
        Self { source, sha }
    }
}

macro_rules! scripts {
    ($($name:ident = $flags:expr, [$($file:literal),+];)+) => {
        $(pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new($flags, &[$(include_str!(concat!("scripts/", $file, ".lua"))),+])
        });)+

        /// All of them.
        pub(super) fn all() -> impl Iterator<Item = &'static Script> {
            [$(&*$name),+].into_iter()
        }
    };
}

/// Refused when the server's memory is full.
const GROWS: &str = "";
/// What a fleet needs to go on, or to give something back, also when memory is full.
const ALWAYS: &str = " flags=allow-oom";

scripts! {
    BOOT = ALWAYS, ["prelude", "boot"];
    SELFTEST = GROWS, ["prelude", "selftest"];

    CLAIMS = GROWS, ["claims"];
    CLAIM = GROWS, ["prelude", "shard", "claim"];
    RECLAIM = ALWAYS, ["prelude", "shard", "reclaim"];
    RELEASE = ALWAYS, ["prelude", "shard", "release"];
    FENCE = ALWAYS, ["prelude", "shard", "fence"];
    ROW = ALWAYS, ["prelude", "shard", "row"];
    BEGIN = ALWAYS, ["prelude", "shard", "begin"];
    RENEW = ALWAYS, ["prelude", "shard", "renew"];
    END = ALWAYS, ["prelude", "shard", "end"];
    DEAD = ALWAYS, ["prelude", "shard", "dead"];
    SWEEP = ALWAYS, ["prelude", "shard", "sweep"];

    PEEK = ALWAYS, ["prelude", "fleet", "peek"];
    REGISTER = ALWAYS, ["prelude", "fleet", "register"];
    HEARTBEAT = ALWAYS, ["prelude", "fleet", "heartbeat"];
    FINISH = ALWAYS, ["prelude", "fleet", "finish"];
    SINCE = ALWAYS, ["prelude", "fleet", "since"];
    CLIENT = ALWAYS, ["prelude", "fleet", "client"];
    DRAIN = ALWAYS, ["prelude", "fleet", "drain"];
    QUEUE = GROWS, ["prelude", "fleet", "queue"];
    TIDY = ALWAYS, ["prelude", "fleet", "tidy"];
    APPEND = GROWS, ["prelude", "append"];
    LEAD = ALWAYS, ["prelude", "lead"];
}
