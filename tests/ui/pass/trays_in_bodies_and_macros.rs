use pinned::{Dispatch, Durable, Instance, Persistent, PersistentQueue, Tray, inbox, pinned_api};

macro_rules! lane {
    ($vis:vis $name:ident, $tray:ident, $inbox:ident, $item:ty, $handler:ident, $attempts:literal) => {
        #[derive(Tray)]
        #[tray(max_attempts = $attempts)]
        $vis struct $tray {
            queue: PersistentQueue<$item>,
            #[tray(initial = $attempts)]
            number: Persistent<u64>,
        }

        #[inbox(trait = $inbox)]
        impl $tray {
            $vis fn enqueue(&mut self, item: $item) {
                self.number.update(|number| *number += 1);
                self.queue.push(item);
            }
        }

        #[derive(Durable)]
        $vis struct $name {
            $vis done: Persistent<u64>,
        }

        #[pinned_api]
        impl $name {
            #[tray]
            $vis async fn $handler(this: Instance<Self>, item: $item, dispatch: Dispatch<$tray>) {
                let _ = dispatch.enqueue(item);
                if let Ok(mut this) = this.write().await {
                    this.done.set(1);
                }
            }
        }
    };
}

lane!(pub Lane, LaneWork, LaneInbox, String, work, 3);

fn main() {
    lane!(Local, LocalWork, LocalInbox, u64, r#type, 5);

    async fn post(lane: Instance<Lane>, local: Instance<Local>) -> Result<(), pinned::BoxError> {
        lane.tray(Lane::WORK).await?.enqueue(String::new())?.await?;
        local.tray(Local::TYPE).await?.enqueue(1)?.await?;
        Ok(())
    }
    let _ = post;
}
