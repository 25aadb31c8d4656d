//! An open socket: the protocol's state machine over its connection, without waiting.

use std::{
    io,
    task::{Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;
use tungstenite::{
    Error as WireError, Message as WireMessage,
    protocol::{Role, WebSocket, WebSocketConfig},
};

use super::{CloseFrame, Message, SocketError, close_code, transport::Io};

/// Read at once from the connection, and held by every socket for its whole life; hence small.
const READ_BUFFER: usize = 4 * 1024;

/// What the socket's own pings carry, so that their answers can be told from the handler's.
const KEEP_ALIVE: &[u8] = b"pinned:keep-alive";

/// How large what arrives may be, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) message: usize,
    pub(super) frame: usize,
}

/// When a silent peer is asked for a sign of life, and when it is given up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeepAlive {
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
}

/// What a look for the next message found.
pub(super) enum Step {
    /// The next item.
    Item(Result<Message, SocketError>),
    /// There will be no more.
    End,
    /// Nothing yet: look again after a wake, or at this time.
    Wait(Option<Instant>),
}

/// The side that has ended the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Us,
    Peer,
}

/// Whether more can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Open,
    /// The peer has said its last word.
    Done,
    /// The peer broke the protocol, and what follows has no frames to be found in.
    Broken,
}

/// One open socket.
pub(super) struct Link {
    socket: WebSocket<Io>,
    role: Role,
    closed_by: Option<Side>,
    reading: Reading,
    /// Frames are queued that the connection has not taken. No message is queued behind them, so the queue holds one
    /// message, or one for each of several tasks that were let in together.
    unsent: bool,
    last_heard: Instant,
    pinged_at: Option<Instant>,
}

