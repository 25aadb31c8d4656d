//! What a program shares with all its instances.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Values that every instance of a worker can reach by their type: pools, clients, settings.
#[derive(Clone, Default)]
pub(crate) struct SharedState(Arc<HashMap<TypeId, Shared>>);

/// A value, and the name of its type.
#[derive(Clone)]
struct Shared {
    type_name: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl SharedState {
    pub(crate) fn insert<S: Send + Sync + 'static>(&mut self, value: S) {
        let shared = Shared {
            type_name: type_name::<S>(),
            value: Arc::new(value),
        };
        Arc::make_mut(&mut self.0).insert(TypeId::of::<S>(), shared);
    }

    pub(crate) fn get<S: Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        let shared = self.0.get(&TypeId::of::<S>())?;
        Arc::clone(&shared.value).downcast().ok()
    }
}

impl fmt::Debug for SharedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.0.values().map(|shared| shared.type_name))
            .finish()
    }
}
