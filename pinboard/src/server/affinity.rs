//! Which processor a lane keeps to.

use std::io;

/// A processor for each of so many lanes; none, unless there are exactly as many as this process may use.
///
/// Two lanes that the system puts on one processor wait for each other for as long as its clock ticks, some milliseconds, as
/// long as nothing moves one of them. With fewer lanes than processors, as where a container has a quota, keeping to some of
/// them would do harm: others may have been told to keep to the same.
pub(super) fn processors(lanes: usize) -> Option<Vec<Processor>> {
    let usable = system::usable()?;
    (usable.len() == lanes && lanes > 1).then_some(usable)
}

pub(super) use system::Processor;

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::io;

    /// One that this process may use.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) struct Processor(usize);

    pub(super) fn usable() -> Option<Vec<Processor>> {
        let set = sched_getaffinity(None).ok()?;
        let usable = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        Some(usable.map(Processor).collect())
    }

    impl Processor {
        /// Keeps this thread to it.
        pub(in super::super) fn keep(self) -> io::Result<()> {
            let mut set = CpuSet::new();
            set.set(self.0);
            Ok(sched_setaffinity(None, &set)?)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::io;

    /// Not known here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in super::super) enum Processor {}

    pub(super) fn usable() -> Option<Vec<Processor>> {
        None
    }

    impl Processor {
        pub(in super::super) fn keep(self) -> io::Result<()> {
            match self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_keep_to_processors_only_where_each_has_one() {
        assert_eq!(processors(0), None);
        assert_eq!(processors(1), None);
        assert_eq!(processors(100_000), None);
        if let Some(usable) = system::usable().filter(|usable| usable.len() > 1) {
            assert_eq!(processors(usable.len() - 1), None);
            let processors = processors(usable.len()).expect("each has one");
            assert_eq!(processors, usable);
            // A thread of its own: what it keeps to goes with it.
            let kept = std::thread::spawn(move || {
                processors[1].keep().expect("it may use it");
                system::usable()
            });
            assert_eq!(kept.join().expect("no panic"), Some(vec![usable[1]]));
            assert_eq!(system::usable(), Some(usable));
        }
    }
}
