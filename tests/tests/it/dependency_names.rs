//! `pinned` under another name, and from another crate's hands.

use pinned::PinnedApi;

#[test]
fn a_renamed_dependency_serves_its_routes() {
    let handlers: Vec<_> = fixture_renamed::Renamed::routes()
        .map(|route| route.handler())
        .collect();
    assert_eq!(handlers, ["increment", "id"]);
}

#[test]
fn a_reexport_is_named_by_the_crate_option() {
    assert_eq!(fixture_reexport::Reexported::NAMESPACE, Some("/reexported"));
    assert_eq!(fixture_reexport::Local::routes().count(), 1);
}
