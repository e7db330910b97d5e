"""Servers that are honest until they are not: what hostile_matrix.py runs against.

A Server listens on a Unix socket or a port of 127.0.0.1 and answers as Redis
with our scripts would, until a request of the stage comes for which it has a
treatment: the bytes to answer instead (Made for it, or Behind it), or a
function of the connection, which decides what is said from then on. All of
them are served by one thread, that of LOOP.run(): threads that wait for each
other take longer than what they do.

Stages: connect, login, name, info, config, user (default), acquire, queue (an acquire that
waits), raise, extend, release, inspect, scan, look, break, rights, facts (INFO
of everything), time, subscribe, listening (once a subscription has been
confirmed), slot and nodes (of a cluster), master (of a Sentinel), wait (for
replicas).
"""

import heapq
import itertools
import os
import select
import socket
import struct
import time

OK = b"+OK\r\n"
TOKEN = "0123456789abcdef0123456789abcdef"
MARK = "a" * 40


def bulk(data):
    data = data if isinstance(data, bytes) else data.encode()
    return b"$%d\r\n%s\r\n" % (len(data), data)


def array(*items):
    """Numbers, texts, and lists of them."""
    return b"*%d\r\n" % len(items) + b"".join(
        b":%d\r\n" % item if isinstance(item, int)
        else array(*item) if isinstance(item, list)
        else bulk(item) for item in items)


def described(host="web3", user="deploy", command="backup.sh", pid=812):
    """What a holder wrote about itself."""
    texts = [text if isinstance(text, bytes) else text.encode()
             for text in (host, user, command)]
    return b"since=17\nhost=%s\npid=%d\nuser=%s\nttl=3000\ncommand=%s\n" % (
        texts[0], pid, texts[1], texts[2])


# --- what happens -------------------------------------------------------------

class Loop:
    """Calls what waits for a descriptor, or for a time."""

    def __init__(self):
        self.epoll = select.epoll()
        self.acts = {}  # by descriptor
        self.alarms = []
        self.order = itertools.count()
        self.over = False

    def watch(self, descriptor, act):
        self.acts[descriptor] = act
        self.epoll.register(descriptor, select.EPOLLIN)

    def forget(self, descriptor):
        del self.acts[descriptor]
        self.epoll.unregister(descriptor)

    def after(self, seconds, act):
        heapq.heappush(self.alarms, (time.monotonic() + seconds,
                                     next(self.order), act))

    def ring(self):
        """Returns for how long nothing has to be called, or None."""
        while self.alarms:
            left = self.alarms[0][0] - time.monotonic()
            if left > 0:
                return left
            heapq.heappop(self.alarms)[2]()
        return None

    def run(self):
        """Until it is over."""
        while not self.over:
            for descriptor, events in self.epoll.poll(self.ring()):
                act = self.acts.get(descriptor)
                if act is not None:
                    act(events)


LOOP = Loop()


class Connection:
    """answer: called with itself and each request, until it is treated."""

    def __init__(self, peer, answer):
        self.peer, self.answer = peer, answer
        self.came, self.rest = b"", memoryview(b"")  # to be read; to be sent
        self.flood = b""  # to be sent whenever nothing else is
        self.then = None  # what it is called with when all has been sent
        self.pauses = self.treated = self.writes = False
        peer.setblocking(False)
        LOOP.watch(peer.fileno(), self.on_event)

    def close(self):
        if self.peer.fileno() >= 0:
            LOOP.forget(self.peer.fileno())
            self.peer.close()

    def act(self, call, *arguments):
        """The peer may be gone, or go."""
        try:
            if self.peer.fileno() >= 0:
                call(*arguments)
        except OSError:
            self.close()

    def on_event(self, events):
        self.act(self.step, events)

    def step(self, events):
        if events == select.EPOLLOUT:
            self.send()
            return
        try:
            data = self.peer.recv(65536)
        except BlockingIOError:
            return  # what came was another's, which had this descriptor
        if not data:
            self.close()
        elif not self.treated:
            self.came += data
            self.talk()

    def treat(self, treatment):
        self.treated = True
        treatment(self)

    def talk(self):
        while self.came and not self.treated and not self.pauses:
            words, end = self.read_request()
            if words is None:
                return
            self.came = self.came[end:]
            self.answer(self, words)

    def read_request(self):
        """Its words, and where it ends; None while it is not whole."""
        words, came = [], self.came
        at = came.find(b"\n") + 1
        for _ in range(int(came[1:at] or 1)):
            begin = came.find(b"\n", at) + 1
            end = begin + int(came[at + 1:begin] or 0)
            if begin == 0 or end + 2 > len(came):
                return None, 0
            words.append(came[begin:end])
            at = end + 2
        return words, at

    def say(self, data, then=None):
        self.rest = memoryview(bytes(self.rest) + data if self.rest else data)
        self.then = then
        self.send()

    def say_later(self, seconds, data):
        """Until then nothing else is read."""
        def go_on():
            self.pauses = False
            self.say(data)
            self.talk()
        self.pauses = True
        LOOP.after(seconds, lambda: self.act(go_on))

    def send(self):
        try:
            self.rest = self.rest[self.peer.send(self.rest):]
        except BlockingIOError:
            pass
        then = None
        if not self.rest:
            self.rest = memoryview(self.flood)
            then, self.then = self.then, None
        if bool(self.rest) != self.writes:
            self.writes = not self.writes
            LOOP.epoll.modify(self.peer.fileno(), select.EPOLLIN | (
                select.EPOLLOUT if self.writes else 0))
        if then is not None:
            then(self)

    def half_close(self):
        self.peer.shutdown(socket.SHUT_WR)

    def reset(self):
        self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                             struct.pack("ii", 1, 0))
        self.close()