impl Link {
    /// The end of a conversation over `io` that plays `role`.
    pub(super) fn new(io: Io, role: Role, limits: Limits, now: Instant) -> Self {
        // No write buffer: each message is one write, and what the connection does not take is waited for.
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0);
        let mut link = Self {
            socket: WebSocket::from_raw_socket(io, role, Some(config)),
            role,
            closed_by: None,
            reading: Reading::Open,
            unsent: false,
            last_heard: now,
            pinged_at: None,
        };
        link.set_limits(limits);
        link
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.socket.set_config(|config| {
            config.max_message_size = Some(limits.message);
            config.max_frame_size = Some(limits.frame);
        });
    }

    /// Whether either side has ended the conversation.
    pub(super) fn is_closed(&self) -> bool {
        self.closed_by.is_some()
    }

    /// Looks for the next message.
    pub(super) fn step(&mut self, keep_alive: KeepAlive, now: impl FnOnce() -> Instant) -> Step {
        if self.reading != Reading::Open {
            return Step::End;
        }
        if self.unsent {
            // A failure to write shows in the read below, behind what has arrived before it.
            let _ = self.poll_flush();
        }
        loop {
            match self.socket.read() {
                Ok(WireMessage::Pong(payload)) if payload == KEEP_ALIVE => {}
                Ok(message) => {
                    if message.is_close() {
                        self.closed_by.get_or_insert(Side::Peer);
                        // The answer need not wait for the handler's next move.
                        let _ = self.poll_flush();
                        self.heard_close();
                    }
                    if let Some(message) = Message::from_wire(message) {
                        return Step::Item(Ok(message));
                    }
                }
                Err(error) if would_block(&error) => break,
                Err(WireError::ConnectionClosed | WireError::AlreadyClosed) => {
                    self.reading = Reading::Done;
                    return Step::End;
                }
                Err(error) => return Step::Item(Err(self.fail(error))),
            }
        }
        self.keep_alive(keep_alive, now())
    }

    /// Asks a silent peer for a sign of life, and gives it up when none came.
    ///
    /// Any byte is one: a large message on a slow line is not silence. And because whatever has arrived is read before
    /// the clock is, a handler that was busy for long cannot mistake its own silence for the peer's.
    fn keep_alive(&mut self, keep_alive: KeepAlive, now: Instant) -> Step {
        if self.socket.get_mut().take_heard() {
            self.last_heard = now;
            self.pinged_at = None;
        }
        if let Some(pinged_at) = self.pinged_at {
            let given_up_at = pinged_at.checked_add(keep_alive.timeout);
            if given_up_at.is_some_and(|at| at <= now) {
                self.reading = Reading::Done;
                self.closed_by.get_or_insert(Side::Peer);
                return Step::Item(Err(SocketError::left(self.role)));
            }
            return Step::Wait(given_up_at);
        }
        let ping_at = self.last_heard.checked_add(keep_alive.interval);
        if ping_at.is_none_or(|at| at > now) {
            return Step::Wait(ping_at);
        }
        // The time counts from here even if the ping is stuck behind a message that the peer does not take, or if
        // our close frame has gone out and the peer owes the answer to that.
        self.pinged_at = Some(now);
        if self.socket.can_write() {
            let ping = WireMessage::Ping(Bytes::from_static(KEEP_ALIVE));
            self.unsent |= self.socket.write(ping).is_err();
        }
        Step::Wait(now.checked_add(keep_alive.timeout))
    }

    /// Nothing follows a close frame. A client would otherwise look out for the end of the connection, which is the server's
    /// to bring about, and late where its handler takes its time.
    fn heard_close(&mut self) {
        if self.role == Role::Client {
            self.reading = Reading::Done;
        }
    }

    /// Ends reading after `error`, telling the peer where it is at fault.
    fn fail(&mut self, error: WireError) -> SocketError {
        let code = match error {
            WireError::Utf8(_) => close_code::INVALID_PAYLOAD,
            _ => close_code::PROTOCOL_ERROR,
        };
        let error = SocketError::of(self.role, error);
        match &error {
            SocketError::Protocol(_) => self.break_off(code, ""),
            SocketError::TooLarge { .. } => {
                self.break_off(close_code::MESSAGE_TOO_BIG, "message too big");
            }
            _ => {
                self.reading = Reading::Done;
                self.closed_by.get_or_insert(Side::Peer);
            }
        }
        error
    }

    fn break_off(&mut self, code: u16, reason: &str) {
        self.start_close(Some(CloseFrame::new(code, reason)));
        self.reading = Reading::Broken;
    }

    /// Sends what `message` holds, taking it once it is queued; ready when nothing is left to be sent.
    pub(super) fn poll_send(
        &mut self,
        message: &mut Option<WireMessage>,
    ) -> Poll<Result<(), SocketError>> {
        if message.is_some() && self.unsent {
            ready!(self.poll_flush())?;
        }
        if let Some(message) = message.take() {
            self.queue(message)?;
        }
        self.poll_flush()
    }

    /// Queues `message` and writes as much as the connection takes.
    pub(super) fn queue(&mut self, message: WireMessage) -> Result<(), SocketError> {
        match self.closed_by {
            Some(Side::Peer) => return Err(SocketError::left(self.role)),
            Some(Side::Us) => return Err(SocketError::Closed),
            None if message.is_close() => self.closed_by = Some(Side::Us),
            None => {}
        }
        match self.socket.write(message) {
            Ok(()) => {
                self.unsent = true;
                Ok(())
            }
            Err(error) if would_block(&error) => {
                self.unsent = true;
                Ok(())
            }
            Err(error) => Err(SocketError::of(self.role, error)),
        }
    }

    /// Ready when nothing is left to be sent.
    pub(super) fn poll_flush(&mut self) -> Poll<Result<(), SocketError>> {
        match self.socket.flush() {
            // Told to the side that closes second, once its answer is out.
            Ok(()) | Err(WireError::ConnectionClosed) => {
                self.unsent = false;
                Poll::Ready(Ok(()))
            }
            Err(error) if would_block(&error) => {
                self.unsent = true;
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(SocketError::of(self.role, error))),
        }
    }

    /// Queues a close frame and writes as much as the connection takes; nothing if there is one already.
    pub(super) fn start_close(&mut self, frame: Option<CloseFrame>) {
        // A connection that fails here fails again when it is flushed.
        let _ = self.queue(WireMessage::Close(frame.map(CloseFrame::into_wire)));
    }

    /// Ready when the peer has the close frame and has answered it, or is gone.
    pub(super) fn poll_goodbye(&mut self) -> Poll<()> {
        if ready!(self.poll_flush()).is_err() {
            return Poll::Ready(());
        }
        while self.reading == Reading::Open {
            match self.socket.read() {
                Ok(message) if message.is_close() => self.heard_close(),
                Ok(_) => {}
                Err(error) if would_block(&error) => return Poll::Pending,
                Err(_) => self.reading = Reading::Done,
            }
        }
        let io = self.socket.get_mut();
        if ready!(io.poll_shutdown()).is_err() || self.reading == Reading::Done {
            return Poll::Ready(());
        }
        // Unread bytes at the end of a TCP connection turn into a reset, and that may overtake the close frame.
        let mut waste = [0; 1024];
        loop {
            match io::Read::read(io, &mut waste) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Ok(0) | Err(_) => return Poll::Ready(()),
            }
        }
    }
}

fn would_block(error: &WireError) -> bool {
    matches!(error, WireError::Io(error) if error.kind() == io::ErrorKind::WouldBlock)
}
