"""A network that can fail: a relay stands before each server, and bytes to it and back go by that. It knows nothing of what they say.

What TCP makes of lost and late packets is seen by programs as bytes that come late, or not at all, or as connections that end; that is
what a relay can do.
"""
import asyncio
import contextlib
import socket
import struct
import threading

CHUNK = 65536
RESET = struct.pack('ii', 1, 0)  # SO_LINGER: what is under way is thrown away, and the other side told


class Relay:
    """To the server at |inner|, for whoever connects to |outer|; both are ports of this machine."""

    def __init__(self, outer, inner):
        self.outer, self.inner = outer, inner
        self.is_cut, self.delay = False, 0.0
        self.passes = None  # an event of the loop: bytes may go on
        self.writers = set()

    async def listen(self):
        self.passes = asyncio.Event()
        self.passes.set()
        return await asyncio.start_server(self._serve, '127.0.0.1', self.outer)

    # ---- faults, on the loop ----

    def cut(self):
        """Ends all connections; new ones end at once."""
        self.is_cut = True
        for writer in list(self.writers):
            _abort(writer)

    def hold(self):
        """Nothing passes, and nobody is told."""
        self.passes.clear()

    def slow(self, seconds):
        """Whatever passes comes so much later."""
        self.delay = seconds

    def heal(self):
        self.is_cut, self.delay = False, 0.0
        self.passes.set()

    # ---- connections ----

    async def _serve(self, reader, writer):
        with contextlib.suppress(asyncio.CancelledError), self._known(writer):
            await self.passes.wait()
            if self.is_cut:
                return
            try:
                back, on = await asyncio.open_connection('127.0.0.1', self.inner)
            except OSError:
                return  # there is no server now
            with self._known(on):
                await asyncio.wait([asyncio.ensure_future(self._pass(reader, on)), asyncio.ensure_future(self._pass(back, writer))],
                                   return_when=asyncio.FIRST_COMPLETED)

    @contextlib.contextmanager
    def _known(self, writer):
        writer.get_extra_info('socket').setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.writers.add(writer)
        try:
            yield
        finally:
            self.writers.discard(writer)
            _abort(writer)

    async def _pass(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await asyncio.sleep(self.delay)
                await self.passes.wait()
                writer.write(data)
                await writer.drain()


def _abort(writer):
    with contextlib.suppress(OSError):
        writer.get_extra_info('socket').setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


class Network:
    """The relays of a cluster, by task, on a thread of their own."""

    def __init__(self, ports):
        self.relays = {task: Relay(*pair) for task, pair in ports.items()}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        for relay in self.relays.values():
            asyncio.run_coroutine_threadsafe(relay.listen(), self.loop).result()

    def stop(self):
        async def end_all():
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        asyncio.run_coroutine_threadsafe(end_all(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def do(self, task, what, *args):
        """Relay.|what| before the server of |task|."""
        self.loop.call_soon_threadsafe(getattr(self.relays[task], what), *args)
