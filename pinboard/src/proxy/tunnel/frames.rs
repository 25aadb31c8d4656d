//! Where the frames of a WebSocket begin and end (RFC 6455, 5.2): as much as it takes to add a close frame where one may
//! stand.

/// Follows the frames of one direction. Nothing is kept of what is in them.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    state: State,
    has_closed: bool,
}

#[derive(Clone, Debug)]
enum State {
    /// In a header, of which this much has come.
    Header {
        bytes: [u8; LONGEST_HEADER],
        have: u8,
    },
    /// So many bytes are left of a frame.
    Payload(u64),
    /// What came was no frame.
    Lost,
}

/// Two bytes, eight of length, four of mask.
const LONGEST_HEADER: usize = 14;
const CLOSE: u8 = 8;

impl Default for State {
    fn default() -> Self {
        Self::Header {
            bytes: [0; LONGEST_HEADER],
            have: 0,
        }
    }
}

impl Frames {
    /// Takes what has been sent.
    pub fn pass(&mut self, mut sent: &[u8]) {
        while !sent.is_empty() {
            sent = &sent[self.pass_frame(sent)..];
        }
    }

    /// Takes what has been sent up to the end of a frame; how much that is.
    pub fn pass_frame(&mut self, sent: &[u8]) -> usize {
        let mut at = 0;
        while at < sent.len() {
            match &mut self.state {
                State::Lost => return sent.len(),
                State::Payload(left) => {
                    let there = sent.len() - at;
                    let passed = usize::try_from(*left).map_or(there, |left| left.min(there));
                    *left -= passed as u64;
                    at += passed;
                    if *left == 0 {
                        self.state = State::default();
                        return at;
                    }
                }
                State::Header { bytes, have } => {
                    bytes[usize::from(*have)] = sent[at];
                    *have += 1;
                    at += 1;
                    let header = &bytes[..usize::from(*have)];
                    if header.len() == header_length(header) {
                        self.has_closed |= header[0] & 0x0f == CLOSE;
                        self.state = after(header);
                        if self.is_between() {
                            return at;
                        }
                    }
                }
            }
        }
        at
    }

    fn is_between(&self) -> bool {
        matches!(self.state, State::Header { have: 0, .. })
    }

    /// Whether the next byte would begin a frame, and another may be added before it: no close frame has been sent.
    #[must_use]
    pub fn takes_another(&self) -> bool {
        !self.has_closed && self.is_between()
    }
}

/// How long the header is that begins like this; more than what there is of it until that can be told.
fn header_length(header: &[u8]) -> usize {
    let Some(second) = header.get(1) else {
        return 2;
    };
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    2 + length + mask
}

/// What comes after a complete header.
fn after(header: &[u8]) -> State {
    let length = match header[1] & 0x7f {
        126 => u64::from(u16::from_be_bytes([header[2], header[3]])),
        127 => header[2..10]
            .iter()
            .fold(0, |length, byte| length << 8 | u64::from(*byte)),
        short => u64::from(short),
    };
    match length {
        0 => State::default(),
        // Nobody may send such a one.
        length if length >> 63 == 1 => State::Lost,
        length => State::Payload(length),
    }
}

/// A close frame as a server sends it.
pub(super) fn close(code: u16, reason: &'static str) -> Vec<u8> {
    let mut frame = vec![0x80 | CLOSE, payload_length(reason)];
    frame.extend_from_slice(&code.to_be_bytes());
    frame.extend_from_slice(reason.as_bytes());
    frame
}

/// A close frame as a client sends it.
pub(super) fn masked_close(code: u16, reason: &'static str) -> Vec<u8> {
    // A mask keeps scripts of strangers from choosing what is on the wire (RFC 6455, 10.3); nobody has chosen this.
    const MASK: [u8; 4] = [0x70, 0x69, 0x6e, 0x62];
    let mut frame = close(code, reason);
    frame[1] |= 0x80;
    for (byte, mask) in frame[2..].iter_mut().zip(MASK.iter().cycle()) {
        *byte ^= mask;
    }
    frame.splice(2..2, MASK);
    frame
}

fn payload_length(reason: &str) -> u8 {
    // The reasons are ours, and short.
    2 + reason.len() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(bytes: &[u8]) -> Frames {
        let mut frames = Frames::default();
        frames.pass(bytes);
        frames
    }

    #[test]
    fn a_frame_may_be_added_between_frames_and_nowhere_else() {
        let mut sent = vec![0x81, 0x05];
        sent.extend_from_slice(b"hello");
        // Masked, empty, and of the two longer kinds of lengths.
        sent.extend_from_slice(&[0x81, 0x83, 1, 2, 3, 4, b'a', b'b', b'c']);
        sent.extend_from_slice(&[0x89, 0x00]);
        let boundaries_before = [0, 7, 16, 18];
        for at in 0..=sent.len() {
            let frames = passed(&sent[..at]);
            assert_eq!(
                frames.takes_another(),
                boundaries_before.contains(&at),
                "{at}"
            );
        }
        let mut medium = vec![0x82, 126, 0x01, 0x00];
        medium.resize(4 + 256, 0);
        assert!(passed(&medium).takes_another());
        assert!(!passed(&medium[..medium.len() - 1]).takes_another());
        let mut large = vec![0x82, 0x80 | 127, 0, 0, 0, 0, 0, 1, 0, 0, 9, 9, 9, 9];
        large.resize(14 + 65_536, 0);
        assert!(passed(&large).takes_another());
        assert!(!passed(&large[..large.len() - 1]).takes_another());
    }

    #[test]
    fn frames_are_followed_however_they_are_cut() {
        let mut sent = Vec::new();
        for length in [0_usize, 1, 125, 126, 65_535, 65_536] {
            sent.push(0x82);
            match length {
                0..126 => sent.push(length as u8),
                126..65_536 => {
                    sent.push(126);
                    sent.extend_from_slice(&(length as u16).to_be_bytes());
                }
                _ => {
                    sent.push(127);
                    sent.extend_from_slice(&(length as u64).to_be_bytes());
                }
            }
            sent.resize(sent.len() + length, 0xff);
        }
        for size in [1, 2, 3, 7, 4096] {
            let mut frames = Frames::default();
            for piece in sent.chunks(size) {
                frames.pass(piece);
            }
            assert!(frames.takes_another(), "{size}");
        }
    }

    #[test]
    fn nothing_comes_after_a_close_frame_or_after_what_is_no_frame() {
        assert!(!passed(&close(1000, "")).takes_another());
        assert!(!passed(&masked_close(1001, "bye")).takes_another());
        let impossible = [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0];
        assert!(!passed(&impossible).takes_another());
        assert!(!passed(&[&impossible[..], &[0x81, 0]].concat()).takes_another());
    }

    #[test]
    fn a_masked_close_frame_says_the_same() {
        let plain = close(1012, "service restart");
        let masked = masked_close(1012, "service restart");
        assert_eq!(masked[0], plain[0]);
        assert_eq!(masked[1], plain[1] | 0x80);
        let (mask, payload) = masked[2..].split_at(4);
        let unmasked: Vec<u8> = payload
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, mask)| byte ^ mask)
            .collect();
        assert_eq!(unmasked, plain[2..]);
    }
}
