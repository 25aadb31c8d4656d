//! Hosted structs with durable fields.

use proc_macro2::TokenStream;
use syn::{Attribute, Generics, Ident, Type, Visibility};

use super::FieldKind;

/// A struct with `#[derive(Durable)]`.
pub(crate) struct DurableStruct {
    /// `::pinned::__private`, or wherever it is.
    pub(crate) private: TokenStream,
    pub(crate) visibility: Visibility,
    pub(crate) ident: Ident,
    pub(crate) generics: Generics,
    pub(crate) fields: Vec<DurableField>,
    /// `#[durable(setup)]`: the block's setup builds it.
    pub(crate) by_setup: bool,
}

/// A field of it.
pub(crate) struct DurableField {
    pub(crate) visibility: Visibility,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) kind: FieldKind,
}
