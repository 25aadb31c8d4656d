//! What a socket is at the moment, and its steps from the request to the end.

use std::{
    mem,
    task::{Context, Poll, ready},
};

use axum::response::Response;
use tokio::sync::oneshot;
use tungstenite::protocol::Role;

use super::{
    SocketError,
    handshake::Handshake,
    link::{Limits, Link, Step},
    slot::Slot,
    transport::Transport,
};

/// What stands behind the lock of a slot.
pub(super) struct Inner {
    pub(super) state: State,
    /// Whether the opening answer went out, however the socket ended then.
    pub(super) accepted: bool,
    /// Who says goodbye for an end that is dropped in the middle of the conversation; nobody where a host looks after it.
    pub(super) heir: Option<oneshot::Sender<Box<Link>>>,
}

/// From the request of a socket to its end.
pub(super) enum State {
    /// The request has no answer yet.
    Pending {
        answer: oneshot::Sender<Response>,
        handshake: Handshake,
        transport: Transport,
    },
    /// The opening answer is on its way, and the connection comes after it.
    Upgrading {
        transport: Transport,
        limits: Limits,
    },
    /// The conversation. Boxed: a slot may outlive it by far.
    Open(Box<Link>),
    /// It is over.
    Ended { why: Ended, told: bool },
}

/// Why a slot has no socket any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    ByHost,
    PeerLeft,
    Refused,
}

// ===== impl Inner =====

impl Inner {
    /// Puts the end in the place of the state, and hands that out.
    pub(super) fn end(&mut self, why: Ended) -> State {
        mem::replace(&mut self.state, State::Ended { why, told: false })
    }

    /// Ready with the open socket, waiting for the connection if that is on its way.
    pub(super) fn poll_open(
        &mut self,
        slot: &Slot,
        cx: &mut Context<'_>,
    ) -> Poll<Result<&mut Link, SocketError>> {
        if let State::Upgrading { transport, limits } = &mut self.state {
            self.state = match ready!(transport.poll_take(cx)) {
                Some(io) => State::Open(slot.link(io, *limits)),
                None => State::Ended {
                    why: Ended::PeerLeft,
                    told: false,
                },
            };
        }
        Poll::Ready(match &mut self.state {
            State::Open(link) => Ok(link),
            State::Ended { why, .. } => Err(why.error(slot.role)),
            State::Pending { .. } | State::Upgrading { .. } => Err(SocketError::NotAccepted),
        })
    }

    /// Ready once all that is queued has been taken.
    pub(super) fn poll_flush(
        &mut self,
        slot: &Slot,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SocketError>> {
        ready!(self.poll_open(slot, cx))?.poll_flush()
    }

    /// The error that ended the socket, told to the reader once: one that goes on after errors must come to an end.
    pub(super) fn tell_end(&mut self, role: Role) -> Step {
        match &mut self.state {
            State::Ended { why, told } if !*told => {
                *told = true;
                Step::Item(Err(why.error(role)))
            }
            _ => Step::End,
        }
    }
}

// ===== impl Ended =====

impl Ended {
    /// What an operation on the socket comes to, for the end that plays `role`.
    pub(super) fn error(self, role: Role) -> SocketError {
        match self {
            Self::ByHost | Self::Refused => SocketError::EndedByHost,
            Self::PeerLeft => SocketError::left(role),
        }
    }
}
