"""A worker of the Python edition, for the test that it is at home behind this pinboard."""

import asyncio
import os
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Request, WebSocket, WebSocketDisconnect
from fastapi.responses import StreamingResponse
from pinned import PinnedAPI, PinnedHost, PinnedWorker, attestation, route


class Room(PinnedAPI):
    async def lifespan(self):
        self.count = 0
        yield

    @route.post("/increment")
    async def increment(self) -> int:
        self.count += 1
        return self.count

    @route.get("/who")
    async def who(self, request: Request) -> dict:
        caller = attestation(request)
        return {
            "pid": os.getpid(),
            "epoch": request.headers.get("pinboard-epoch"),
            "caller": None if caller is None else f"{caller.ns}/{caller.id}",
        }

    @route.get("/ask/{other}")
    async def ask(self, other: str) -> dict:
        answer = await self.cluster.get(f"/rooms/{other}/who")
        return {"status": answer.status_code, "answer": answer.json()}

    @route.get("/events")
    async def events(self):
        async def produce():
            for number in range(5):
                yield f"data: {number}\n\n"
                await asyncio.sleep(0.05)

        return StreamingResponse(produce(), media_type="text/event-stream")

    @route.websocket("/echo")
    async def echo(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            while True:
                text = await socket.receive_text()
                if text == "bye":
                    await socket.close(code=4321, reason="as you wish")
                    return
                await socket.send_text(text.upper())
        except WebSocketDisconnect:
            pass


worker = PinnedWorker(
    pinboard_url=os.environ["PINBOARD_URL"],
    token=os.environ["PINBOARD_TOKEN"],
    advertise_url=os.environ["ADVERTISE_URL"],
    heartbeat_interval=0.5,
    lease_buffer=0.5,
)
rooms = PinnedHost(Room, worker=worker, namespace="/rooms")


async def main() -> None:
    server = uvicorn.Server(
        uvicorn.Config(None, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="info")
    )

    async def exit_after_drain() -> None:
        while not worker.drained:
            await asyncio.sleep(0.05)
        server.should_exit = True

    @asynccontextmanager
    async def lifespan(app: FastAPI):
        worker.install_sigterm_drain(deadline=10)
        watch = asyncio.create_task(exit_after_drain())
        yield
        watch.cancel()

    app = FastAPI(lifespan=lifespan)
    app.include_router(worker)
    app.include_router(rooms)
    server.config.app = app
    await server.serve()


if __name__ == "__main__":
    asyncio.run(main())
