//! Settings from environment variables.

use std::collections::HashMap;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};

#[cfg(feature = "fleet")]
use pinned_wire::registry::Secret;

use crate::error::{Error, Result};
#[cfg(feature = "fleet")]
use crate::fleet::settings::FleetSettings;

/// The variables that a worker reads. An empty one counts as unset, except an empty `PINBOARD_URL`.
#[derive(Clone, Default)]
pub(super) struct Environment(HashMap<&'static str, String>);

const PORT: &str = "PORT";
const BIND: &str = "BIND";
const PINNED_STORE: &str = "PINNED_STORE";
const PINBOARD_URL: &str = "PINBOARD_URL";
const PINBOARD_TOKEN: &str = "PINBOARD_TOKEN";
const ADVERTISE_URL: &str = "ADVERTISE_URL";
const CONTROL_PLANE_ONLY: [&str; 2] = [PINBOARD_TOKEN, ADVERTISE_URL];
const PINNED_HOSTNAME: &str = "PINNED_HOSTNAME";
const MODES: [&str; 3] = ["NODE_ENV", "ENVIRONMENT", "APP_ENV"];
const ALLOW_DEV: &str = "PINBOARD_ALLOW_DEV_IN_PRODUCTION";

impl Environment {
    pub(super) fn of_process() -> Self {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// A value that is no text is set all the same: it must not pass for a missing one.
    fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let names = [
            PORT,
            BIND,
            PINNED_STORE,
            PINBOARD_URL,
            PINNED_HOSTNAME,
            ALLOW_DEV,
        ]
        .into_iter()
        .chain(CONTROL_PLANE_ONLY)
        .chain(MODES);
        Self(
            names
                .filter_map(|name| Some((name, lookup(name)?.to_string_lossy().into_owned())))
                .collect(),
        )
    }

    fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name)?.trim();
        (!value.is_empty()).then_some(value)
    }

    /// The address to listen on, `default` where nothing is said.
    pub(super) fn address(&self, default: SocketAddr) -> Result<SocketAddr> {
        let port = match self.get(PORT) {
            None => default.port(),
            Some(port) => port.parse().map_err(|_| {
                Error::config(format!(
                    "PORT is {port:?}; a number from 0 to 65535 is expected"
                ))
            })?,
        };
        let ip = match self.get(BIND) {
            None => default.ip(),
            Some(ip) => ip.parse::<IpAddr>().map_err(|_| {
                Error::config(format!(
                    "BIND is {ip:?}; an IP address such as 127.0.0.1 or :: is expected"
                ))
            })?,
        };
        Ok(SocketAddr::new(ip, port))
    }

    /// The state store that is asked for.
    pub(super) fn store(&self) -> Option<&str> {
        self.get(PINNED_STORE)
    }

    /// The worker's stable name.
    pub(super) fn hostname(&self) -> Option<&str> {
        self.get(PINNED_HOSTNAME)
    }

    /// Fills in what was not set by hand: an argument overrides its variable.
    #[cfg(feature = "fleet")]
    pub(super) fn fill_in(&self, fleet: &mut FleetSettings) {
        let fill = |known: &mut Option<String>, name: &str| {
            if known.is_none() {
                *known = self.get(name).map(str::to_owned);
            }
        };
        fill(&mut fleet.url, PINBOARD_URL);
        fill(&mut fleet.advertise_url, ADVERTISE_URL);
        if fleet.token.is_none() {
            fleet.token = self.get(PINBOARD_TOKEN).map(Secret::new);
        }
    }

    /// Refuses settings of a control plane that contradict each other.
    pub(super) fn check_mode(&self) -> Result<()> {
        match self.0.get(PINBOARD_URL) {
            Some(url) if url.trim().is_empty() => {
                return Err(Error::config(
                    "PINBOARD_URL is empty; unset it for local mode",
                ));
            }
            Some(_) if !cfg!(feature = "fleet") => {
                return Err(Error::config(
                    "PINBOARD_URL is set, but this program was built without the feature `fleet` of pinned",
                ));
            }
            Some(_) => return Ok(()),
            None => {}
        }
        match CONTROL_PLANE_ONLY
            .iter()
            .find(|name| self.get(name).is_some())
        {
            Some(name) => Err(Error::config(format!("{name} is set without PINBOARD_URL"))),
            None => Ok(()),
        }
    }

    /// Local mode is dev mode, and no production setting may fall into it by a missing variable.
    pub(super) fn guard_dev_mode(&self) -> Result<()> {
        if self.get(ALLOW_DEV) == Some("1") {
            return Ok(());
        }
        let production = MODES.iter().find(|name| {
            self.get(name).is_some_and(|mode| {
                mode.eq_ignore_ascii_case("production") || mode.eq_ignore_ascii_case("prod")
            })
        });
        match production {
            None => Ok(()),
            Some(name) => Err(Error::config(format!(
                "{name} says production, and without a control plane this worker runs in local mode, which is dev mode: \
                 nothing keeps a second worker from serving the same ids; set {ALLOW_DEV}=1 to run it all the same"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        Environment::from_lookup(|name| {
            let (_, value) = pairs.iter().find(|(known, _)| *known == name)?;
            Some((*value).into())
        })
    }

    fn default() -> SocketAddr {
        SocketAddr::from(([0, 0, 0, 0], 8000))
    }

    #[test]
    fn port_and_bind_set_the_address() {
        let address = environment(&[("PORT", "81"), ("BIND", "::1")]).address(default());
        assert_eq!(address.unwrap(), "[::1]:81".parse().unwrap());
        assert_eq!(
            environment(&[("PORT", "")]).address(default()).unwrap(),
            default()
        );
    }

    #[test]
    fn a_malformed_port_says_what_is_expected() {
        for port in ["x", "-1", "65536", "8000/tcp"] {
            let error = environment(&[("PORT", port)])
                .address(default())
                .unwrap_err();
            assert!(error.to_string().contains("0 to 65535"), "{error}");
        }
        assert!(
            environment(&[("BIND", "localhost")])
                .address(default())
                .is_err()
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_no_text_is_not_a_missing_one() {
        use std::os::unix::ffi::OsStringExt;

        let broken = |_: &str| Some(OsString::from_vec(vec![0xff]));
        let environment = Environment::from_lookup(broken);
        assert!(environment.address(default()).is_err());
        #[cfg(feature = "fleet")]
        {
            let mut fleet = FleetSettings::default();
            environment.fill_in(&mut fleet);
            let Err(error) = fleet.connect(crate::fleet::http::client().unwrap()) else {
                panic!("that is no URL");
            };
            assert!(error.to_string().contains("PINBOARD_URL"), "{error}");
        }
    }

    #[test]
    fn production_refuses_local_mode_unless_told_otherwise() {
        for name in MODES {
            for mode in ["production", "Prod"] {
                let error = environment(&[(name, mode)]).guard_dev_mode().unwrap_err();
                assert!(error.to_string().contains(name), "{error}");
                let allowed = [(name, mode), (ALLOW_DEV, "1")];
                assert!(environment(&allowed).guard_dev_mode().is_ok());
            }
            assert!(environment(&[(name, "staging")]).guard_dev_mode().is_ok());
        }
    }

    #[test]
    fn settings_of_a_control_plane_without_one_are_refused() {
        // W1.2
        for pairs in [
            [("PINBOARD_URL", "")],
            [("PINBOARD_TOKEN", "t")],
            [("ADVERTISE_URL", "http://127.0.0.1:2")],
        ] {
            assert!(environment(&pairs).check_mode().is_err(), "{pairs:?}");
        }
        assert!(environment(&[("PINBOARD_TOKEN", "")]).check_mode().is_ok());
        let whole = [
            ("PINBOARD_URL", "http://127.0.0.1:1"),
            ("PINBOARD_TOKEN", "t"),
            ("ADVERTISE_URL", "http://127.0.0.1:2"),
        ];
        let checked = environment(&whole).check_mode();
        assert_eq!(checked.is_ok(), cfg!(feature = "fleet"));
    }
}
