//! Placement-epoch fences (H12).

use tokio::time::Instant;

use crate::api::refusal::Refusal;

/// The highest placement epoch known of an id, and whether it was handed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    pub(crate) epoch: u64,
    pub(crate) released: bool,
    /// A request under this epoch was told to go elsewhere, where nothing was live.
    pub(crate) turned_away: bool,
}

impl Fence {
    /// The fence of an epoch of which nothing else is known.
    pub(super) fn at(epoch: u64) -> Self {
        Self {
            epoch,
            released: false,
            turned_away: false,
        }
    }

    /// Checks a request's epoch and moves the fence (H12.3).
    pub(super) fn admit(fence: &mut Option<Self>, epoch: u64) -> Result<(), Refusal> {
        match fence {
            Some(known) if epoch < known.epoch => Err(Refusal::StaleEpoch),
            Some(known) if epoch == known.epoch && known.released => Err(Refusal::ReleasedEpoch),
            Some(known) if epoch == known.epoch => Ok(()),
            _ => {
                *fence = Some(Self::at(epoch));
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
            released: true,
            ..Fence::at(4)
        });
        assert_eq!(Fence::admit(&mut fence, 4), Err(Refusal::ReleasedEpoch));
        assert_eq!(Fence::admit(&mut fence, 5), Ok(()));
        assert_eq!(fence, Some(Fence::at(5)));
    }
}
