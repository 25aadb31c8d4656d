use pinned_domain::{Domain, EmptyLabel, Rng, RngStreams};

use crate::worlds::{both, simulated};

// H17.3, S1.2
#[tokio::test]
async fn a_label_names_one_stream_that_goes_on_and_no_other_label_shifts_it() {
    let draws = |domain: &Domain, disturb: bool| {
        (0..8)
            .map(|_| {
                if disturb {
                    domain.rng("other").expect("a label").u64();
                }
                domain.rng("this").expect("a label").u64()
            })
            .collect::<Vec<_>>()
    };
    let expected = draws(&Domain::real_seeded(7), false);
    assert!(
        expected.windows(2).all(|pair| pair[0] != pair[1]),
        "asking again goes on"
    );
    assert_eq!(draws(&Domain::real_seeded(7), true), expected);
    assert_ne!(draws(&Domain::real_seeded(8), false), expected);
    assert_ne!(
        draws(&Domain::real(), false),
        draws(&Domain::real(), false),
        "a fleet draws apart"
    );

    let domain = Domain::real_seeded(7);
    let clone = domain.clone();
    assert_eq!(domain.rng("this").expect("a label").u64(), expected[0]);
    assert_eq!(
        clone.rng("this").expect("a label").u64(),
        expected[1],
        "clones share the streams"
    );
}

// H17.3, S1.2
#[tokio::test]
async fn an_empty_label_is_refused() {
    for domain in both() {
        assert_eq!(domain.rng("").map(|_| ()), Err(EmptyLabel));
    }
}

#[test]
fn draws_stay_in_their_range() {
    let rng = Rng::from_seed([1; 32]);
    for _ in 0..1_000 {
        assert!((0.5..1.5).contains(&rng.uniform(0.5..1.5)));
        assert!(rng.below(3) < 3);
    }
    assert_eq!(rng.uniform(2.0..2.0), 2.0);
}

// H17.2, S1.2
#[tokio::test]
async fn a_token_has_two_hex_digits_for_each_byte() {
    let domain = Domain::real_seeded(0);
    let token = domain.token_hex(16);
    assert_eq!(token.len(), 32);
    assert!(
        token
            .bytes()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    );
    assert_ne!(
        Domain::real_seeded(0).token_hex(16),
        token,
        "no seed repeats a token"
    );
    assert_eq!(domain.token_hex(0), "");
    assert_eq!(simulated().token_hex(2), "a5a5");
}

#[test]
fn no_seed_shows_in_debug() {
    let domain = Domain::real_seeded(424_242);
    let text = format!(
        "{domain:?} {:?} {:?}",
        domain.rng("x"),
        RngStreams::seeded(424_242)
    );
    assert!(!text.contains("424242"), "{text}");
}
