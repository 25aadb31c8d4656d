//! Orders of operators.

use std::time::Duration;

use super::RedisStore;
use super::answer::only;
use super::error::unexpected;
use super::keys::{Member, Place};
use super::request::Call;
use super::scripts::{CLIENT, DRAIN, QUEUE};
use super::sessions::{from_json, with_messages};
use crate::store::{ClientRecord, Drain, MessageBody, SessionId, StoreError};

/// How long a client is remembered after it has registered, and an order after its deadline.
pub(super) const REMEMBERED: Duration = Duration::from_secs(7 * 86_400);
/// How many messages one call of a script queues.
const BATCH: usize = 500;

impl RedisStore {
    pub(super) async fn read_client(
        &self,
        client_id: &str,
    ) -> Result<Option<ClientRecord>, StoreError> {
        let call = Call::new(Place::Fleet, &CLIENT)
            .arg(client_id)
            .millis(REMEMBERED);
        let answers = self.router.one(call.at(Place::Fleet)).await?;
        let record: Option<String> = only(answers)?;
        record.as_deref().map(from_json).transpose()
    }

    pub(super) async fn set_drain(
        &self,
        client_id: &str,
        drain: Option<Drain>,
    ) -> Result<bool, StoreError> {
        let call = Call::new(Place::Fleet, &DRAIN).arg(client_id);
        let call = match drain {
            None => call.arg(""),
            Some(Drain::Cordon) => call.arg("c"),
            Some(Drain::By { left }) => call.millis(left),
        };
        let call = call.millis(REMEMBERED);
        let answers = self.router.one(call.at(Place::Fleet)).await?;
        Ok(only::<u64>(answers)? == 1)
    }

    pub(super) async fn queue(
        &self,
        session: &SessionId,
        messages: Vec<MessageBody>,
    ) -> Result<bool, StoreError> {
        // Without messages, too, it is told whether the session lives.
        let batches = messages
            .chunks(BATCH)
            .chain(messages.is_empty().then_some(&[][..]));
        for batch in batches {
            let mut call = with_messages(Call::new(Place::Fleet, &QUEUE), session)
                .arg(session.as_str())
                .millis(self.options.lease_ttl);
            for message in batch {
                call = call.arg(Member::new(&message.key, self.options.shards).text);
                call = match message.deadline {
                    Some(left) => call.millis(left),
                    None => call.arg("-"),
                };
            }
            let answers = self.router.one(call.at(Place::Fleet)).await?;
            if only::<u64>(answers)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// An order as it is kept: `c`, or the deadline.
pub(super) fn parse_drain(text: Option<&str>, now: u64) -> Result<Option<Drain>, StoreError> {
    match text {
        None => Ok(None),
        Some("c") => Ok(Some(Drain::Cordon)),
        Some(deadline) => {
            let deadline: u64 = deadline
                .parse()
                .map_err(|_| unexpected("an order was due"))?;
            let over = Duration::from_millis(now.saturating_sub(deadline));
            Ok((over <= REMEMBERED).then_some(Drain::By {
                left: Duration::from_millis(deadline.saturating_sub(now)),
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_counts_down_and_is_forgotten_a_week_after_its_deadline() {
        // P3.4
        let week = 7 * 86_400_000;
        let by = |left| {
            Some(Drain::By {
                left: Duration::from_millis(left),
            })
        };
        for (text, now, drain) in [
            (None, 5, None),
            (Some("c"), u64::MAX, Some(Drain::Cordon)),
            (Some("7"), 5, by(2)),
            (Some("7"), 7 + week, by(0)),
            (Some("7"), 8 + week, None),
        ] {
            assert_eq!(parse_drain(text, now).expect("well formed"), drain);
        }
        assert!(parse_drain(Some("x"), 5).is_err());
    }
}
