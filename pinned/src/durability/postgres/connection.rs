//! Dialling, and the two ways in which a connection ends.

use std::time::Duration;

use tokio_postgres::{Client, Config, NoTls};

use super::failure::DialError;
use crate::domain::{Domain, TaskHandle};

/// D10.2
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request to cancel a statement may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// One session on the server. Dropping it ends the session in good order; [`Connection::close`] does not wait for that.
pub(super) struct Connection {
    client: Client,
    /// Reads and writes the socket, and owns it. `None` for a connection that came from outside.
    driver: Option<TaskHandle<()>>,
}

impl Connection {
    pub(super) async fn dial(domain: &Domain, config: &Config) -> Result<Self, DialError> {
        let dialled = domain.timeout(CONNECT_TIMEOUT, config.connect(NoTls)).await;
        let (client, socket) = match dialled {
            Ok(dialled) => dialled?,
            Err(_) => return Err(DialError::TimedOut),
        };
        let driver = domain.spawn(async move {
            if let Err(error) = socket.await {
                tracing::debug!(target: "pinned::postgres", %error, "a connection ended");
            }
        });
        Ok(Self {
            client,
            driver: Some(driver),
        })
    }

    pub(super) fn supplied(client: Client) -> Self {
        Self {
            client,
            driver: None,
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Resolves once the connection has ended.
    pub(super) async fn ended(mut self) {
        if let Some(driver) = &mut self.driver {
            // However it ended, it did.
            let _ = driver.await;
        }
    }

    /// Closes the socket outright: over a dead link no goodbye would arrive (D11.2).
    pub(super) fn close(self) {
        if let Some(driver) = self.driver {
            driver.abort();
        }
    }

    /// Closes the socket, and asks the server on the side to stop what it is doing here: a backend that waits for a lock
    /// would not look at its socket before the wait is over.
    pub(super) fn cancel(self, domain: &Domain) {
        let (token, limit) = (self.client.cancel_token(), domain.clone());
        let stopping = domain.spawn(async move {
            // Best effort: the server's own timeouts end the statement if this does not.
            let _ = limit
                .timeout(CANCEL_TIMEOUT, token.cancel_query(NoTls))
                .await;
            self.close();
        });
        drop(stopping);
    }
}
