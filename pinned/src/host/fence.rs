//! Placement-epoch fences (H12).

use tokio::time::Instant;

use crate::api::refusal::Refusal;

/// The highest placement epoch known of an id, and whether it was handed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    pub(crate) epoch: u64,
    pub(crate) released: bool,
}

impl Fence {
    /// Checks a request's epoch and moves the fence (H12.3).
    pub(super) fn admit(fence: &mut Option<Self>, epoch: u64) -> Result<(), Refusal> {
        match fence {
            Some(known) if epoch < known.epoch => Err(Refusal::StaleEpoch),
            Some(known) if epoch == known.epoch && known.released => Err(Refusal::ReleasedEpoch),
            _ => {
                *fence = Some(Self {
                    epoch,
                    released: false,
                });
                Ok(())
            }
        }
    }
}

/// A fence that outlives its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remembered {
    pub(super) fence: Fence,
    /// Its last update; a refusal does not count as one (H12.6).
    pub(super) updated: Instant,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fence_follows_the_highest_epoch() {
        // H12.3
        let mut fence = None;
        assert_eq!(Fence::admit(&mut fence, 4), Ok(()));
        assert_eq!(Fence::admit(&mut fence, 3), Err(Refusal::StaleEpoch));
        assert_eq!(Fence::admit(&mut fence, 4), Ok(()));
        fence = Some(Fence {
            epoch: 4,
            released: true,
        });
        assert_eq!(Fence::admit(&mut fence, 4), Err(Refusal::ReleasedEpoch));
        assert_eq!(Fence::admit(&mut fence, 5), Ok(()));
        assert_eq!(
            fence,
            Some(Fence {
                epoch: 5,
                released: false
            })
        );
    }
}
