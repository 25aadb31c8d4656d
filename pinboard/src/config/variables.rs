//! The variables that a node reads: for its errors, its `--help` and its reference alike.

/// One variable of the environment.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it takes, as an error says it.
    pub takes: &'static str,
    /// What holds when it is not set.
    pub default: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Whether its value is never shown.
    pub secret: bool,
}

const fn open(
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    about: &'static str,
) -> Variable {
    Variable {
        name,
        takes,
        default,
        about,
        secret: false,
    }
}

const fn secret(
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    about: &'static str,
) -> Variable {
    Variable {
        name,
        takes,
        default,
        about,
        secret: true,
    }
}

pub(super) const PORT: Variable = open(
    "PORT",
    "a port from 0 to 65535",
    "8080",
    "where it listens; 0 takes any free port",
);
pub(super) const BIND: Variable = open(
    "BIND",
    "an IP address such as 127.0.0.1 or ::",
    "0.0.0.0; 127.0.0.1 for a dev node without a passport",
    "on which address it listens",
);
pub(super) const REDIS_URL: Variable = secret(
    "REDIS_URL",
    "`memory:`, or the URL of a Redis: redis://, rediss:// (TLS), redis+cluster:// or rediss+cluster://, then [[USER]:PASSWORD@]HOST[:PORT][/DATABASE]",
    "memory: (one dev node)",
    "where the state of the fleet is kept",
);
pub(super) const PASSPORT: Variable = secret(
    "PINBOARD_PASSPORT",
    "a JSON object: {\"providers\": [...], \"namespaces\": {...}}",
    "in dev mode: one key that may do everything",
    "who may register workers, operate the fleet, and call which namespace",
);
pub(super) const LEASE_TTL: Variable = open(
    "PINBOARD_LEASE_TTL_MS",
    "milliseconds from 100 to 3600000",
    "15000",
    "how long a worker lives after its last heartbeat",
);
pub(super) const SWEEP_INTERVAL: Variable = open(
    "PINBOARD_SWEEP_INTERVAL_MS",
    "milliseconds from 10 to 3600000",
    "1000",
    "how often a node reads the list of sessions, sweeps, and scans for durable work",
);
pub(super) const POSTGRES: Variable = secret(
    "PINBOARD_DURABILITY_POSTGRES_URL",
    "a DSN of PostgreSQL: postgres://USER:PASSWORD@HOST:PORT/DATABASE",
    "no scanner",
    "where the workers keep durable work; ids with marked rows and no live holder are placed and woken",
);
pub(super) const SHARDS: Variable = open(
    "PINBOARD_SHARDS",
    "a number from 1 to 1024",
    "16",
    "over how many Redis hash slots the placements are spread; the same on every node",
);
pub(super) const HOSTNAME_AWARE: Variable = open(
    "PINBOARD_HOSTNAME_AWARE",
    "on or off (also 1 or 0, true or false, yes or no)",
    "off",
    "routes by the Host header as well; comes with the next release",
);
pub(super) const EPOCH: Variable = open(
    "PINBOARD_EPOCH",
    "a whole number from 0 to 9007199254740991",
    "0",
    "the epoch of the fleet license: a higher one displaces nodes of another configuration",
);
pub(super) const LOG_LEVEL: Variable = open(
    "LOG_LEVEL",
    "off, error, warn, info, debug or trace, or directives such as info,pinboard::proxy=debug",
    "info",
    "what is logged",
);
pub(super) const MAX_CONNECTIONS: Variable = open(
    "PINBOARD_MAX_CONNECTIONS",
    "a number from 1 to 10000000",
    "from the limit of open files",
    "how many client connections are held at most; above that, 503",
);
pub(super) const LANES: Variable = open(
    "PINBOARD_LANES",
    "a number from 1 to 256",
    "one for each processor that the process may use",
    "how many threads serve clients; set fewer where other programs keep the processors busy",
);
pub(super) const TOKEN: Variable = secret(
    "PINBOARD_TOKEN",
    "a token: visible ASCII characters without spaces",
    "a fresh one, shown once at the start",
    "the token of a dev node's one key, when there is no passport",
);
pub(super) const ALLOW_DEV: Variable = open(
    "PINBOARD_ALLOW_DEV_IN_PRODUCTION",
    "1, or nothing",
    "unset",
    "lets a dev node start although one of the three variables below says production",
);
pub(super) const MODES: [Variable; 3] = [mode("NODE_ENV"), mode("ENVIRONMENT"), mode("APP_ENV")];

const fn mode(name: &'static str) -> Variable {
    open(
        name,
        "any text",
        "unset",
        "`production` or `prod` keeps a dev node from starting",
    )
}

/// Every variable that a node reads, in the order of its reference.
pub const VARIABLES: &[Variable] = &[
    PORT,
    BIND,
    REDIS_URL,
    PASSPORT,
    LEASE_TTL,
    SWEEP_INTERVAL,
    POSTGRES,
    SHARDS,
    HOSTNAME_AWARE,
    EPOCH,
    LOG_LEVEL,
    MAX_CONNECTIONS,
    LANES,
    TOKEN,
    ALLOW_DEV,
    MODES[0],
    MODES[1],
    MODES[2],
];
