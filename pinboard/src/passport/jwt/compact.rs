//! A token in compact form, taken apart.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Header;
use serde_json::{Map, Value};

use crate::passport::document;

/// A token whose form is right; nothing of what it says is known to be true.
#[derive(Debug)]
pub(super) struct Compact<'a> {
    pub(super) header: Header,
    pub(super) claims: Map<String, Value>,
    /// What the signature is over.
    pub(super) signed: &'a str,
    /// Encoded.
    pub(super) signature: &'a str,
}

impl<'a> Compact<'a> {
    /// Takes a token apart; `None` when it is no JWT, or one of a kind that is not for us (RFC 8725, 3.11).
    pub(super) fn parse(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (_, payload) = signed.split_once('.')?;
        // A name that is there twice is an error here too; the algorithm `none` does not parse.
        let header = jsonwebtoken::decode_header(token).ok()?;
        // An extension that must be understood, a payload that is encrypted, compressed or not encoded: none is understood here.
        let is_plain = header.crit.is_none()
            && header.enc.is_none()
            && header.zip.is_none()
            && !header.extras.inner().contains_key("b64");
        if !is_plain || !header.typ.as_deref().is_none_or(is_access_token) {
            return None;
        }
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let Value::Object(claims) = document::from_slice(&payload).ok()? else {
            return None;
        };
        Some(Self {
            header,
            claims,
            signed,
            signature,
        })
    }
}

/// Whether tokens of this type say who someone is: `JWT`, or `at+jwt` of RFC 9068. Those for other purposes, such as logout tokens
/// and proofs of possession, name their own.
fn is_access_token(typ: &str) -> bool {
    const PREFIX: &str = "application/";
    let name = match typ.split_at_checked(PREFIX.len()) {
        Some((prefix, name)) if prefix.eq_ignore_ascii_case(PREFIX) => name,
        _ => typ,
    };
    name.eq_ignore_ascii_case("JWT") || name.eq_ignore_ascii_case("at+jwt")
}
