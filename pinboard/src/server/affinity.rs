//! Which processor a lane keeps to.

use std::convert::Infallible;
use std::future::pending;

use pinned_domain::Domain;

/// The processors of so many lanes, one each; none, unless there are exactly as many as this process may use.
///
/// Two busy lanes that the system puts on one processor wait for each other for as long as its clock ticks, some milliseconds,
/// until it moves one of them. So a lane that is busy keeps to a processor of its own. One that is not goes where the system
/// wakes it soonest, which is often where whoever wakes it runs.
///
/// With fewer lanes than processors, as where a container has a quota, keeping to some of them would do harm: others may have
/// been told to keep to the same.
pub(super) fn processors(lanes: usize) -> Option<Vec<Processor>> {
    let usable = system::usable()?;
    (usable.len() == lanes && lanes > 1).then_some(usable)
}

/// Has this thread keep to `processor` while it is busy. Ends never.
///
/// # Cancel safety
///
/// The thread keeps to what it keeps to then.
pub(super) async fn follow_load(processor: Option<Processor>, domain: &Domain) -> Infallible {
    let Some(mut kept) = processor.and_then(system::Kept::new) else {
        return pending().await;
    };
    loop {
        domain.sleep(system::LOOK).await;
        if let Err(error) = kept.look() {
            tracing::debug!(target: "pinboard::server", %error, "a lane cannot keep to a processor");
            return pending().await;
        }
    }
}

pub(super) use system::Processor;

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::time::Duration;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use rustix::time::{ClockId, clock_gettime};

    /// How often a lane looks at how busy it is.
    pub(super) const LOOK: Duration = Duration::from_millis(250);
    /// From which share of the time on it is busy, and below which it is not any more.
    const BUSY: (f64, f64) = (0.35, 0.25);

    /// One that this process may use.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) struct Processor(usize);

    pub(super) fn usable() -> Option<Vec<Processor>> {
        let set = sched_getaffinity(None).ok()?;
        let usable = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        Some(usable.map(Processor).collect())
    }

    /// What this thread keeps to.
    pub(super) struct Kept {
        own: CpuSet,
        any: CpuSet,
        is_own: bool,
        looked_at: Times,
    }

    /// The processor time of this thread, and the time.
    #[derive(Clone, Copy)]
    struct Times {
        spent: Duration,
        passed: Duration,
    }

    impl Kept {
        pub(super) fn new(processor: Processor) -> Option<Self> {
            let mut own = CpuSet::new();
            own.set(processor.0);
            Some(Self {
                own,
                any: sched_getaffinity(None).ok()?,
                is_own: false,
                looked_at: Times::now(),
            })
        }

        /// Looks at how busy the thread has been since the last look.
        pub(super) fn look(&mut self) -> io::Result<()> {
            let now = Times::now();
            let share = now.share_since(self.looked_at);
            self.looked_at = now;
            self.follow(share)
        }

        pub(super) fn follow(&mut self, share: f64) -> io::Result<()> {
            let (from, below) = BUSY;
            let busy = share >= if self.is_own { below } else { from };
            if busy != self.is_own {
                sched_setaffinity(None, if busy { &self.own } else { &self.any })?;
                self.is_own = busy;
            }
            Ok(())
        }
    }

    impl Times {
        fn now() -> Self {
            let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
            Self {
                spent: read(ClockId::ThreadCPUTime),
                passed: read(ClockId::Monotonic),
            }
        }

        fn share_since(self, earlier: Self) -> f64 {
            let passed = self.passed.saturating_sub(earlier.passed).as_secs_f64();
            let spent = self.spent.saturating_sub(earlier.spent).as_secs_f64();
            if passed > 0.0 { spent / passed } else { 0.0 }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::time::Duration;

    pub(super) const LOOK: Duration = Duration::from_secs(1);

    /// Not known here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) enum Processor {}

    pub(super) fn usable() -> Option<Vec<Processor>> {
        None
    }

    pub(super) struct Kept(Processor);

    impl Kept {
        pub(super) fn new(processor: Processor) -> Option<Self> {
            match processor {}
        }

        pub(super) fn look(&mut self) -> io::Result<()> {
            match self.0 {}
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn lanes_keep_to_processors_only_where_each_has_one() {
        assert_eq!(processors(0), None);
        assert_eq!(processors(1), None);
        assert_eq!(processors(100_000), None);
        let usable = system::usable().expect("the system tells");
        if usable.len() > 1 {
            assert_eq!(processors(usable.len() - 1), None);
            assert_eq!(processors(usable.len()), Some(usable));
        }
    }

    #[test]
    fn a_lane_keeps_to_its_processor_while_it_is_busy() {
        // A thread of its own: what it keeps to goes with it.
        let thread = std::thread::spawn(|| {
            let all = system::usable().expect("the system tells");
            let own = *all.last().expect("it runs on one");
            let mut kept = system::Kept::new(own).expect("the system tells");
            for (share, expected) in [
                (0.3, all.clone()),
                (0.4, vec![own]),
                (0.3, vec![own]),
                (0.1, all.clone()),
                (0.3, all),
            ] {
                kept.follow(share).expect("it may");
                assert_eq!(system::usable(), Some(expected), "{share}");
            }
        });
        thread.join().expect("no panic");
    }
}
