"""The Python twin of the fleet tests' worker (`src/bin/fleet_worker`): the same namespace, tray, rows and items."""

import asyncio
import json
import os
import threading
import time
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from pinned import PinnedAPI, PinnedHost, PinnedWorker, route
from pinned.durability import FenceLost
from pinned.durability.postgres import PostgresStateStore
from pinned.trays import Tray, inbox, persistent, persistent_queue, tray

EDITION = "python"
BEAT = 0.02
STALL = 0.2


class Activity:
    """What instances did, one line each, written in one piece."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, event: str, id: str, epoch: int, ms: int = 0) -> None:
        line = {
            "at": time.time_ns() // 1000,
            "pid": os.getpid(),
            "event": event,
            "id": id,
            "epoch": epoch,
            "ms": ms,
        }
        os.write(self._file, (json.dumps(line) + "\n").encode())

    def watch(self, lease) -> None:
        """Notes when this process was not run for a while, and from when to when its lease had passed."""

        def watch() -> None:
            last = time.monotonic()
            lapsed = False
            while True:
                time.sleep(BEAT)
                gap = time.monotonic() - last
                if gap > STALL:
                    self.note("stalled", "", 0, int(gap * 1000))
                expired = lease.expired
                if expired and not lapsed:
                    since = time.time() - lease.expires_at.timestamp()
                    self.note("lapsed", "", 0, max(0, int(since * 1000)))
                elif lapsed and not expired:
                    self.note("restored", "", 0, int(gap * 1000))
                lapsed = expired
                last = time.monotonic()

        threading.Thread(target=watch, daemon=True).start()


class SignedStore(PostgresStateStore):
    """Rows say which process wrote them, and under which epoch it claimed to."""

    async def _apply_tray(self, conn, ns, id, tray_ns, tray_id, marked, doc, epoch):
        if doc is not None:
            doc = {**doc, "writer": {"pid": os.getpid(), "epoch": epoch}}
        await super()._apply_tray(conn, ns, id, tray_ns, tray_id, marked, doc, epoch)


async def let_others_pass(conn) -> None:
    """A worker that is stopped within a transaction would keep the next one waiting for as long as it stays stopped."""
    await conn.execute("SET LOCAL idle_in_transaction_session_timeout = '2s'")


activity = Activity(os.environ["ACTIVITY_LOG"])
store = SignedStore(
    dsn=os.environ["PINNED_STORE"], configure_transaction=let_others_pass
)
shadows: set[asyncio.Task] = set()


class Item(BaseModel):
    id: str
    takes: int = 0
    holds: str = ""


class Work(Tray):
    queue = persistent_queue()
    executed = persistent({})

    @inbox
    def enqueue(self, item: dict) -> None:
        self.kick()
        self.queue.append(item)

    def items(self):
        while self.queue.value:
            yield self.queue.peek()
            self.queue.popleft()


class Ledger(PinnedAPI):
    async def lifespan(self):
        self.count = 0
        self.note("start")
        try:
            yield
        finally:
            self.note("end")

    @route.post("/touch")
    async def touch(self) -> dict:
        self.note("run")
        self.count += 1
        return self.describe()

    @route.get("/who")
    async def who(self) -> dict:
        self.note("run")
        return self.describe()

    @route.post("/shadow")
    async def shadow(self) -> None:
        """Leaves something behind that writes under this epoch as long as the store lets it."""
        task = asyncio.create_task(follow(self.id, self.placement_epoch))
        shadows.add(task)

    @route.post("/enqueue")
    async def enqueue(self, item: Item) -> dict:
        work = await self.work.get()
        await work.enqueue(item.model_dump())
        return {"admitted": item.id}

    @route.get("/")
    async def progress(self) -> dict:
        work = await self.work.get()
        return {"executed": work.executed.value, "queued": len(work.queue.value)}

    @tray(Work)
    async def work(self, item, ctx) -> None:
        self.note("deliver")
        holds = item.get("holds", "")
        slow = ctx.attempts < 3 if holds == "" else holds == EDITION
        takes = item.get("takes", 0)
        if takes > 0 and slow:
            await self.domain.sleep(takes / 1000)
        executed = ctx.tray.executed
        executed.value = {**executed.value, item["id"]: ctx.attempts}

    def note(self, event: str) -> None:
        activity.note(event, self.id, self.placement_epoch)

    def describe(self) -> dict:
        return {
            "edition": EDITION,
            "pid": os.getpid(),
            "epoch": str(self.placement_epoch),
            "count": self.count,
        }


async def follow(id: str, epoch: int) -> None:
    while True:
        try:
            await store.set_tray("/ledgers", id, "shadow", "~", False, {}, epoch)
        except FenceLost:
            activity.note("refused", id, epoch)
            return
        except Exception:
            pass
        await asyncio.sleep(BEAT)


def seconds(name: str) -> float:
    return int(os.environ[name]) / 1000


async def main() -> None:
    await store.setup()
    worker = PinnedWorker(
        pinboard_url=os.environ["PINBOARD_URL"],
        token=os.environ["PINBOARD_TOKEN"],
        advertise_url=os.environ["ADVERTISE_URL"],
        state_store=store,
        heartbeat_interval=seconds("HEARTBEAT_MS"),
        lease_buffer=seconds("LEASE_BUFFER_MS"),
    )
    activity.watch(worker.lease)
    ledgers = PinnedHost(
        Ledger,
        worker=worker,
        namespace="/ledgers",
        idle_timeout=2.0,
        sweep_interval=0.5,
        max_concurrent_activations=32,
    )
    server = uvicorn.Server(
        uvicorn.Config(None, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="info")
    )

    async def exit_after_drain() -> None:
        while not worker.drained:
            await asyncio.sleep(0.05)
        server.should_exit = True

    @asynccontextmanager
    async def lifespan(app: FastAPI):
        worker.install_sigterm_drain(deadline=seconds("DRAIN_MS"))
        watch = asyncio.create_task(exit_after_drain())
        yield
        watch.cancel()

    app = FastAPI(lifespan=lifespan)
    app.include_router(worker)
    app.include_router(ledgers)
    server.config.app = app
    await server.serve()


if __name__ == "__main__":
    asyncio.run(main())
