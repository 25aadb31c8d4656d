//! How many connections this process can hold.

/// Kept for everything that is not a client's connection: the store, the scanner, probes, listeners, standard streams.
#[cfg(unix)]
const KEPT: u64 = 256;
/// A proxied connection has two ends.
#[cfg(unix)]
const FILES_PER_CONNECTION: u64 = 2;
/// Where the limit of open files is none, or not known.
const UNLIMITED: usize = 1_000_000;
const AT_LEAST: usize = 16;

/// Raises how many files this process may have open to the most that it is allowed to, and tells how many that are; `None` where
/// there is no limit.
///
/// The usual soft limit, 1024, is there for programs that use `select`; it would be used up by 500 proxied connections.
#[must_use]
pub fn raise_open_files() -> Option<u64> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        // Where it cannot be raised, what there is has to do.
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit.maximum,
            Err(_) => limit.current,
        }
    }
    #[cfg(not(unix))]
    None
}

/// How many connections fit into so many open files.
pub(super) fn connections_within(open_files: Option<u64>) -> usize {
    #[cfg(unix)]
    {
        open_files.map_or(UNLIMITED, |files| {
            let pairs = files.saturating_sub(KEPT) / FILES_PER_CONNECTION;
            usize::try_from(pairs).map_or(UNLIMITED, |pairs| pairs.clamp(AT_LEAST, UNLIMITED))
        })
    }
    #[cfg(not(unix))]
    {
        let _ = open_files;
        UNLIMITED.max(AT_LEAST)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    // P5.12
    #[test]
    fn each_connection_has_two_ends_and_something_is_left_over() {
        assert_eq!(connections_within(Some(1024)), 384);
        assert_eq!(connections_within(Some(1_048_576)), 524_160);
        assert_eq!(connections_within(Some(3)), 16);
        assert_eq!(connections_within(None), UNLIMITED);
    }
}
