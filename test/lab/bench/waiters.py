"""Many processes that wait for one lock: redlock's queue, redlock that asks
again every 128 ms, and the least that waiting can cost (floor.c)."""
import os
import signal
import struct
import time

from lab import (Crowd, HOME, REDLOCK, Redis, Server, marks, median, share,
                 tool, wait_until)

QUEUE, POLLER, FLOOR = "redlock", "128 ms poller", "BLPOP floor"
# nobody outlives this program for long
OPTIONS = {QUEUE: ["-w", "5m"], POLLER: ["-w", "5m", "--poll=128ms"]}
# what clients send, as against what scripts do
SENT = ("eval", "evalsha", "subscribe", "unsubscribe", "blpop", "lpush", "ping", "hello",
        "auth", "select", "client|setname", "client|setinfo", "config|get")
LIMIT = 60  # seconds that anything may take


def sent_commands(redis):
    found = {}
    for name, text in redis.info("commandstats").items():
        name = name[len("cmdstat_"):]
        if name in SENT:
            found[name] = int(text.split(",")[0].split("=")[1])
    return found


def difference(after, before):
    return {name: after[name] - before.get(name, 0) for name in after
            if after[name] != before.get(name, 0)}


def server_cpu(redis):
    """In ms."""
    found = redis.info("cpu")
    return 1e3 * (float(found["used_cpu_sys"]) + float(found["used_cpu_user"]))


def await_all(crowd, what):
    """Their ends, without looking after them all the time as Crowd.finish
    does: that would take the processor from them."""
    def too_late(*_):
        raise TimeoutError(f"not within {LIMIT} s: {what}")

    before = signal.signal(signal.SIGALRM, too_late)
    signal.alarm(LIMIT)
    try:
        for pid in list(crowd.running):
            status = os.waitstatus_to_exitcode(os.wait4(pid, 0)[1])
            del crowd.running[pid]
            if status != 0:
                raise RuntimeError(f"{what} ended with {status}: "
                                   f"{crowd.complaints()[:1]}")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Field:
    """A server, a lock on it that is held, and waiters. What is given is a
    server, and its url and address as they see it from inside a namespace;
    else it is one of its own with a tap."""

    keys = 0

    def __init__(self, server=None, url=None, address=None, inside=()):
        self.tap = f"{HOME}/tap.{Server.count}"
        self.server = server or Server(
            "--appendonly", "no", "--maxclients", "4000",
            environment={"LD_PRELOAD": tool("tap.so"), "TAP": self.tap})
        self.url = url or self.server.url()
        self.address = address or self.server.path
        self.inside = inside
        self.redis = Redis(self.server.path)
        self.crowd = Crowd([self.server.url()])
        self.key = self.token = self.marks = None

    def hold(self):
        Field.keys += 1
        self.key = f"key{Field.keys}"
        self.marks = f"{HOME}/marks.{Field.keys}"
        self.token = self.crowd.call("acquire", "-t", "60s", self.key)

    def release(self):
        self.crowd.call("release", self.key, self.token)

    def waiters(self, way, count, pause=0):
        """Started, and all of them waiting; each holds for pause (us)."""
        before = int(self.redis.info("clients")["connected_clients"])
        mark = [tool("mark"), "-d", str(pause), self.marks]
        for i in range(count):
            if way == FLOOR:
                token = f"{Field.keys:08x}-{i:023x}"
                self.crowd.spawn(i, *self.inside, tool("floor"), "wait",
                                 self.address, self.key + ".list", token,
                                 *mark)
            else:
                self.crowd.spawn(i, *self.inside, REDLOCK, "run", "-S",
                                 self.url, *OPTIONS[way], self.key, *mark)
        wait_until(lambda: self.are_waiting(way, count, before), LIMIT,
                   f"{count} waiting: {way}")
        if way == POLLER:
            time.sleep(0.15)  # each has asked at least once

    def are_waiting(self, way, count, before):
        time.sleep(0.01)  # asking takes the processor from them
        if way == QUEUE:
            return self.redis("ZCARD",
                              f"{{{self.key}}}:redlock:queue") == count
        if way == FLOOR:
            return self.redis.info("clients")["blocked_clients"] == str(count)
        clients = int(self.redis.info("clients")["connected_clients"])
        return clients >= before + count

    def drain(self, way):
        """From the release on; when it was (microseconds)."""
        begin = time.time() * 1e6
        if way == FLOOR:
            self.redis("LPUSH", self.key + ".list", self.token)
        else:
            self.release()
        await_all(self.crowd, way)
        return begin

    def arrivals(self):
        """What came to the server: (microseconds, its last bytes)."""
        found = []
        if not os.path.exists(self.tap):
            return found
        with open(self.tap, "rb") as file:
            while entry := file.read(256):
                at, tail = struct.unpack("q248s", entry)
                if at == 0:
                    break
                found.append((at / 1000, tail))
        return found

    def marks_found(self):
        """Of everybody, in their order."""
        found = marks(self.marks)
        if any(mark.slot < 0 for mark in found):
            raise RuntimeError("two commands at once")
        if len({mark.token for mark in found}) != len(found):
            raise RuntimeError("two commands under one token")
        return found


def hand_overs(field):
    """One row for each (ms): from the end of a command, and with a tap from
    the arrival of its release at the server, to the start of the next one. A
    release is what first comes with the token after the command's end."""
    found, rows = field.marks_found(), []
    arrivals = field.arrivals()
    for before, after in zip(found, found[1:]):
        release = min((at for at, tail in arrivals if at > before.end
                       and before.token.encode() in tail),
                      default=float("nan"))
        rows.append(((after.start - before.end) / 1000,
                     (after.start - release) / 1000))
    return rows


def by_turns(ways, turns, take):
    """What take(way) returns, a list for each way."""
    found = {way: [] for way in ways}
    for _ in range(turns):
        for way in ways:
            found[way].append(take(way))
    return found


def hand_over_rows(found, which):
    """For a table; which is 0 (from the end) or 1 (from the release)."""
    turns = {way: [[row[which] for row in turn] for turn in each]
             for way, each in found.items()}
    every = {way: [one for turn in each for one in turn]
             for way, each in turns.items()}
    rows, floor = [], every[FLOOR]
    for way, times in every.items():
        medians = [median(turn) for turn in turns[way]]
        rows.append({
            "": way, "count": len(times), "p50 ms": median(times),
            "x floor": median(times) / median(floor),
            "p99 ms": share(times, 0.99),
            "p99 x floor": share(times, 0.99) / share(floor, 0.99),
            "turns' p50 from": min(medians), "to": max(medians)})
    return rows
