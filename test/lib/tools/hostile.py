"""Servers that are honest until they are not: what hostile_matrix.py runs against.

A Server listens on a Unix socket or a port of 127.0.0.1 and answers as Redis
with our scripts would, until a request of the stage comes for which it has a
treatment: the bytes to answer instead (Made for it, or Behind it), or a
function of the connection, after which that ends.

Stages: connect, login, name, info, config, user (default), acquire, queue (an acquire that
waits), raise, extend, release, inspect, scan, look, break, rights, facts (INFO
of everything), time, subscribe, listening (once a subscription has been
confirmed), slot and nodes (of a cluster), master (of a Sentinel), wait (for
replicas).
"""

import os
import socket
import struct
import threading
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


# --- treatments: each is called with a connected socket -----------------------
#
# One that is silent in the end has to be waited for.

def swallow(connection):
    """Reads whatever comes, until the peer is gone."""
    while connection.recv(65536):
        pass


def says(data, then="stay"):
    def treat(connection):
        connection.sendall(data)
        if then == "half":
            connection.shutdown(socket.SHUT_WR)
        elif then == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                  struct.pack("ii", 1, 0))
        if then in ("stay", "half"):
            swallow(connection)
    treat.silent = then in ("stay", "half")
    return treat


def drips(data, pause):
    def treat(connection):
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(pause)
        swallow(connection)
    treat.silent = True
    return treat


def floods(start, chunk):
    def treat(connection):
        connection.sendall(start)
        while True:
            connection.sendall(chunk)
    treat.silent = False
    return treat


class Behind(bytes):
    """As a treatment: these bytes behind an honest answer."""


class Made:
    """As a treatment: the bytes that make(server, words) gives."""

    def __init__(self, make):
        self.make = make


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


def stage_of(words):
    if words == [b"INFO"]:
        return "facts"
    if words[0] not in (b"EVAL", b"EVALSHA"):
        return NAMES[words[0]]
    for text, stage in SCRIPTS:
        if words[0] == b"EVALSHA" or text in words[1]:
            # EVAL script 5 keys; database token ttl clock description kept
            # kind permits hold request wait waited ancestor
            if words[0] == b"EVALSHA" or stage == "acquire":
                stage = "acquire" if len(words) > 13 else "release"
            return "queue" if stage == "acquire" and words[18] == b"1" \
                else stage
    return "raise"


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
        if path:  # whoever sees the socket can connect
            os.rename(path + ".new", path)
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,),
                             daemon=True).start()

    def serve(self, connection):
        try:
            connection.settimeout(20)
            self.talk(connection)
        except OSError:
            pass
        connection.close()

    def talk(self, connection):
        if "connect" in self.treatments:
            self.treatments["connect"](connection)
            return
        lines = connection.makefile("rb")
        while True:
            line = lines.readline()
            if not line:
                return
            words = []
            for _ in range(int(line[1:])):
                length = int(lines.readline()[1:])
                words.append(lines.read(length + 2)[:-2])
            stage = stage_of(words)
            self.asked[stage] = self.asked.get(stage, 0) + 1
            treatment = self.treatments.get(stage)
            if treatment is not None and self.passes > 0:
                treatment = self.first
                self.passes -= 1
            if callable(treatment):
                treatment(connection)
                return
            if isinstance(treatment, Made):
                treatment = treatment.make(self, words)
            if isinstance(treatment, Behind):
                treatment = self.honest(stage, words) + treatment
            if stage == "subscribe":
                # whoever is told that it listens may ask, and be told, at once
                self.ears.append((connection, words[1]))
            connection.sendall(treatment or self.honest(stage, words))
            if stage == "subscribe" and "listening" in self.treatments:
                self.treatments["listening"](connection)
                return
            if stage == "queue":
                self.publish()

    def publish(self):
        for connection, channel in self.ears[-1:]:
            for text in self.hears:
                connection.sendall(array("message", channel, text))

    def honest(self, stage, words):
        if stage == "queue" and b":doctor:" in words[3]:
            return array(0, 9000, 100, self.holder, 0, 0, MARK[:16])
        if stage in ("acquire", "queue"):
            return self.grant(words)
        look = [] if stage != "look" or int(words[2]) == 0 else [
            b"1 0 0 0\nstring -1 1 " + self.item()]
        answers = {
            "info": lambda: bulk(
                "# Server\r\nrun_id:%040d\r\nuptime_in_seconds:99999\r\n"
                % self.number),
            "facts": lambda: bulk(FACTS),
            "time": lambda: array(*("%.6f" % time.time()).split(".")),
            "rights": lambda: array(1, [], []),
            "config": lambda: array("appendonly", "no"),
            "user": lambda: array(*USER),
            "slot": lambda: b":0\r\n",
            "nodes": lambda: bulk(self.node(0)),
            "master": lambda: array("127.0.0.1", str(self.port)),
            "subscribe": lambda: array("subscribe", words[1], 1),
            "shard": lambda: array(1, 0),
            "wait": lambda: b":%s\r\n" % words[1],
            "unsubscribe": lambda: array("unsubscribe", "x", 0),
            "raise": lambda: array(1),
            "extend": lambda: array(1, self.fence, self.holder, 0),
            "release": lambda: array(1, 0),
            "inspect": lambda: array(1, "string", -1, self.fence, 1, 1,
                                     [self.item()], [self.waiter()]),
            "scan": lambda: array(1, "0", 9, 3, ["{key}:redlock"]),
            "look": lambda: array(1, look),
            "break": lambda: array(1, "string", -1, 0, 1, 0, [self.item()],
                                   []),
        }
        return answers.get(stage, lambda: OK)()

    def node(self, slot, end="\n"):
        return "%040x 127.0.0.1:%d@1 master - 0 0 1 connected %d%s" % (
            slot, self.port, slot, end)

    def item(self):
        return b"%s 2500 100 1 0\n" % MARK.encode() + self.holder

    def waiter(self):
        return b"%s 100 string 0\n" % (b"b" * 40) + self.holder

    def grant(self, words):
        if self.busy:
            return array(0, 9000, 100, self.holder, 0, 0, MARK[:16])
        if self.granted_at is None:
            self.granted_at = time.clock_gettime(time.CLOCK_BOOTTIME)
        # it has known KEY for long, as else the time between two answers could look like a loss
        return array(1, 0 if words[14] == b"none" else self.fence, 86400000,
                     "", 0, "", 0, "")
