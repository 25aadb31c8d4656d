//! Trays: the handlers in a block, and the structs.

use proc_macro2::TokenStream;
use syn::{Attribute, Expr, Generics, Ident, Type, Visibility};

use super::{Cfg, OptionValue};

/// A method that works through a tray's items.
pub(crate) struct Tray {
    pub(crate) ident: Ident,
    pub(crate) visibility: Visibility,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) form: Form,
    /// As the handler writes it.
    pub(crate) item: Type,
    /// `W` of its `Dispatch<W>`.
    pub(crate) tray: Type,
    /// The return type, unless there is none or it cannot be named.
    pub(crate) output: Option<Type>,
    pub(crate) hooks: Vec<TrayHook>,
    pub(crate) cfg: Cfg,
}

/// One tray, or one for each id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Single,
    Map { always_open: bool },
}

/// What runs when a tray opens, and what when it closes.
#[derive(Default)]
pub(crate) struct TrayHook {
    pub(crate) open: Option<HookFunction>,
    pub(crate) close: Option<HookFunction>,
}

/// One half of a hook: a function of the block.
pub(crate) struct HookFunction {
    pub(crate) ident: Ident,
    /// The return type, unless there is none or it cannot be named.
    pub(crate) output: Option<Type>,
}

/// A struct with `#[derive(Tray)]`.
pub(crate) struct TrayStruct {
    /// `::pinned::__private`, or wherever it is.
    pub(crate) private: TokenStream,
    pub(crate) ident: Ident,
    pub(crate) generics: Generics,
    pub(crate) fields: Vec<TrayField>,
    /// `None` only after a mistake.
    pub(crate) items: Option<Items>,
    /// The word `lifecycle`.
    pub(crate) lifecycle: Option<Ident>,
    pub(crate) settings: Vec<TraySetting>,
}

/// A field of a tray's struct.
pub(crate) struct TrayField {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) kind: FieldKind,
}

/// What is made of a field.
pub(crate) enum FieldKind {
    /// Durable, with the initial value that its declaration gives.
    Kept { initial: Option<Expr> },
    /// Not durable.
    Unkept,
}

/// Where a tray has its items from.
pub(crate) enum Items {
    Queue {
        field: Ident,
        ty: Box<Type>,
    },
    /// The word `source`.
    Source(Ident),
}

/// A setting of a tray type with its checked value.
pub(crate) struct TraySetting {
    pub(crate) name: Ident,
    pub(crate) value: OptionValue,
}
