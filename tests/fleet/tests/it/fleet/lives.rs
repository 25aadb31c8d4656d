//! One live instance per id (P4.6): what the activity of all workers must show.

use std::collections::{BTreeMap, HashMap};

use super::activity::{Event, Line};

/// How long a worker whose clock stood still may go on believing that an instance of its lives: until it has looked at
/// the clock and torn down, on a busy machine.
const MOMENT: u64 = 2_000_000;

/// Which process set an id up, or ran it, under which epoch.
pub(super) type Owners = BTreeMap<(String, u64), u32>;

/// What a run of workers did that kept the rule.
#[derive(Debug)]
pub(super) struct Lives {
    pub(super) activations: usize,
    /// What had to be put up with, from workers whose clock stood still or whose lease had passed.
    pub(super) excused: usize,
    pub(super) owners: Owners,
}

/// From the setup of an instance to its end.
#[derive(Debug)]
struct Life {
    pid: u32,
    epoch: u64,
    start: u64,
    /// None for one that lives yet.
    end: Option<u64>,
}

impl Life {
    fn end(&self) -> u64 {
        self.end.unwrap_or(u64::MAX)
    }
}

/// Stretches of time of each process, as microseconds from and to.
type Stretches = HashMap<u32, Vec<(u64, u64)>>;

/// When a worker could not, or did not, serve.
#[derive(Default)]
struct Absences {
    /// Its clock stood still: it was stopped, or the machine had no time for it.
    stopped: Stretches,
    /// Its lease had passed: what lives in it stays there, and serves nobody (H3.2, W17.3).
    lapsed: Stretches,
}

impl Absences {
    fn of(lines: &[Line]) -> Self {
        let mut absences = Self::default();
        for line in lines {
            let ago = line.at.saturating_sub(line.ms * 1000);
            let Self { stopped, lapsed } = &mut absences;
            match line.event {
                Event::Stopped => begin(stopped, line.pid, line.at),
                Event::Continued => end(stopped, line.pid, line.at),
                Event::Lapsed => begin(lapsed, line.pid, ago),
                Event::Restored => end(lapsed, line.pid, line.at),
                _ => {}
            }
        }
        // After the others, whose ends are found by being open yet.
        for line in lines.iter().filter(|line| line.event == Event::Stalled) {
            let ago = line.at.saturating_sub(line.ms * 1000);
            let of_process = absences.stopped.entry(line.pid).or_default();
            of_process.push((ago, line.at));
        }
        absences
    }

    /// Whether a life of `pid` that should have ended by `from` may have lasted to `to`.
    fn excuse(&self, pid: u32, from: u64, to: u64) -> bool {
        covered(&self.stopped, pid, from, to) || covered(&self.lapsed, pid, from, to)
    }
}

fn begin(stretches: &mut Stretches, pid: u32, at: u64) {
    stretches.entry(pid).or_default().push((at, u64::MAX));
}

fn end(stretches: &mut Stretches, pid: u32, at: u64) {
    let last = stretches
        .get_mut(&pid)
        .and_then(|of_process| of_process.last_mut());
    if let Some(last) = last.filter(|last| last.1 == u64::MAX) {
        last.1 = at;
    }
}

/// Whether one stretch began at or before `from`, and ended a moment before `to` at the earliest.
fn covered(stretches: &Stretches, pid: u32, from: u64, to: u64) -> bool {
    let of_process = stretches.get(&pid).map_or(&[][..], Vec::as_slice);
    of_process
        .iter()
        .any(|(begun, over)| *begun <= from && to <= over.saturating_add(MOMENT))
}

/// Checks that no two instances of an id served at one time, except where a worker had its clock stopped:
///
/// - two processes never set up or run an id under one epoch;
/// - lives of an id do not overlap, except with one in a worker that is stopped or whose lease has passed, until a moment
///   after that;
/// - no request is let in under an epoch after a higher one has begun, unless the worker was stopped until a moment ago;
/// - no request is let in by a worker whose lease has passed.
///
/// # Errors
///
/// Says what broke the rule.
pub(super) fn check(lines: &[Line]) -> Result<Lives, String> {
    let absences = Absences::of(lines);
    let owners = owners(lines)?;
    lapsed_runs(lines)?;
    let mut excused = late_runs(lines, &absences)?;
    let lives = lives(lines)?;
    for (id, lives) in &lives {
        excused += overlaps(id, lives, &absences)?;
    }
    Ok(Lives {
        activations: lives.values().map(Vec::len).sum(),
        excused,
        owners,
    })
}

fn owners(lines: &[Line]) -> Result<Owners, String> {
    let mut owners = Owners::new();
    for line in lines {
        if !matches!(line.event, Event::Start | Event::Run) {
            continue;
        }
        let owner = owners.entry((line.id.clone(), line.epoch));
        let owner = *owner.or_insert(line.pid);
        if owner != line.pid {
            return Err(format!(
                "{owner} and {} both had {} under epoch {}",
                line.pid, line.id, line.epoch
            ));
        }
    }
    Ok(owners)
}

