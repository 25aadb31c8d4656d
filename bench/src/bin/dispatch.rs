//! Nanoseconds per call to one of 1,000 live counters within the process.
//!
//! Like is compared with like: a call by id with a mutex that is looked up by id, a call through a held handle with a
//! kameo actor that is asked through a held reference.

use bench::{
    Result,
    compare::median,
    dispatch::{Arena, Callers, Contender, KameoActors, MutexMap, PinnedHandles, PinnedInstances},
    options::Options,
};

fn main() -> Result<()> {
    let mut options = Options::from_env();
    let rounds: usize = options.take("--rounds", 7)?;
    let calls: usize = options.take("--calls", 500_000)?;
    options.finish()?;

    let ids: Vec<String> = (0..1_000).map(|id| format!("user-{id:06}")).collect();
    let mut ratio = f64::NAN;
    for callers in [Callers::Alone, Callers::Parallel] {
        let by_id = Arena::<PinnedInstances>::new(callers, &ids)?;
        let mutex = Arena::<MutexMap>::new(callers, &ids)?;
        let by_handle = Arena::<PinnedHandles>::new(callers, &ids)?;
        let kameo = Arena::<KameoActors>::new(callers, &ids)?;
        let (mut nanos, mut times_mutex, mut times_faster) =
            ([const { vec![] }; 4], vec![], vec![]);
        // The first round warms up and is not counted.
        for round in 0..=rounds {
            let measured = [
                by_id.nanos_per_call(calls)?,
                mutex.nanos_per_call(calls)?,
                by_handle.nanos_per_call(calls)?,
                kameo.nanos_per_call(calls)?,
            ];
            if round == 0 {
                continue;
            }
            times_mutex.push(measured[0] / measured[1]);
            times_faster.push(measured[3] / measured[2]);
            for (row, value) in nanos.iter_mut().zip(measured) {
                row.push(value);
            }
        }
        println!("{}:", callers.name());
        let names = [
            PinnedInstances::NAME,
            MutexMap::NAME,
            PinnedHandles::NAME,
            KameoActors::NAME,
        ];
        for (name, row) in names.into_iter().zip(nanos) {
            println!("  {name:<18} {:>7.0} ns/call", median(row));
        }
        let (times_mutex, times_faster) = (median(times_mutex), median(times_faster));
        println!("  by id: {times_mutex:.2} x the time of {}", MutexMap::NAME);
        println!(
            "  by handle: {times_faster:.2} x as fast as {}",
            KameoActors::NAME
        );
        // The bound is on the cost of one ask. Under parallel load kameo spreads the wake-ups that an ask costs over many.
        if let Callers::Alone = callers {
            ratio = times_faster;
        }
    }
    println!("ratio: {ratio:.3}");
    Ok(())
}
