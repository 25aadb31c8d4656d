//! How a worker is told of its fleet (W1.1, W1.2).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use pinned_wire::registry::{Secret, Takeover};

use super::headroom;
use super::http::{HttpClient, HttpControlPlane};
use super::transport::ControlPlane;
use crate::error::{Error, Result};

/// Free memory in MiB, asked anew for each registration and heartbeat.
pub(crate) type HeadroomProbe = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How a worker is told of its fleet, as far as it was.
#[derive(Clone)]
pub(crate) struct FleetSettings {
    pub(crate) url: Option<String>,
    pub(crate) token: Option<Secret>,
    pub(crate) advertise_url: Option<String>,
    pub(crate) env: Option<String>,
    pub(crate) takeover: Option<Takeover>,
    pub(crate) epoch: u64,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) headroom: HeadroomProbe,
}

/// What a worker in a fleet says of itself: the settings, checked.
#[derive(Clone)]
pub(crate) struct Membership {
    pub(crate) advertise_url: String,
    pub(crate) hostname: Option<String>,
    pub(crate) env: Option<String>,
    pub(crate) takeover: Option<Takeover>,
    pub(crate) epoch: u64,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) headroom: HeadroomProbe,
}

impl Default for FleetSettings {
    fn default() -> Self {
        Self {
            url: None,
            token: None,
            advertise_url: None,
            env: None,
            takeover: None,
            epoch: 0,
            heartbeat_interval: Duration::from_secs(3),
            headroom: Arc::new(headroom::free_mib),
        }
    }
}

impl FleetSettings {
    /// The way to the control plane, over `client`.
    pub(crate) fn connect(&self, client: HttpClient) -> Result<Arc<dyn ControlPlane>> {
        let url = self.url.as_deref().unwrap_or_default();
        let token = self.token.as_ref().ok_or_else(|| {
            Error::config("PINBOARD_URL is set without PINBOARD_TOKEN, the token that pinboard knows this worker by")
        })?;
        Ok(Arc::new(HttpControlPlane::new(client, url, token)?))
    }

    /// What the worker says of itself, once it is known that there is a control plane.
    pub(crate) fn membership(&self, hostname: Option<&str>) -> Result<Membership> {
        let advertise_url = self.advertise_url.clone().ok_or_else(|| {
            Error::config(
                "PINBOARD_URL is set without ADVERTISE_URL, the URL at which pinboard reaches this worker",
            )
        })?;
        if let Err(reason) = check_url(&advertise_url) {
            return Err(Error::config(format!(
                "ADVERTISE_URL is {:?}: {reason}",
                shown(&advertise_url)
            )));
        }
        if self.heartbeat_interval.is_zero() {
            return Err(Error::option("heartbeat_interval", "is above zero"));
        }
        Ok(Membership {
            advertise_url,
            hostname: hostname.map(str::to_owned),
            env: self.env.clone(),
            takeover: self.takeover,
            epoch: self.epoch,
            heartbeat_interval: self.heartbeat_interval,
            headroom: Arc::clone(&self.headroom),
        })
    }

    /// W1.2: what needs a hostname, and what needs a control plane.
    pub(crate) fn check(&self, hostname: Option<&str>, placed: bool) -> Result<()> {
        if hostname.is_none() {
            for (name, given) in [
                ("env", self.env.is_some()),
                ("takeover", self.takeover.is_some()),
            ] {
                if given {
                    return Err(Error::config(format!(
                        "`{name}` needs a worker hostname (`WorkerBuilder::hostname`, PINNED_HOSTNAME)"
                    )));
                }
            }
        }
        if !placed {
            for (name, given) in [
                ("PINBOARD_TOKEN", self.token.is_some()),
                ("ADVERTISE_URL", self.advertise_url.is_some()),
            ] {
                if given {
                    return Err(Error::config(format!("{name} is set without PINBOARD_URL")));
                }
            }
        }
        Ok(())
    }
}

/// A URL of either side, if it is what that must be.
pub(crate) fn check_url(url: &str) -> std::result::Result<Uri, String> {
    const EXPECTED: &str =
        "an absolute URL is expected, such as http://10.0.0.7:8000, without query or user";
    let parsed: Uri = url.parse().map_err(|_| EXPECTED.to_owned())?;
    let scheme = matches!(parsed.scheme_str(), Some("http" | "https"));
    let authority = parsed.authority().is_some_and(|authority| {
        let host = authority.host();
        // A number that is no port counts as none, and the port of the scheme would be dialled.
        let port = authority.as_str().strip_prefix(host);
        !host.is_empty()
            && !authority.as_str().contains('@')
            && port.is_some_and(|port| matches!(port, "" | ":") || authority.port().is_some())
    });
    if scheme && authority && parsed.query().is_none() {
        Ok(parsed)
    } else {
        Err(EXPECTED.to_owned())
    }
}

/// `url` as it may be shown: with whatever it names a user and a password by left out.
pub(crate) fn shown(url: &str) -> Cow<'_, str> {
    let Some(at) = url.rfind('@') else {
        return url.into();
    };
    let (before, rest) = url.split_at(at);
    let scheme = before
        .find("//")
        .map_or("", |slashes| &before[..slashes + 2]);
    format!("{scheme}***{rest}").into()
}

impl fmt::Debug for FleetSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetSettings")
            .field("url", &self.url.as_deref().map(shown))
            .field("advertise_url", &self.advertise_url.as_deref().map(shown))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_cannot_be_reached_is_none() {
        for url in [
            "http://a",
            "http://a:1",
            "https://[::1]:65535/b",
            "http://a:",
        ] {
            assert!(check_url(url).is_ok(), "{url}");
        }
        for url in [
            "a:1",
            "ftp://a",
            "http://a:65536",
            "http://a:99999/b",
            "http://a?b",
            "http://u@a",
            // A user of the host's name.
            "http://a:p@a:1",
        ] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        for (url, expected) in [
            ("http://a:1/b", "http://a:1/b"),
            ("http://eve:s3cret@a:1/b", "http://***@a:1/b"),
            ("eve:s3cret@a//b", "***@a//b"),
            ("http://e@e:s3cret@a", "http://***@a"),
        ] {
            assert_eq!(shown(url), expected);
        }
        let settings = FleetSettings {
            url: Some("http://eve:s3cret@a".to_owned()),
            advertise_url: Some("http://eve:s3cret@b".to_owned()),
            ..FleetSettings::default()
        };
        assert!(!format!("{settings:?}").contains("s3cret"));
        let refused = settings.membership(None).map(|_| ()).expect_err("a user");
        assert!(!refused.to_string().contains("s3cret"), "{refused}");
    }
}
