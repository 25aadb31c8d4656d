//! What crosses crates: its tests are in `tests/it`, and the programs of the pages for readers are compiled here.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../../pinned/README.md")]
struct Pages;