/// How late a line may be: between being let in and writing that down, a handler is polled.
const LAG: u64 = 50_000;

fn lapsed_runs(lines: &[Line]) -> Result<(), String> {
    // When the lease of each was seen to have passed; while it is not known to run again.
    let mut lapsed: HashMap<u32, u64> = HashMap::new();
    let mut suspects: Vec<&Line> = Vec::new();
    for line in lines {
        match line.event {
            Event::Lapsed => {
                lapsed.insert(line.pid, line.at.saturating_sub(line.ms * 1000));
            }
            Event::Restored => {
                lapsed.remove(&line.pid);
                let still_lapsed = line.at.saturating_sub(line.ms * 1000);
                let found = suspects
                    .iter()
                    .find(|run| run.pid == line.pid && run.at < still_lapsed.saturating_sub(LAG));
                if let Some(run) = found {
                    return Err(format!("let in without a lease: {run:?} before {line:?}"));
                }
                suspects.retain(|run| run.pid != line.pid);
            }
            Event::Run if lapsed.get(&line.pid).is_some_and(|at| line.at > at + LAG) => {
                suspects.push(line);
            }
            _ => {}
        }
    }
    match suspects.first() {
        Some(run) => Err(format!("let in without a lease: {run:?}")),
        None => Ok(()),
    }
}

/// Checks what was let in; how many times a stopped worker has to be excused.
fn late_runs(lines: &[Line], absences: &Absences) -> Result<usize, String> {
    let mut highest: HashMap<&str, &Line> = HashMap::new();
    let mut excused = 0;
    for line in lines {
        if !matches!(line.event, Event::Start | Event::Run) {
            continue;
        }
        let known = highest.entry(&line.id).or_insert(line);
        if line.epoch >= known.epoch {
            *known = line;
        } else if covered(&absences.stopped, line.pid, line.at, line.at) {
            excused += 1;
        } else {
            return Err(format!(
                "{} ran under epoch {} after epoch {} had begun: {line:?} after {known:?}",
                line.id, line.epoch, known.epoch
            ));
        }
    }
    Ok(excused)
}

fn lives(lines: &[Line]) -> Result<BTreeMap<&str, Vec<Life>>, String> {
    let mut lives: BTreeMap<&str, Vec<Life>> = BTreeMap::new();
    for line in lines {
        match line.event {
            Event::Start => {
                let of_id = lives.entry(&line.id).or_default();
                if let Some(other) = alive(of_id, line.pid) {
                    return Err(format!(
                        "{} was set up beside itself in one process: {line:?} within {other:?}",
                        line.id
                    ));
                }
                of_id.push(Life {
                    pid: line.pid,
                    epoch: line.epoch,
                    start: line.at,
                    end: None,
                });
            }
            Event::End => {
                let of_id = lives.get_mut(line.id.as_str());
                if let Some(life) = of_id.and_then(|of_id| alive(of_id, line.pid)) {
                    life.end = Some(line.at);
                }
            }
            Event::Died => {
                for life in lives
                    .values_mut()
                    .filter_map(|of_id| alive(of_id, line.pid))
                {
                    life.end = Some(line.at);
                }
            }
            _ => {}
        }
    }
    Ok(lives)
}

fn alive(lives: &mut [Life], pid: u32) -> Option<&mut Life> {
    let mut lives = lives.iter_mut().rev();
    lives.find(|life| life.pid == pid && life.end.is_none())
}

