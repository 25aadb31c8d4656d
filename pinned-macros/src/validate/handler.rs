//! Receivers and sockets of a handler.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{FnArg, Pat, PatType, Signature, Type};

use super::arguments;
use super::path;
use super::roles::{HandlerSyntax, Roles, RouteSyntax};
use super::shape::{self, Asyncness, SelfKind, self_kind};
use crate::errors::Errors;
use crate::model::{Arg, Handler, HandlerKind, Route, RouteAuth, Verb};
use crate::parse::{AuthArgument, argument_of, conditions_of, last_segment, ungrouped};

/// The three receivers, for messages.
const RECEIVERS: &str = "write `&self` (runs beside other readers), `&mut self` (runs alone) or \
                         `this: Instance<Self>` (holds no turn)";

/// How a handler asks for its turn.
enum ReceiverSyntax<'a> {
    Turn(SelfKind, &'a syn::Receiver),
    Instance,
    /// Already recorded.
    Refused,
}

pub(super) fn lower(
    syntax: &HandlerSyntax<'_>,
    self_ty: &Type,
    roles: &Roles<'_>,
    errors: &mut Errors,
) -> Option<Handler> {
    let signature = &syntax.method.signature;
    let name = signature.ident.unraw();
    shape::check(
        &format!("the handler `{name}`"),
        Asyncness::Async,
        signature,
        errors,
    );

    let receiver = receiver(signature, self_ty, errors);
    let arguments: Vec<&PatType> = match receiver {
        ReceiverSyntax::Instance => shape::typed_arguments(signature).skip(1).collect(),
        _ => shape::typed_arguments(signature).collect(),
    };
    for argument in shape::typed_arguments(signature) {
        arguments::check_name(argument, errors);
    }
    for argument in &arguments {
        arguments::check_type(argument, errors);
    }
    arguments::check_return(signature, errors);
    let socket = sockets(syntax, &arguments, errors);
    for route in &syntax.routes {
        if route.verb == Verb::WebSocket {
            holds_no_turn(&receiver, errors);
            break;
        }
    }

    let routes: Vec<Route> = syntax
        .routes
        .iter()
        .filter_map(|route| lower_route(route, roles, errors))
        .collect();
    let args: Vec<Arg> = arguments
        .iter()
        .filter(|argument| !is_socket(&argument.ty))
        .map(|argument| Arg {
            ty: (*argument.ty).clone(),
            caller: argument_of(&argument.ty, "Auth").cloned(),
            cfg: conditions_of(&argument.attrs),
        })
        .collect();
    for argument in &arguments {
        arguments::check_caller(argument, &routes, errors);
    }

    let kind = match (receiver, socket) {
        (ReceiverSyntax::Instance, Some(socket)) => HandlerKind::Socket(Box::new(socket)),
        (ReceiverSyntax::Instance, None) => HandlerKind::Instance,
        (ReceiverSyntax::Turn(SelfKind::Exclusive, _), _) => HandlerKind::Exclusive,
        (ReceiverSyntax::Turn(..), _) => HandlerKind::Shared,
        (ReceiverSyntax::Refused, _) => return None,
    };
    Some(Handler {
        ident: signature.ident.clone(),
        kind,
        args,
        output: shape::nameable_return(signature),
        routes,
        cfg: syntax.cfg.clone(),
    })
}

/// `&self`, `&mut self`, or `this: Instance<Self>` first.
fn receiver<'a>(
    signature: &'a Signature,
    self_ty: &Type,
    errors: &mut Errors,
) -> ReceiverSyntax<'a> {
    match signature.inputs.first() {
        Some(FnArg::Receiver(receiver)) => match self_kind(receiver) {
            SelfKind::Unsupported => {
                let found = receiver.to_token_stream();
                let why = "the host keeps the instance and lends it for one turn";
                errors.at(
                    &found,
                    format!(
                        "a handler cannot take `{}`, because {why}: {RECEIVERS}",
                        tidy(&found)
                    ),
                );
                ReceiverSyntax::Refused
            }
            kind => ReceiverSyntax::Turn(kind, receiver),
        },
        Some(FnArg::Typed(first))
            if last_segment(&first.ty).is_some_and(|s| s.ident == "Instance") =>
        {
            match own_instance("a handler", first, self_ty, errors) {
                true => ReceiverSyntax::Instance,
                false => ReceiverSyntax::Refused,
            }
        }
        _ => {
            let name = signature.ident.unraw();
            errors.at(
                &signature.ident,
                format!("the handler `{name}` has no receiver: {RECEIVERS}"),
            );
            ReceiverSyntax::Refused
        }
    }
}

