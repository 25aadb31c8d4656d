//! Nanoseconds per call to one of 1,000 live counters within the process.

use bench::{
    Result,
    compare::median,
    dispatch::{Arena, Callers, Contender, KameoActors, MutexMap, PinnedInstances},
    options::Options,
};

/// The contender whose speed the ratios state.
type Subject = PinnedInstances;

fn main() -> Result<()> {
    let mut options = Options::from_env();
    let rounds: usize = options.take("--rounds", 7)?;
    let calls: usize = options.take("--calls", 500_000)?;
    options.finish()?;

    let ids: Vec<String> = (0..1_000).map(|id| format!("user-{id:06}")).collect();
    let mut ratio = f64::INFINITY;
    for callers in [Callers::Alone, Callers::Parallel] {
        let subject = Arena::<Subject>::new(callers, &ids)?;
        let mutex = Arena::<MutexMap>::new(callers, &ids)?;
        let kameo = Arena::<KameoActors>::new(callers, &ids)?;
        let (mut nanos, mut times_mutex, mut times_faster) =
            ([vec![], vec![], vec![]], vec![], vec![]);
        // The first round warms up and is not counted.
        for round in 0..=rounds {
            let measured = [
                subject.nanos_per_call(calls)?,
                mutex.nanos_per_call(calls)?,
                kameo.nanos_per_call(calls)?,
            ];
            if round == 0 {
                continue;
            }
            times_mutex.push(measured[0] / measured[1]);
            times_faster.push(measured[2] / measured[0]);
            for (row, value) in nanos.iter_mut().zip(measured) {
                row.push(value);
            }
        }
        println!("{}:", callers.name());
        let names = [Subject::NAME, MutexMap::NAME, KameoActors::NAME];
        for (name, row) in names.into_iter().zip(nanos) {
            println!("  {name:<14} {:>7.0} ns/call", median(row));
        }
        let (times_mutex, times_faster) = (median(times_mutex), median(times_faster));
        println!(
            "  {} takes {times_mutex:.2} x the time of {}",
            Subject::NAME,
            MutexMap::NAME
        );
        println!(
            "  {} is {times_faster:.2} x as fast as {}",
            Subject::NAME,
            KameoActors::NAME
        );
        ratio = ratio.min(times_faster);
    }
    println!("ratio: {ratio:.3}");
    Ok(())
}