# --- treatments: each is called with a connection -----------------------------
#
# One that is silent in the end has to be waited for.

def says(data, then="stay"):
    ends = {"stay": None, "half": Connection.half_close,
            "reset": Connection.reset, "close": Connection.close}

    def treat(connection):
        connection.say(data, ends[then])
    treat.silent = then in ("stay", "half")
    return treat


def drips(data, pause):
    def treat(connection, at=0):
        connection.say(data[at:at + 1])
        if at + 1 < len(data):
            LOOP.after(pause, lambda: connection.act(treat, connection, at + 1))
    treat.silent = True
    return treat


FLOOD = 128 << 10  # bytes, at least, that are sent at once


def floods(start, chunk):
    chunk *= FLOOD // len(chunk) + 1

    def treat(connection):
        connection.flood = chunk
        connection.say(start)
    treat.silent = False
    return treat


class Behind(bytes):
    """As a treatment: these bytes behind an honest answer."""


class Made:
    """As a treatment: the bytes that make(server, words) gives, after pause s."""

    def __init__(self, make, pause=0):
        self.make, self.pause = make, pause


# --- the server ---------------------------------------------------------------

# what only one of the scripts has, in the order of asking
SCRIPTS = [(b"'myid'", "shard"),
           (b"hgetall zcount", "rights"), (b"PERMITS KEY is held", "acquire"), (b"'given'", "release"),
           (b"NOBREAK", "break"), (b"#KEYS", "look"),
           (b"'zcard'", "inspect"), (b"'scan'", "scan"), (b"'pexpire'", "extend")]
NAMES = {b"AUTH": "login", b"CLIENT": "name", b"INFO": "info",
         b"CONFIG": "config", b"ACL": "user", b"TIME": "time", b"SUBSCRIBE": "subscribe",
         b"SSUBSCRIBE": "subscribe", b"SUNSUBSCRIBE": "unsubscribe",
         b"UNSUBSCRIBE": "unsubscribe", b"EXISTS": "slot",
         b"CLUSTER": "nodes", b"SENTINEL": "master", b"WAIT": "wait"}


KNOWN = {}  # what has been asked for which stage, by script


def stage_of(words):
    if words == [b"INFO"]:
        return "facts"
    if words[0] == b"EVAL":
        stage = KNOWN.get(words[1])
        if stage is None:
            stage = KNOWN[words[1]] = next(
                (stage for text, stage in SCRIPTS if text in words[1]), "raise")
        if stage != "acquire":
            return stage
    elif words[0] != b"EVALSHA":
        return NAMES[words[0]]
    # EVAL script 5 keys; database token ttl clock description kept
    # kind permits hold request wait waited ancestor
    if len(words) <= 13:
        return "release"
    return "queue" if words[18] == b"1" else "acquire"


USER = ("flags", ["off"], "passwords", [], "commands", "+@all",
        "keys", "~*", "channels", "&*", "selectors", [])
FACTS = ("# Server\r\nredis_version:7.0.15\r\nuptime_in_seconds:99999\r\n"
         "maxmemory:0\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n"
         "role:master\r\ncluster_enabled:0\r\n")


