//! Attestations (P6.1).

use pinned_wire::attestation::{Account, Caller, LIFETIME, verify};

use crate::placement::scene::*;

// P6.1, W8.3
#[test]
fn a_token_is_for_the_session_and_under_the_secret_of_its_worker() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let node = fleet.node().await;
        let known = node.workers.get(&worker.id).expect("it lives");
        let now = fleet.domain.now();
        let token = known.anonymous_token();
        let text = token.to_str().expect("text");
        let claims = verify("0f1e2d", &["session-a"], now, text).expect("it is valid");
        assert_eq!(claims.exp - claims.iat, LIFETIME.as_secs() as i64);
        assert_eq!(Caller::from(claims), Caller::Anonymous);
        assert!(token.is_sensitive(), "it stays out of logs");
        known.with_anonymous_token(fleet.domain.monotonic(), |same| assert_eq!(*same, token));

        let token = known.token(|claims| claims.with_caller("/rooms/lobby", 2));
        let text = token.to_str().expect("text");
        let claims = verify("0f1e2d", &["session-a"], now, text).expect("it is valid");
        assert_eq!(
            (claims.caller.as_deref(), claims.depth),
            (Some("/rooms/lobby"), Some(2))
        );
        let token = known.token(|claims| claims.with_account(Account::new("alice")));
        let text = token.to_str().expect("text");
        let claims = verify("0f1e2d", &["session-a"], now, text).expect("it is valid");
        assert_eq!(
            claims.acct.map(|account| account.sub).as_deref(),
            Some("alice")
        );
    });
}

// P1.5
#[test]
fn a_worker_shows_no_secret() {
    simulate(|sim| async move {
        let fleet = Fleet::new(sim.domain()).await;
        let worker = fleet.worker("a").await;
        let node = fleet.node().await;
        let known = node.workers.get(&worker.id).expect("it lives");
        let token = known.anonymous_token();
        let shown = format!("{known:?} {:?} {:?}", known.view, node.workers);
        assert!(!shown.contains("0f1e2d"));
        assert!(!shown.contains(token.to_str().expect("text")));
    });
}
