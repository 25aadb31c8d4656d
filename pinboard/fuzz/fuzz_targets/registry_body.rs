//! No body of a registry call makes its reader panic, and a refusal is short, plain, and shows nothing of a secret.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pinboard::operators::bodies as operators;
use pinboard::sessions::{RegistryError, bodies};

fuzz_target!(|body: &[u8]| {
    match bodies::register(body) {
        Ok(given) => {
            assert!(!given.namespaces.is_empty());
            assert!(given.instances.is_sorted());
            let (secret, shown) = (given.secret.expose(), format!("{:?}", given.secret));
            assert!(!secret.is_empty() && !shown.contains(secret));
        }
        Err(error) => plain(&error),
    }
    for refused in [
        bodies::heartbeat(body).err(),
        bodies::release(body).err(),
        bodies::deregister(body).err(),
        operators::drain(body).err(),
        operators::undrain(body).err(),
        operators::wind_down(body).err(),
    ]
    .iter()
    .flatten()
    {
        plain(refused);
    }
    if let Ok(query) = std::str::from_utf8(body) {
        let _ = operators::events(Some(query));
    }
});

fn plain(error: &RegistryError) {
    let said = error.to_string();
    assert_eq!(error.status(), 400);
    assert!(said.len() < 600, "{said}");
    assert!(!said.chars().any(char::is_control), "{said:?}");
}