class Server:
    """treatments: by stage. number: makes it another server; fence: what it
    grants; busy: KEY is held by somebody who describes himself as holder; passes: so
    many requests of a stage are answered by first, or honestly; hears: what
    is published to whoever has subscribed and asks; url: what names it, with
    @ for its address."""

    def __init__(self, path, treatments, number=0, fence=5, busy=False,
                 holder=described(), passes=0, first=None, hears=(),
                 url="redis://@"):
        self.treatments, self.number = treatments, number
        self.fence, self.busy, self.holder = fence, busy, holder
        self.passes, self.first, self.hears = passes, first, hears
        self.granted_at = None
        self.asked = {}  # how often, by stage
        self.ears = []
        if path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(path + ".new")
            self.url = "unix://" + path
        else:
            self.listener = socket.socket()
            self.listener.bind(("127.0.0.1", 0))
            self.port = self.listener.getsockname()[1]
            self.url = url.replace("@", "127.0.0.1:%d" % self.port)
        self.listener.listen(64)
        self.listener.setblocking(False)
        if path:  # whoever sees the socket can connect
            os.rename(path + ".new", path)
        LOOP.watch(self.listener.fileno(), self.accept)

    def close(self):
        LOOP.forget(self.listener.fileno())
        self.listener.close()

    def accept(self, _):
        try:
            connection = Connection(self.listener.accept()[0], self.answer)
        except OSError:
            return
        if "connect" in self.treatments:
            connection.act(connection.treat, self.treatments["connect"])

    def answer(self, connection, words):
        stage = stage_of(words)
        self.asked[stage] = self.asked.get(stage, 0) + 1
        treatment = self.treatments.get(stage)
        if treatment is not None and self.passes > 0:
            treatment = self.first
            self.passes -= 1
        if callable(treatment):
            connection.treat(treatment)
            return
        if isinstance(treatment, Made):
            data = treatment.make(self, words)
            if treatment.pause:
                connection.say_later(treatment.pause, data)
                return
            treatment = data
        if isinstance(treatment, Behind):
            treatment = self.honest(stage, words) + treatment
        if stage == "subscribe":
            # whoever is told that it listens may ask, and be told, at once
            self.ears.append((connection, words[1]))
        connection.say(treatment or self.honest(stage, words))
        if stage == "subscribe" and "listening" in self.treatments:
            connection.treat(self.treatments["listening"])
        elif stage == "queue":
            self.publish()

    def publish(self):
        for connection, channel in self.ears[-1:]:
            for text in self.hears:
                connection.act(connection.say, array("message", channel, text))

    def honest(self, stage, words):
        answer = HONEST.get(stage)
        return answer(self, words) if answer else OK

    def look(self, words):
        return array(1, [] if int(words[2]) == 0 else [
            b"1 0 0 0 -\nstring -1 1 " + self.item()])

    def node(self, slot, end="\n"):
        return "%040x 127.0.0.1:%d@1 master - 0 0 1 connected %d%s" % (
            slot, self.port, slot, end)

    def item(self):
        return b"%s 2500 100 1 0\n" % MARK.encode() + self.holder

    def waiter(self):
        return b"%s 100 string 0\n" % (b"b" * 40) + self.holder

    def grant(self, words):
        if self.busy or words[18] == b"1" and b":doctor:" in words[3]:
            return array(0, 9000, 100, self.holder, 0, 0, MARK[:16])
        if self.granted_at is None:
            self.granted_at = time.clock_gettime(time.CLOCK_BOOTTIME)
        # it has known KEY for long, as else the time between two answers could look like a loss
        return array(1, 0 if words[14] == b"none" else self.fence, 86400000,
                     "", 0, "", 0, "")


HONEST = {
    "acquire": Server.grant,
    "queue": Server.grant,
    "info": lambda server, words: bulk(
        "# Server\r\nrun_id:%040d\r\nuptime_in_seconds:99999\r\n"
        % server.number),
    "facts": lambda server, words: bulk(FACTS),
    "time": lambda server, words: array(*("%.6f" % time.time()).split(".")),
    "rights": lambda server, words: array(1, [], []),
    "config": lambda server, words: array("appendonly", "no"),
    "user": lambda server, words: array(*USER),
    "slot": lambda server, words: b":0\r\n",
    "nodes": lambda server, words: bulk(server.node(0)),
    "master": lambda server, words: array("127.0.0.1", str(server.port)),
    "subscribe": lambda server, words: array("subscribe", words[1], 1),
    "shard": lambda server, words: array(1, 0),
    "wait": lambda server, words: b":%s\r\n" % words[1],
    "unsubscribe": lambda server, words: array("unsubscribe", "x", 0),
    "raise": lambda server, words: array(1),
    "extend": lambda server, words: array(1, server.fence, server.holder, 0, 3000),
    "release": lambda server, words: array(1, 0),
    "inspect": lambda server, words: array(
        1, "string", -1, server.fence, 1, 1, [server.item()],
        [server.waiter()]),
    "scan": lambda server, words: array(1, "0", 9, 3, ["{key}:redlock"]),
    "look": Server.look,
    "break": lambda server, words: array(1, "string", -1, 0, 1, 0,
                                         [server.item()], []),
}
