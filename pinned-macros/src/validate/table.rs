//! The routes of a block together: what a router could not hold.

use std::collections::HashMap;

use matchit::InsertError;

use super::path;
use crate::errors::Errors;
use crate::model::{Handler, Route};

pub(super) fn check(handlers: &[Handler], errors: &mut Errors) {
    let mut router = matchit::Router::new();
    let mut taken: HashMap<(&'static str, String), &Handler> = HashMap::new();
    let routes = handlers
        .iter()
        .flat_map(|handler| handler.routes.iter().map(move |route| (handler, route)));
    // Conditional routes may be alternatives of each other; the host checks what is left of them.
    let (always, conditional): (Vec<_>, Vec<_>) = routes
        .filter(|(_, route)| path::rule(&route.path.value()).is_ok())
        .partition(|(_, route)| route.cfg.is_always());
    for (handler, route) in always {
        let path = route.path.value();
        match taken.entry((route.verb.attribute(), path.clone())) {
            std::collections::hash_map::Entry::Occupied(first) => {
                errors.at(&route.path, twice(route, first.get()));
            }
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(handler);
                insert(&mut router, route, &path, errors);
            }
        }
    }
    for (_, route) in conditional {
        let path = route.path.value();
        match taken.get(&(route.verb.attribute(), path.clone())) {
            Some(first) => errors.at(&route.path, twice(route, first)),
            None => insert(&mut router.clone(), route, &path, errors),
        }
    }
}

fn insert(router: &mut matchit::Router<()>, route: &Route, path: &str, errors: &mut Errors) {
    if let Err(InsertError::Conflict { with }) = router.insert(path, ())
        && with != path
    {
        errors.at(
            &route.path,
            format!(
                "`{path}` and `{with}` match the same requests: use the same parameter names in the \
                 same places, or tell the paths apart by a fixed segment"
            ),
        );
    }
}

fn twice(route: &Route, first: &Handler) -> String {
    format!(
        "`{}` already answers `{}` on this path: change one of the two",
        syn::ext::IdentExt::unraw(&first.ident),
        route.verb.attribute()
    )
}
