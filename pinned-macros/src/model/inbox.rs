//! The admissions of a tray's struct.

use proc_macro2::TokenStream;
use syn::{Attribute, Generics, Ident, Type, Visibility};

use super::Cfg;

/// A block with `#[inbox]`.
pub(crate) struct Inbox {
    /// `::pinned::__private`, or wherever it is.
    pub(crate) private: TokenStream,
    /// The struct.
    pub(crate) tray: Type,
    pub(crate) generics: Generics,
    pub(crate) name: Ident,
    pub(crate) visibility: Visibility,
    pub(crate) admissions: Vec<Admission>,
    pub(crate) cfg: Cfg,
}

/// A method of it.
pub(crate) struct Admission {
    pub(crate) docs: Vec<Attribute>,
    pub(crate) ident: Ident,
    pub(crate) arguments: Vec<AdmissionArgument>,
    /// The return type, unless there is none or it cannot be named.
    pub(crate) output: Option<Type>,
    pub(crate) cfg: Cfg,
}

/// What it is given beside the tray.
pub(crate) struct AdmissionArgument {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) cfg: Cfg,
}
