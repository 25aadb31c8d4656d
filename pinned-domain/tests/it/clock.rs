use std::future;
use std::time::Duration;

use pinned_domain::Elapsed;

use crate::worlds::{SECOND, both, simulated};

// H17.2
#[tokio::test(start_paused = true)]
async fn a_sleep_ends_exactly_at_its_deadline() {
    for domain in both() {
        let start = domain.monotonic();
        domain.sleep(3 * SECOND).await;
        assert_eq!(domain.monotonic() - start, 3 * SECOND);
        domain.sleep_until(start + 5 * SECOND).await;
        assert_eq!(domain.monotonic() - start, 5 * SECOND);
    }
}

// H17.2
#[tokio::test(start_paused = true)]
async fn a_sleep_counts_from_the_call_and_may_be_endless() {
    for domain in both() {
        let start = domain.monotonic();
        let sleep = domain.sleep(2 * SECOND);
        domain.sleep(SECOND).await;
        sleep.await;
        assert_eq!(domain.monotonic() - start, 2 * SECOND);
        assert_eq!(
            domain.timeout(SECOND, domain.sleep(Duration::MAX)).await,
            Err(Elapsed)
        );
    }
}

// H17.2
#[tokio::test(start_paused = true)]
async fn a_timeout_gives_the_output_or_the_end_of_the_time() {
    for domain in both() {
        assert_eq!(
            domain.timeout(Duration::ZERO, future::ready(1)).await,
            Ok(1)
        );
        let start = domain.monotonic();
        assert_eq!(
            domain.timeout(SECOND, future::pending::<()>()).await,
            Err(Elapsed)
        );
        assert_eq!(domain.monotonic() - start, SECOND);
    }
}

// S1.3
#[tokio::test(start_paused = true)]
async fn a_custom_domain_keeps_its_own_wall_clock() {
    let domain = simulated();
    let start = domain.now();
    domain.sleep(60 * SECOND).await;
    assert_eq!(domain.now().duration_since(start).ok(), Some(60 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_told_in_wall_time_before_and_after_it() {
    let domain = simulated();
    let start = (domain.monotonic(), domain.now());
    assert_eq!(domain.wall_time(start.0 + SECOND), start.1 + SECOND);
    domain.sleep(60 * SECOND).await;
    assert_eq!(domain.wall_time(start.0), start.1);
}