/// `this: Instance<Self>`, known to be an `Instance` of something.
pub(super) fn own_instance(
    what: &str,
    argument: &PatType,
    self_ty: &Type,
    errors: &mut Errors,
) -> bool {
    let of = argument_of(&argument.ty, "Instance");
    if !of.is_some_and(|of| is_self(of, self_ty)) {
        errors.at(
            &argument.ty,
            format!("the receiver of {what} is its own instance: write `this: Instance<Self>`"),
        );
        return false;
    }
    if !matches!(&*argument.pat, Pat::Ident(_) | Pat::Wild(_)) {
        errors.at(
            &argument.pat,
            "the instance needs a plain name: write `this: Instance<Self>`",
        );
    }
    true
}

/// `Self`, or the type of the block as written there.
pub(super) fn is_self(ty: &Type, self_ty: &Type) -> bool {
    let text = |ty: &Type| ungrouped(ty).to_token_stream().to_string();
    let written = text(ty);
    written == "Self" || written == text(self_ty)
}

/// A WebSocket lives as long as its client likes, and so would its turn.
fn holds_no_turn(receiver: &ReceiverSyntax<'_>, errors: &mut Errors) {
    if let ReceiverSyntax::Turn(kind, receiver) = receiver {
        let waiting = match kind {
            SelfKind::Exclusive => "every other handler",
            _ => "every `&mut self` handler",
        };
        errors.at(
            receiver,
            format!(
                "a WebSocket handler holds no turn: with `{}` {waiting} would wait until the socket closes. \
                 Take `this: Instance<Self>`, and `this.read().await` or `this.write().await` where a turn \
                 is needed",
                tidy(&receiver.to_token_stream())
            ),
        );
    }
}

/// A WebSocket route has one socket, last; no other route has any.
fn sockets(
    syntax: &HandlerSyntax<'_>,
    arguments: &[&PatType],
    errors: &mut Errors,
) -> Option<Type> {
    let sockets: Vec<&&PatType> = arguments
        .iter()
        .filter(|argument| is_socket(&argument.ty))
        .collect();
    let mut socket_route = None;
    for route in &syntax.routes {
        match (route.verb, sockets.first()) {
            (Verb::WebSocket, _) => socket_route = Some(route),
            (_, Some(socket)) => errors.at(
                &socket.ty,
                format!(
                    "`#[{}]` has no socket to give: use `#[route::websocket(..)]` for this handler",
                    crate::parse::written(route.path)
                ),
            ),
            (_, None) => {}
        }
    }
    socket_route?;
    match sockets.as_slice() {
        [socket] => {
            let last = arguments.last().is_some_and(|last| is_socket(&last.ty));
            if !last {
                errors.at(
                    &socket.ty,
                    "the socket is the last argument of a WebSocket handler: move it to the end",
                );
            }
            Some((*socket.ty).clone())
        }
        [] => {
            let name = &syntax.method.signature.ident;
            errors.at(name, "a WebSocket handler takes its socket as the last argument: add `socket: WebSocket`");
            None
        }
        [_, second, ..] => {
            errors.at(
                &second.ty,
                "a WebSocket handler has exactly one socket: remove this one",
            );
            None
        }
    }
}

fn is_socket(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|s| s.ident == "WebSocket" || s.ident == "WebSocketUpgrade")
}

fn lower_route(route: &RouteSyntax<'_>, roles: &Roles<'_>, errors: &mut Errors) -> Option<Route> {
    let arguments = route.arguments?;
    path::check(&arguments.path, errors);
    if let (Verb::WebSocket, Some(word)) = (route.verb, &arguments.durable) {
        errors.at(
            word,
            "a WebSocket cannot be durable, because it has no single answer to hold back: remove `durable`, and \
             await `this.context().frontier()?.wait()` before a message that promises something",
        );
    }
    let auth = match (&arguments.auth, &roles.authorize) {
        (Some(AuthArgument::None), _) => RouteAuth::Public,
        (Some(AuthArgument::Function(name)), _) => RouteAuth::Named(name.clone()),
        (None, Some(default)) => RouteAuth::Default(default.method.signature.ident.clone()),
        (None, None) => RouteAuth::Open,
    };
    Some(Route {
        verb: route.verb,
        path: arguments.path.clone(),
        auth,
        durable: arguments.durable.is_some(),
        cfg: route.cfg.clone(),
    })
}

/// A receiver as one writes it.
pub(super) fn tidy(tokens: &TokenStream) -> String {
    let text = tokens.to_string();
    [
        ("& ", "&"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" :", ":"),
        (":: ", "::"),
    ]
    .iter()
    .fold(text, |text, (from, to)| text.replace(from, to))
}
