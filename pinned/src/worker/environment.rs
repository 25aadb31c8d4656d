//! Settings from environment variables.

use std::collections::HashMap;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

#[cfg(feature = "fleet")]
use pinned_wire::registry::Secret;

use super::SelfProbe;
use crate::error::{Error, Result};
#[cfg(feature = "fleet")]
use crate::fleet::settings::FleetSettings;

/// The variables that a worker reads. An empty one counts as unset, except an empty `PINBOARD_URL`.
#[derive(Clone, Default)]
pub(super) struct Environment(HashMap<&'static str, String>);

const PORT: &str = "PORT";
const BIND: &str = "BIND";
const PINNED_STORE: &str = "PINNED_STORE";
const PROBE_INTERVAL: &str = "PINNED_PROBE_INTERVAL_MS";
const PROBE_THRESHOLD: &str = "PINNED_PROBE_THRESHOLD_MS";
const PROBE_PORT: &str = "PINNED_PROBE_PORT";
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
            PROBE_INTERVAL,
            PROBE_THRESHOLD,
            PROBE_PORT,
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
        let port = self.port(PORT)?.unwrap_or(default.port());
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

    fn port(&self, name: &str) -> Result<Option<u16>> {
        let Some(port) = self.get(name) else {
            return Ok(None);
        };
        match port.parse() {
            Ok(port) => Ok(Some(port)),
            Err(_) => Err(Error::config(format!(
                "{name} is {port:?}; a number from 0 to 65535 is expected"
            ))),
        }
    }

    /// Where probes are answered besides, where that is asked for.
    pub(super) fn probe_address(&self, ip: IpAddr) -> Result<Option<SocketAddr>> {
        Ok(self.port(PROBE_PORT)?.map(|port| SocketAddr::new(ip, port)))
    }

    /// How the worker watches itself, as far as it was not set by hand.
    pub(super) fn fill_in_probe(&self, probe: &mut SelfProbe) -> Result<()> {
        let milliseconds = |name: &str| match self.get(name) {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(count) if count <= 3_600_000 => Ok(Some(Duration::from_millis(count))),
                _ => Err(Error::config(format!(
                    "{name} is {text:?}; milliseconds from 0 to 3600000 are expected"
                ))),
            },
        };
        probe.fill_in(
            milliseconds(PROBE_INTERVAL)?,
            milliseconds(PROBE_THRESHOLD)?,
        );
        Ok(())
    }

    /// The state store that is asked for.
    pub(super) fn store(&self) -> Option<&str> {
        self.get(PINNED_STORE)
    }

    /// The worker's stable name.
    pub(super) fn hostname(&self) -> Option<&str> {
        self.get(PINNED_HOSTNAME)
    }

    /// What the worker is told of its fleet, as far as it was not set by hand: an argument overrides its variable.
    #[cfg(feature = "fleet")]
    pub(super) fn fill_in_fleet(&self, fleet: &mut FleetSettings) {
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

    #[test]
    fn a_probe_is_set_by_its_variables_where_it_was_not_by_hand() {
        let filled = |pairs: &[(&str, &str)], mut probe: SelfProbe| {
            environment(pairs).fill_in_probe(&mut probe)?;
            Ok::<_, Error>(format!("{probe:?}"))
        };
        let both = [(PROBE_INTERVAL, "200"), (PROBE_THRESHOLD, "900")];
        let said = filled(&both, SelfProbe::new()).unwrap();
        assert!(said.contains("200ms") && said.contains("900ms"), "{said}");
        let by_hand = SelfProbe::new().interval(Duration::from_millis(300));
        let said = filled(&both, by_hand).unwrap();
        assert!(said.contains("300ms") && said.contains("900ms"), "{said}");
        let off = filled(&[(PROBE_INTERVAL, "0")], SelfProbe::new()).unwrap();
        assert!(off.contains("is_on: false"), "{off}");
        for name in [PROBE_INTERVAL, PROBE_THRESHOLD] {
            let error = filled(&[(name, "5s")], SelfProbe::new()).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        let probes = environment(&[(PROBE_PORT, "9100")]).probe_address(default().ip());
        assert_eq!(probes.unwrap(), Some("0.0.0.0:9100".parse().unwrap()));
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
            use crate::fleet::http::HttpClient;

            let mut fleet = FleetSettings::default();
            environment.fill_in_fleet(&mut fleet);
            let Err(error) = fleet.connect(HttpClient::new().expect("a client")) else {
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
