#!/usr/bin/env python3
"""A proxy between redlock and redis-servers that can be told to misbehave.

    proxy.py DIR TARGET ...

A TARGET is the path of a Unix socket.  For the i-th one (from 0) the proxy
listens on DIR/i.sock and on a port of 127.0.0.1 whose number is in DIR/i.port;
it reads what to do from DIR/i.mode (replace that file, don't write to it: it
is looked at whenever bytes arrive, so what was told before a request is sent
holds for that request) and logs what it did in DIR/i.log.  DIR/ready exists
once all are listening.

    pass            forward everything (also where there is no such file)
    mute [N]        requests reach the server, replies never come back; the
                    connection stays open and is mute for good
    close [N]       requests reach the server, the reply is awaited and lost,
                    then the connection is closed
    reset [N]       the connection is reset when a request arrives, which
                    the server never sees
    hold            nothing moves until the mode is another one
    still           requests reach the server, replies wait until the mode is
                    another one
    delay MS        every piece arrives MS later, in both directions
    drip            replies go out one byte at a time
    until TEXT      everything passes until a request has TEXT in it; for
                    that request and from then on the next line holds

With N only the next N connections that send something are treated so; then
the next line of the file holds, and after the last one everything passes.

Connections that have subscribed go by DIR/i.ears where there is such a file,
which also takes:

    drop            published messages are lost
    cut             a published message is lost, and the connection is closed
    twice           a published message arrives twice
"""
import os
import socket
import struct
import sys
import time

sys.modules["ssl"] = None  # asyncio would load it: half of what a start costs
# pylint: disable=wrong-import-position
import asyncio  # noqa: E402

FATES = ("mute", "close", "reset")
MESSAGE = b"$7\r\nmessage\r\n"
LINGER_RESET = struct.pack("ii", 1, 0)
POLL = 0.005        # seconds between looks at the mode while holding
LAST_REPLIES = 0.03  # how long "close" goes on reading


class Mode:
    """What the mode file says, and how often it may still be applied."""

    def __init__(self, path):
        self.path, self.seen, self.lines, self.left = path, None, [], 0

    def exists(self):
        return os.path.exists(self.path)

    def read(self):
        """The words of the line that holds now."""
        try:
            stat = os.stat(self.path)
        except FileNotFoundError:
            return ["pass"]
        seen = stat.st_mtime_ns, stat.st_ino
        if seen != self.seen:
            with open(self.path, encoding="ascii") as file:
                self.lines = [line.split() for line in file]
            self.seen = seen
            self.count()
        return self.lines[0] if self.lines else ["pass"]

    def count(self):
        words = self.lines[0] if self.lines else []
        limited = len(words) > 1 and words[0] in FATES
        self.left = int(words[1]) if limited else sys.maxsize

    def take(self):
        self.left -= 1
        if self.left == 0:
            self.next()

    def next(self):
        del self.lines[0]
        self.count()


class Connection:
    """Sockets, not streams: what was sent before a close still arrives."""

    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.loop, self.fate = asyncio.get_running_loop(), "pass"
        self.listens = False

    async def run(self):
        tasks = [asyncio.ensure_future(self.requests()),
                 asyncio.ensure_future(self.replies())]
        try:
            await asyncio.gather(*tasks)
        except (OSError, EOFError):
            pass
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self.client.close()
        self.server.close()

    async def requests(self):
        while data := await self.loop.sock_recv(self.client, 65536):
            self.listens = self.listens or b"\nSUBSCRIBE\r" in data
            mode = self.proxy.mode_of(self.listens)
            words = mode.read()
            if words[0] == "until" and words[1].encode() in data:
                mode.next()
            words = await self.proxy.let_through(self.listens, "hold")
            if self.fate == "pass" and words[0] in FATES:
                self.fate = words[0]
                self.proxy.mode_of(self.listens).take()
                self.proxy.log(self.fate, data)
            if self.fate == "reset":
                self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       LINGER_RESET)
                raise EOFError
            await self.loop.sock_sendall(self.server, data)
        self.server.shutdown(socket.SHUT_WR)

    async def replies(self):
        while data := await self.loop.sock_recv(self.server, 65536):
            if self.fate == "close":
                return await self.lose(data)
            if self.fate == "mute":
                self.proxy.log("lost", data)
                continue
            words = await self.proxy.let_through(self.listens, "hold", "still")
            if self.listens and MESSAGE in data:
                if words[0] in ("drop", "cut", "twice"):
                    self.proxy.log(words[0], data)
                if words[0] == "drop":
                    continue
                if words[0] == "cut":
                    raise EOFError
                if words[0] == "twice":
                    data += data
            await self.hand_back(data, 1 if words[0] == "drip" else len(data))
        if self.fate != "mute":
            self.client.shutdown(socket.SHUT_WR)

    async def hand_back(self, data, size):
        try:
            for start in range(0, len(data), size):
                await self.loop.sock_sendall(self.client,
                                             data[start:start + size])
        except OSError:
            pass  # it is gone; its requests may still be on the way

    async def lose(self, data):
        try:
            while data:
                self.proxy.log("lost", data)
                data = await asyncio.wait_for(
                    self.loop.sock_recv(self.server, 65536), LAST_REPLIES)
        except asyncio.TimeoutError:
            pass
        raise EOFError


class Proxy:
    def __init__(self, directory, index, target):
        self.path = os.path.join(directory, str(index))
        self.target, self.running = target, set()
        self.mode = Mode(self.path + ".mode")
        self.ears = Mode(self.path + ".ears")
        self.file = open(self.path + ".log", "a", encoding="ascii")

    def log(self, what, data):
        self.file.write(f"{time.clock_gettime(time.CLOCK_BOOTTIME):.3f} "
                        f"{what} {ascii(data)}\n")
        self.file.flush()

    def mode_of(self, listens):
        return self.ears if listens and self.ears.exists() else self.mode

    async def let_through(self, listens, *waits):
        """Wait as long as the mode wants it; return the mode's words."""
        words = self.mode_of(listens).read()
        if words[0] in waits:
            self.log(words[0], b"")
        while words[0] in waits:
            await asyncio.sleep(POLL)
            words = self.mode_of(listens).read()
        if words[0] == "delay":
            await asyncio.sleep(int(words[1]) / 1000)
        return words

    async def accept(self, listener):
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(listener)
            server = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            server.setblocking(False)
            if client.family != socket.AF_UNIX:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                await loop.sock_connect(server, self.target)
            except OSError:
                client.close()
                server.close()
                continue
            connection = Connection(self, client, server)
            self.running.add(asyncio.ensure_future(connection.run()))

    def listen(self):
        listeners = socket.socket(socket.AF_UNIX), socket.socket()
        listeners[0].bind(self.path + ".sock")
        listeners[1].bind(("127.0.0.1", 0))
        for listener in listeners:
            listener.listen(100)
            listener.setblocking(False)
        with open(self.path + ".port", "w", encoding="ascii") as file:
            print(listeners[1].getsockname()[1], file=file)
        return [self.accept(listener) for listener in listeners]


async def main(directory, targets):
    work = []
    for i, target in enumerate(targets):
        work += Proxy(directory, i, target).listen()
    with open(os.path.join(directory, "ready"), "w", encoding="ascii"):
        pass
    await asyncio.gather(*work)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
