//! Dev mode, and what keeps it out of production (P1.4).

use super::environment::Environment;
use super::variables::{ALLOW_DEV, MODES, REDIS_URL};
use super::{ConfigError, Variable};

/// Refuses dev mode where something says that this is production: no deployment may fall into it by a missing variable.
pub(super) fn guard(environment: &Environment<'_>) -> Result<(), ConfigError> {
    let allowed = environment.read(&ALLOW_DEV, |value| (value == "1").then_some(()))?;
    for mode in &MODES {
        let says_so = environment.get(mode)?.is_some_and(|value| {
            value.eq_ignore_ascii_case("production") || value.eq_ignore_ascii_case("prod")
        });
        if says_so && allowed.is_none() {
            return Err(refusal(mode));
        }
    }
    Ok(())
}

fn refusal(mode: &Variable) -> ConfigError {
    ConfigError::new(
        mode,
        format!(
            "says production, and without {} this is a dev node, which forgets every placement when it ends and shares none with other nodes; \
             set {}, or {}=1 to run it all the same",
            REDIS_URL.name, REDIS_URL.name, ALLOW_DEV.name
        ),
    )
}
