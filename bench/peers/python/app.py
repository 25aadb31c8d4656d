"""The counter of the benches, on the Python edition in local mode."""

from fastapi import FastAPI
from pinned import PinnedAPI, PinnedHost, PinnedWorker, route


class Counter(PinnedAPI):
    async def lifespan(self):
        self.count = 0
        yield

    @route.post("/increment")
    async def increment(self) -> int:
        self.count += 1
        return self.count


worker = PinnedWorker()
app = FastAPI()
app.include_router(worker)
app.include_router(PinnedHost(Counter, worker=worker, namespace="/counters"))
