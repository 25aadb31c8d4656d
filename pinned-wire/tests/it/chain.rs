use pinned_wire::chain::{Held, Link, MOST_BYTES, MOST_LINKS, header, read};
use proptest::prelude::*;

// W14.3: the chain travels outermost first, and comes out as it went in.
#[test]
fn a_chain_is_read_as_it_was_written() {
    let links = [
        Link::new("/a,b;c", "1", Held::Exclusive),
        Link::new("/rooms", "lobby", Held::Nothing).called("0f.1c"),
        Link::new("/rooms", "x~.-_", Held::Shared),
    ];
    let text = header(&links);
    let parsed: Vec<Link> = read(&text)
        .expect("it was just written")
        .into_iter()
        .map(|link| Link::parse(link).expect("it was checked"))
        .collect();
    assert_eq!(parsed, links);
    assert_eq!(parsed[1].name(), "/rooms/lobby");
    assert_eq!(parsed[1].call(), Some("0f.1c"));
    assert_eq!(parsed[0].held(), Held::Exclusive);
}

#[test]
fn what_is_no_link_is_refused() {
    let too_long = format!("/a/1 shared {}", "x".repeat(65));
    for text in [
        "",
        "/a/1",
        "/a/1 held",
        "a/1 shared",
        "/a shared",
        "/a/b/1 shared",
        "/a/.. shared",
        "/a/1 shared x-y",
        "/a/1 shared x y",
        "/a/1  shared",
        "/a/\u{e9} shared",
        &too_long,
    ] {
        assert!(Link::parse(text).is_err(), "{text:?}");
        assert!(read(text).is_err(), "{text:?}");
    }
    assert!(Link::parse("/a/1 shared ").is_err());
    assert!(read("/a/1 shared >").is_err());
    assert!(read("/a/1 shared, /a/2 shared").is_err());
}

// As many links as calls may be deep, and no more bytes than a header has room for.
#[test]
fn a_chain_is_bounded_and_keeps_what_is_innermost() {
    let links = |count: usize, id: &str| -> Vec<Link> {
        (0..count)
            .map(|n| Link::new("/a", &format!("{n}-{id}"), Held::Shared))
            .collect()
    };
    let many = header(&links(MOST_LINKS + 7, "x"));
    let kept = read(&many).expect("it was cut to fit");
    assert_eq!(kept.len(), MOST_LINKS);
    assert_eq!(kept.first(), Some(&"/a/7-x shared"));
    let more = format!("/a/z shared > {many}");
    assert!(read(&more).is_err());

    let namespace = format!("/{}", "n".repeat(1000));
    let wide: Vec<Link> = (0..MOST_LINKS)
        .map(|n| Link::new(&namespace, &n.to_string(), Held::Shared))
        .collect();
    let text = header(&wide);
    assert!(text.len() <= MOST_BYTES);
    let kept = read(&text).expect("it was cut to fit");
    assert!((10..MOST_LINKS).contains(&kept.len()));
    assert!(kept.last().expect("some").contains("/49 "));
    assert!(read(&"x".repeat(MOST_BYTES + 1)).is_err());
}

proptest! {
    #[test]
    fn whatever_is_read_reads_the_same_again(text in "[/a-z0-9 .>]{0,60}|(/[a-c]/[a-c] (shared|none)( x)? ?>? ?){0,4}") {
        if let Ok(links) = read(&text) {
            prop_assert!((1..=MOST_LINKS).contains(&links.len()));
            for link in links {
                let parsed = Link::parse(link).expect("it was checked");
                prop_assert_eq!(parsed.to_string(), link);
            }
        }
    }
}