/// Checks the lives of one id, in the order of their beginnings; how many overlaps have to be excused.
fn overlaps(id: &str, lives: &[Life], absences: &Absences) -> Result<usize, String> {
    let mut excused = 0;
    for (index, newer) in lives.iter().enumerate() {
        for older in &lives[..index] {
            if older.end() <= newer.start {
                continue;
            }
            // Whoever has the lower epoch should not have been there.
            let loser = if older.epoch < newer.epoch {
                older
            } else {
                newer
            };
            if !absences.excuse(loser.pid, newer.start, loser.end()) {
                return Err(format!(
                    "two instances of {id} at one time: {older:?} and {newer:?}"
                ));
            }
            excused += 1;
        }
    }
    Ok(excused)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `at` in seconds.
    fn line(at: u64, pid: u32, event: Event, epoch: u64) -> Line {
        let id = if matches!(event, Event::Start | Event::Run | Event::End) {
            "a".to_owned()
        } else {
            String::new()
        };
        Line {
            at: at * 1_000_000,
            pid,
            event,
            id,
            epoch,
            ms: 0,
            item: String::new(),
        }
    }

    #[test]
    fn one_life_after_another_keeps_the_rule() {
        let lines = [
            line(1, 1, Event::Start, 1),
            line(2, 1, Event::End, 1),
            line(3, 2, Event::Start, 2),
            // Moved on in place (D18.3).
            line(4, 2, Event::Run, 3),
            line(5, 2, Event::Died, 0),
            line(6, 1, Event::Start, 4),
        ];
        let lives = check(&lines).expect("nothing is wrong");
        assert_eq!((lives.activations, lives.excused), (3, 0));
        assert_eq!(lives.owners.len(), 4);
    }

    #[test]
    fn an_overlap_is_found() {
        let lines = [
            line(1, 1, Event::Start, 1),
            line(2, 2, Event::Start, 2),
            line(3, 1, Event::End, 1),
        ];
        let error = check(&lines).expect_err("two at one time");
        assert!(error.contains("two instances of a"), "{error}");
        // The same where nobody ever ended.
        check(&lines[..2]).expect_err("two at one time");
    }

    #[test]
    fn a_late_handler_is_found_even_where_the_teardown_is_missing() {
        let lines = [
            line(1, 1, Event::Start, 1),
            line(2, 1, Event::End, 1),
            line(3, 2, Event::Start, 2),
            line(4, 1, Event::Run, 1),
        ];
        let error = check(&lines).expect_err("a late handler");
        assert!(error.contains("after epoch 2 had begun"), "{error}");
    }

    #[test]
    fn one_epoch_for_two_processes_is_found() {
        let lines = [
            line(1, 1, Event::Start, 1),
            line(2, 1, Event::End, 1),
            line(3, 2, Event::Start, 1),
        ];
        let error = check(&lines).expect_err("one epoch, two owners");
        assert!(error.contains("under epoch 1"), "{error}");
    }

    #[test]
    fn an_instance_beside_itself_in_one_process_is_found() {
        let lines = [line(1, 1, Event::Start, 1), line(2, 1, Event::Start, 2)];
        let error = check(&lines).expect_err("two in one process");
        assert!(error.contains("beside itself"), "{error}");
    }

    #[test]
    fn a_stopped_worker_is_excused_for_a_moment_and_no_longer() {
        let overlap = |end| {
            vec![
                line(1, 1, Event::Start, 1),
                line(2, 1, Event::Stopped, 0),
                line(5, 2, Event::Start, 2),
                line(8, 1, Event::Continued, 0),
                line(8, 1, Event::Run, 1),
                line(end, 1, Event::End, 1),
            ]
        };
        let lives = check(&overlap(9)).expect("its clock had stopped");
        assert_eq!(lives.excused, 2);
        check(&overlap(30)).expect_err("it has looked at the clock by then");
        // Another worker's stop excuses nobody.
        let mut other = overlap(9);
        for line in &mut other {
            if matches!(line.event, Event::Stopped | Event::Continued) {
                line.pid = 3;
            }
        }
        check(&other).expect_err("its own clock went on");
        // Nor does one that came after the other had begun.
        let mut late = overlap(9);
        late[1].at = 6_000_000;
        late.sort_by_key(|line| line.at);
        check(&late).expect_err("it was not stopped yet");
    }

    #[test]
    fn a_machine_that_had_no_time_for_a_worker_has_stopped_its_clock() {
        let mut lines = vec![
            line(1, 1, Event::Start, 1),
            line(3, 2, Event::Start, 2),
            line(5, 1, Event::Stalled, 0),
            line(6, 1, Event::End, 1),
        ];
        lines[2].ms = 3_000;
        assert_eq!(check(&lines).expect("its clock had stopped").excused, 1);
        lines[2].ms = 1_000;
        check(&lines).expect_err("it ran when the other began");
    }

    #[test]
    fn an_instance_in_a_worker_without_a_lease_is_silent() {
        let lines = |run| {
            let mut lines = vec![
                line(1, 1, Event::Start, 1),
                line(2, 1, Event::Lapsed, 0),
                line(3, 2, Event::Start, 2),
                line(run, 1, Event::Run, 1),
                line(8, 1, Event::Restored, 0),
                line(9, 1, Event::End, 1),
            ];
            lines.sort_by_key(|line| line.at);
            lines
        };
        let served = check(&lines(5)).expect_err("it served without a lease");
        assert!(served.contains("without a lease"), "{served}");
        let mut silent = lines(5);
        silent.retain(|line| line.event != Event::Run);
        assert_eq!(check(&silent).expect("it is silent").excused, 1);
        // It had to quit as it got a lease again.
        silent.last_mut().expect("lines").at = 20_000_000;
        check(&silent).expect_err("it lives on");
        // The other had begun before the lease had passed.
        let mut early = lines(1);
        early[2].at = 4_000_000;
        early.retain(|line| line.event != Event::Run);
        early[1].at = 5_000_000;
        early.sort_by_key(|line| line.at);
        check(&early).expect_err("the lease ran yet");
    }
}
