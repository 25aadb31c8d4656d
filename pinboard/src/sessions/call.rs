//! One call to the registry over HTTP: who makes it, and its body, no longer than it may be.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use std::sync::Arc;

use super::{Registry, RegistryError};
use crate::passport::Principal;

/// How long the body of a call may be, in bytes, and that part of a longer one which needs no permit (P2).
pub(crate) const BODY_LIMIT: usize = 1 << 20;

/// How long the whole body may take to come. Whoever calls has been vouched for, and gives up after 5 s themselves (W2.3).
const BODY_TIME: Duration = Duration::from_secs(30);

/// How long a long body waits for others to be done with theirs; then the worker defers, and has not given up yet.
const PERMIT_TIME: Duration = Duration::from_secs(4);

/// A call whose caller may make it.
pub(crate) struct Call {
    pub(crate) principal: Principal,
    body: Body,
    declared: Option<u64>,
}

/// A body, and the room that it takes for as long as it is worked on.
pub(crate) struct LongBody {
    pub(crate) bytes: Bytes,
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

impl Call {
    /// Checks who is calling; of the body nothing has been read.
    pub(crate) async fn authenticate(
        registry: &Registry,
        request: Request,
        scope: &str,
    ) -> Result<Self, RegistryError> {
        let principal = registry.authenticate(request.headers(), scope).await?;
        // The server has checked that there is one length at most, and that it is what is sent.
        let declared = request
            .headers()
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(Self {
            principal,
            body: request.into_body(),
            declared,
        })
    }

    /// The whole body, of at most [`BODY_LIMIT`] bytes.
    pub(crate) async fn body(
        self,
        registry: &Registry,
    ) -> Result<(Principal, Bytes), RegistryError> {
        self.check_declared(BODY_LIMIT)?;
        let collected = async {
            let mut body = self.body;
            let mut bytes = BytesMut::new();
            while let Some(data) = next(&mut body).await? {
                if bytes.len() + data.len() > BODY_LIMIT {
                    return Err(RegistryError::TooLarge(BODY_LIMIT));
                }
                bytes.extend_from_slice(&data);
            }
            Ok(bytes.freeze())
        };
        let bytes = in_time(registry, collected).await?;
        Ok((self.principal, bytes))
    }

    /// The whole body, of at most `limit` bytes. What is longer than [`BODY_LIMIT`] takes one permit of `rooms` for each MiB, so that
    /// a fleet which registers anew all at once does not take all the memory there is.
    pub(crate) async fn long_body(
        self,
        registry: &Registry,
        limit: usize,
        rooms: &Arc<Semaphore>,
    ) -> Result<(Principal, LongBody), RegistryError> {
        self.check_declared(limit)?;
        let collected = async {
            let mut body = self.body;
            let mut bytes = BytesMut::new();
            let mut room = None;
            while let Some(data) = next(&mut body).await? {
                if bytes.len() + data.len() > limit {
                    return Err(RegistryError::TooLarge(limit));
                }
                if bytes.len() + data.len() > BODY_LIMIT && room.is_none() {
                    let length = self
                        .declared
                        .and_then(|declared| usize::try_from(declared).ok())
                        .unwrap_or(limit);
                    room = Some(take_room(registry, rooms, length).await?);
                    bytes.reserve(length.saturating_sub(bytes.len()));
                }
                bytes.extend_from_slice(&data);
            }
            Ok(LongBody {
                bytes: bytes.freeze(),
                room,
            })
        };
        let body = in_time(registry, collected).await?;
        Ok((self.principal, body))
    }

    /// A body that says it is too long is refused before any of it is read.
    fn check_declared(&self, limit: usize) -> Result<(), RegistryError> {
        match self.declared {
            Some(declared) if declared > limit as u64 => Err(RegistryError::TooLarge(limit)),
            _ => Ok(()),
        }
    }
}

async fn next(body: &mut Body) -> Result<Option<Bytes>, RegistryError> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            // Trailers say nothing here.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(_)) => {
                return Err(RegistryError::Malformed("the body broke off".to_owned()));
            }
        }
    }
}

async fn in_time<T>(
    registry: &Registry,
    read: impl Future<Output = Result<T, RegistryError>>,
) -> Result<T, RegistryError> {
    match registry.domain.timeout(BODY_TIME, read).await {
        Ok(read) => read,
        Err(_) => Err(RegistryError::Slow(BODY_TIME)),
    }
}

async fn take_room(
    registry: &Registry,
    rooms: &Arc<Semaphore>,
    length: usize,
) -> Result<OwnedSemaphorePermit, RegistryError> {
    let permits = u32::try_from(length.div_ceil(BODY_LIMIT)).unwrap_or(u32::MAX);
    let room = Arc::clone(rooms).acquire_many_owned(permits);
    match registry.domain.timeout(PERMIT_TIME, room).await {
        Ok(Ok(room)) => Ok(room),
        // It is never closed; either way there is none to be had.
        Ok(Err(_)) | Err(_) => Err(RegistryError::Unavailable(
            "many long registrations are being worked on".to_owned(),
        )),
    }
}
