//! Checked blocks and structs. What stands here keeps every rule of `validate`.

mod durable;
mod inbox;
mod tray;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Generics, Ident, LitStr, Path, Type};

pub(crate) use durable::{DurableField, DurableStruct};
pub(crate) use inbox::{Admission, AdmissionArgument, Inbox};
pub(crate) use tray::{
    FieldKind, Form, HookFunction, Items, Tray, TrayField, TrayHook, TraySetting, TrayStruct,
};

/// One annotated impl block.
pub(crate) struct Api {
    pub(crate) target: Target,
    pub(crate) namespace: Option<LitStr>,
    pub(crate) options: Vec<DeclaredOption>,
    /// More than one only where each is conditional.
    pub(crate) setups: Vec<Setup>,
    pub(crate) teardowns: Vec<Hook>,
    pub(crate) stats: Vec<Hook>,
    /// Those that a route names, each once.
    pub(crate) authorizers: Vec<Authorizer>,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) trays: Vec<Tray>,
}

/// The struct that the block stands on; known even when the block has mistakes.
pub(crate) struct Target {
    /// `::pinned::__private`, or wherever it is.
    pub(crate) private: TokenStream,
    /// The span of the `#[pinned_api]` attribute.
    pub(crate) attribute: Span,
    pub(crate) self_ty: Type,
    pub(crate) generics: Generics,
    pub(crate) cfg: Cfg,
    /// The paths of the consumed attributes, as written.
    pub(crate) consumed: Vec<Consumed>,
}

/// The path of an attribute that the block consumed; naming it once more keeps its import used.
pub(crate) struct Consumed {
    pub(crate) path: Path,
    pub(crate) cfg: Cfg,
}

/// An option of the attribute with its checked value.
pub(crate) struct DeclaredOption {
    pub(crate) name: Ident,
    pub(crate) value: OptionValue,
}

/// The value of an option.
#[derive(Debug, PartialEq)]
pub(crate) enum OptionValue {
    Millis(u64),
    Count(usize),
    Integer(i64),
    Flag(bool),
    Text(String),
}

/// A function that builds an instance.
pub(crate) struct Setup {
    pub(crate) hook: Hook,
    /// The type of its second argument, the durable fields as they were stored.
    pub(crate) stored: Option<Type>,
}

/// A setup, teardown or stats function.
pub(crate) struct Hook {
    pub(crate) ident: Ident,
    /// The return type, unless there is none or it cannot be named.
    pub(crate) output: Option<Type>,
    pub(crate) cfg: Cfg,
}

/// A function that decides who may call.
pub(crate) struct Authorizer {
    pub(crate) ident: Ident,
    pub(crate) output: Type,
    pub(crate) cfg: Cfg,
}

/// A method that answers at least one route.
pub(crate) struct Handler {
    pub(crate) ident: Ident,
    pub(crate) kind: HandlerKind,
    /// The extractors in their order, without the receiver and without the socket.
    pub(crate) args: Vec<Arg>,
    /// The return type, unless there is none or it cannot be named.
    pub(crate) output: Option<Type>,
    pub(crate) routes: Vec<Route>,
    pub(crate) cfg: Cfg,
}

/// The concurrency contract of a handler.
pub(crate) enum HandlerKind {
    /// `&self`: beside others of its kind.
    Shared,
    /// `&mut self`: alone.
    Exclusive,
    /// `this: Instance<Self>`: no turn.
    Instance,
    /// `this: Instance<Self>` and a socket of this type: no turn, for as long as the socket lives.
    Socket(Box<Type>),
}

/// An extractor argument.
pub(crate) struct Arg {
    pub(crate) ty: Type,
    /// `T` of an argument `Auth<T>`.
    pub(crate) caller: Option<Type>,
    pub(crate) cfg: Cfg,
}

/// One route of a handler.
pub(crate) struct Route {
    pub(crate) verb: Verb,
    pub(crate) path: LitStr,
    pub(crate) auth: RouteAuth,
    /// Its answer waits for the store.
    pub(crate) durable: bool,
    pub(crate) cfg: Cfg,
}

/// Who authorizes a route.
#[derive(Clone)]
pub(crate) enum RouteAuth {
    /// The `#[authorize]` function.
    Default(Ident),
    /// `auth = Self::name`.
    Named(Ident),
    /// `auth = none`.
    Public,
    /// The block has no `#[authorize]`.
    Open,
}

impl RouteAuth {
    /// The function that decides, where there is one.
    pub(crate) fn authorizer(&self) -> Option<&Ident> {
        match self {
            Self::Default(ident) | Self::Named(ident) => Some(ident),
            Self::Public | Self::Open => None,
        }
    }
}

/// The method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Delete,
    Patch,
    WebSocket,
}

impl Verb {
    /// Every verb with the name of its attribute.
    pub(crate) const ALL: [(&'static str, Self); 6] = [
        ("get", Self::Get),
        ("post", Self::Post),
        ("put", Self::Put),
        ("delete", Self::Delete),
        ("patch", Self::Patch),
        ("websocket", Self::WebSocket),
    ];

    /// The verb of `#[route::<name>]`.
    pub(crate) fn from_attribute(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find_map(|(known, verb)| (*known == name).then_some(*verb))
    }

    /// The name of the attribute.
    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Patch => "patch",
            Self::WebSocket => "websocket",
        }
    }
}

/// The conditions under which something is compiled; without any, always.
#[derive(Clone, Default)]
pub(crate) struct Cfg(Vec<TokenStream>);

impl Cfg {
    /// Adds one more condition.
    pub(crate) fn and(mut self, predicate: TokenStream) -> Self {
        self.0.push(predicate);
        self
    }

    /// The conditions of both.
    pub(crate) fn and_all(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// Nothing can compile it out.
    pub(crate) fn is_always(&self) -> bool {
        self.0.is_empty()
    }

    /// The conditions as the inside of one `cfg(..)`.
    pub(crate) fn predicate(&self) -> TokenStream {
        let conditions = &self.0;
        quote!(all(#(#conditions),*))
    }

    /// `not(any(..))` of all these conditions.
    pub(crate) fn none_of<'a>(cfgs: impl IntoIterator<Item = &'a Self>) -> Self {
        let any = cfgs.into_iter().map(Self::predicate);
        Self::default().and(quote!(not(any(#(#any),*))))
    }

    /// `any(..)` of all these conditions.
    pub(crate) fn any_of<'a>(cfgs: impl IntoIterator<Item = &'a Self>) -> Self {
        let any = cfgs.into_iter().map(Self::predicate);
        Self::default().and(quote!(any(#(#any),*)))
    }
}

/// As attributes, to stand before the item.
impl ToTokens for Cfg {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        for condition in &self.0 {
            tokens.extend(quote!(#[cfg(#condition)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::{ToTokens, quote};

    use super::{Cfg, Verb};

    #[test]
    fn every_verb_comes_back_from_its_attribute() {
        for (name, verb) in Verb::ALL {
            assert_eq!(Verb::from_attribute(name), Some(verb));
            assert_eq!(verb.attribute(), name);
        }
        assert_eq!(Verb::from_attribute("options"), None);
    }

    #[test]
    fn conditions_add_up() {
        let cfg = Cfg::default().and(quote!(unix)).and(quote!(test));
        assert!(!cfg.is_always());
        assert_eq!(
            cfg.to_token_stream().to_string(),
            quote!(#[cfg(unix)] #[cfg(test)]).to_string()
        );
        assert_eq!(
            Cfg::none_of([&cfg]).to_token_stream().to_string(),
            quote!(#[cfg(not(any(all(unix, test))))]).to_string()
        );
    }
}
