//! The macros against the compiler: one file per mistake under `ui/fail`, one per feature under `ui/pass`.
//!
//! Messages change with the compiler. After an upgrade read the differences, then bless them with
//! `TRYBUILD=overwrite cargo test -p tests ui`.

#[test]
fn mistakes_are_named_where_they_stand() {
    trybuild::TestCases::new().compile_fail("ui/fail/*.rs");
}

#[test]
fn what_users_write_compiles_without_warnings() {
    trybuild::TestCases::new().pass("ui/pass/*.rs");
}
