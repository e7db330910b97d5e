"""Every command against servers that turn hostile at every stage.

    hostile_matrix.py DIRECTORY GROUP [PATTERN]

runs the cases of a group (those, with PATTERN, whose names contain it; without,
under sanitizers and valgrind, each fourth) side by side, and prints a line for
each that has failed, with all that was wrong.
REDLOCK and STAMP name the programs. What must always be so: the exit status,
one line on stderr that says where and is fit for a terminal, nothing on stdout
but what the case allows, an end in time, and little memory.
"""

import json
import os
import re
import resource
import signal
import struct
import sys
import time

from hostile import (LOOP, MARK, OK, TOKEN, USER, Behind, Made, Server, array,
                     bulk, described, drips, floods, says)

REDLOCK = os.environ["REDLOCK"]
STAMP = os.environ["STAMP"]  # test/lib/tools/stamp.c
VALGRIND = REDLOCK.endswith("/valgrind/redlock")
SANITIZED = VALGRIND or re.search("/(address|thread|undefined)", REDLOCK)
AT_ONCE = 4 if VALGRIND else 20
SHORT, LONG = 300, 4000  # ms, of a round: where an answer does not come, does
LONGEST = 20         # s, whatever a case is
MEMORY = 96 << 20    # bytes of address space
RESIDENT = 10 << 10  # kB; the largest reply is 4 MiB
KEY = b"\x1b[31mk\n\x9b\xc2\x9b\xff"
SHOWN_KEY = "\\e[31mk\\n\\x9b\\xc2\\x9b\\xff"

# --- what is said -------------------------------------------------------------

# no Redis server says that
RUBBISH = {
    "nothing": says(b""),
    "hangs up": says(b"", "close"),
    "resets": says(b"", "reset"),
    "half-closes": says(b"", "half"),
    "half a reply and silence": says(b"*2\r\n:1\r\n:17"),
    "half a reply and the end": says(b"*2\r\n:1\r\n:17", "close"),
    "half a reply and a reset": says(b"$100\r\nabc", "reset"),
    "a byte each 100 ms": drips(b"$200\r\n" + b"x" * 200, 0.1),
    "HTTP": says(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "NUL and 0xff": says(b"\0\xff\0\xff" * 100),
    "terminal escapes": says(b"\x1b]0;owned\x07\x1b[31m\x9b\r\n"),
    "a line without end": floods(b"+", b"A" * 4096),
    "an error without end": floods(b"-", b"\x1b" * 4096),
    "a number without end": floods(b":", b"1" * 4096),
    "a bulk of 2 GiB": floods(b"$2147483647\r\n", b"A" * 65536),
    "a bulk of 8 EiB": floods(b"$9223372036854775807\r\n", b"A" * 65536),
    "a negative bulk": says(b"$-5\r\n"),
    "a bulk of 12abc": says(b"$12abc\r\n"),
    "a bulk of nothing": says(b"$\r\n\r\n"),
    "a bulk that is longer": says(b"$4\r\nPONGxx" + OK),
    "an array of 2147483647": says(b"*2147483647\r\n"),
    "an array of 4294967296": says(b"*4294967296\r\n"),
    "an array of 1000000000": says(b"*1000000000\r\n"),
    "an array of 10000": says(b"*10000\r\n" + b":1\r\n" * 10000),
    "a negative array": says(b"*-2\r\n"),
    "10000 nested arrays": says(b"*1\r\n" * 10000),
    "a tree of arrays": says(b"*64\r\n" * 3 + (b"*64\r\n" + b"+\r\n" * 64)
                             * 300),
    "a tree of arrays that is a MB": says(b"*8000\r\n" + (
        b"*8000\r\n" + b"+\r\n" * 8000) * 150),
    "nested arrays without end": floods(b"", b"*1\r\n" * 1000),
    "a number with text behind": says(b":1a\r\n"),
    "a number of 30 digits": says(b":" + b"9" * 30 + b"\r\n"),
    "no number": says(b":\r\n"),
    "replies without end": floods(b"", OK * 1000),
    "a reply too many": Behind(b"+EXTRA\r\n"),
    "rubbish behind the reply": Behind(b"\0\xff"),
    "lines without CR": says(b"+OK\n" * 20),
    "a RESP3 push": says(b">2\r\n+message\r\n+x\r\n"),
    "a RESP3 map": says(b"%1\r\n+a\r\n:1\r\n"),
    "a RESP3 set": says(b"~1\r\n:1\r\n"),
    "a RESP3 boolean": says(b"#t\r\n"),
    "a RESP3 double": says(b",1.5\r\n"),
    "a RESP3 null": says(b"_\r\n"),
    "a RESP3 big number": says(b"(123\r\n"),
    "a RESP3 blob error": says(b"!5\r\nabcde\r\n"),
    "a RESP3 verbatim string": says(b"=7\r\ntxt:abc\r\n"),
    "a RESP3 attribute": says(b"|1\r\n+a\r\n+b\r\n"),
}

# well-formed, but never an answer of ours
NONSENSE = {
    "a nil": b"$-1\r\n",
    "a nil array": b"*-1\r\n",
    "an empty array": b"*0\r\n",
    "a status": OK,
    "the number 7": b":7\r\n",
    "the number -9": b":-9\r\n",
    "the largest number": b":9223372036854775807\r\n",
    "a text": bulk(b"1"),
    "an empty text": bulk(b""),
    "an array of nils": b"*2\r\n$-1\r\n$-1\r\n",
    "an unknown answer": array(7, 5),
    "texts for numbers": array("1", "5", "x", "0"),
    "an array for a number": array([1], [5]),
    "an error in an array": b"*2\r\n-ERR x\r\n:5\r\n",
    "64 numbers": array(*[7] * 64),
}

GRANTS = {
    "no fence": array(1),
    "fence 0": array(1, 0),
    "a negative fence": array(1, -5),
    "a fence beyond 2^53": array(1, 9007199254740993),
    "the largest fence": array(1, 9223372036854775807),
    "a text for a fence": array(1, "5"),
    "a refusal that is too short": array(0),
    "a refusal of six": array(0, 9, 9, "", -1, 0),
    "a refusal without texts": array(0, 9, 9, 9, -1, 0, 9),
    "a refusal with texts for numbers":
        array(0, "x", "y", "", "z", "0", ""),
    "a refusal of negative times": array(0, -9, -9, "", -9, 0, ""),
}
ENDS = 0, 2**31, 2**53 + 1, 2**63 - 1, -2**63
# right in form: those that begin with a text have a description
REFUSALS = {
    "%s, left %d, held %d, place %d" % (text, left, held, place):
        array(0, left, held, text, place, 0, MARK[:16])
    for left in ENDS for held in ENDS[2:] for place in ENDS
    for text in ("", "host=x\n")}
KEPT = {
    "kept, and no more": array(1),
    "kept, without a description": array(1, 5),
    "kept, with a number for it": array(1, 5, 5, 0),
    "kept, with a fence beyond 2^53": array(1, 2**53 + 1, "x", 0),
    "kept, with a text for a fence": array(1, "5", 5, 0),
}
TOLD = {  # the holds of a token; one must be picked
    "holds, and no more": array(-2),
    "holds without their names": array(-2, 0),
    "holds with a number for names": array(-2, 0, 5),
    "holds with a text for a number": array(-2, "0", "+a 1"),
    "a hold without an age": array(-2, 0, "+a"),
    "a hold of a negative age": array(-2, 0, "+a -1"),
    "a hold for any": array(-2, 0, "* 1"),
    "a hold of 60 bytes": array(-2, 0, "+" + 59 * "a" + " 1"),
    "60 kB of holds": array(-2, 0, 20000 * "+ "),
}
ITEM = MARK + " 2500 100 1 0\n"
VIEWS = {
    "no items": array(1, "string", -1, 5, 1, 0),
    "a text for the permits": array(1, "string", "-1", 5, 1, 0, [], []),
    "a number for the type": array(1, 9, -1, 5, 1, 0, [], []),
    "negative totals": array(1, "string", -1, 5, -1, 0, [], []),
    "permits -9": array(1, "zset", -9, 5, 1, 0, [], []),
    "permits without end": array(1, "zset", 2**62, 5, 1, 0, [], []),
    "numbers for items": array(1, "string", -1, 5, 1, 0, [5], []),
    "an empty item": array(1, "string", -1, 5, 1, 0, [""], []),
    "a mark that is short": array(1, "string", -1, 5, 1, 0, [ITEM[1:]], []),
    "a mark of other bytes":
        array(1, "string", -1, 5, 1, 0, ["\x1b" + ITEM[1:]], []),
    "an item without numbers":
        array(1, "string", -1, 5, 1, 0, [MARK + " x y z\n"], []),
    "an item of huge numbers":
        array(1, "string", -1, 5, 1, 0, [MARK + " 9" * 20 + "\n"], []),
    "an item held 0 times":
        array(1, "string", -1, 5, 1, 0, [MARK + " 2500 100 0 0\n"], []),
}
WAITERS = {
    "a waiter of a long kind": array(
        1, "string", -1, 5, 1, 1, [], [MARK + " 5 stringstring 0\n"]),
    "a waiter that is none": array(1, "string", -1, 5, 1, 1, [], ["x"]),
    "a waiter of -5 permits":
        array(1, "string", -1, 5, 1, 1, [], [MARK + " 5 zset -5\n"]),
}
SCANS = {
    "a number for the cursor": array(1, 0, 9, 3, []),
    "an empty cursor": array(1, "", 9, 3, []),
    "a cursor of 30 digits": array(1, "9" * 30, 9, 3, []),
    "-5 keys looked at": array(1, "0", -5, 3, []),
    "-5 keys": array(1, "0", 9, -5, []),
    "text for the keys": array(1, "0", 9, "3", []),
    "no names": array(1, "0", 9, 3),
    "one cursor for ever": array(1, "5", 10000, 3, []),
    "three cursors in turns": Made(lambda server, words: array(
        1, str(1 + int(words[-2]) % 3), 10000, 3, [])),
    "another cursor each time": Made(lambda server, words: array(
        1, str(1 + int(words[-2])), 10000, 3, [])),
}
LOOKS = {
    "no array": array(1, 5),
    "too few": array(1, []),
    "too many": array(1, ["", ""]),
    "numbers": array(1, [5]),
    "a type without permits": array(1, ["1 0 0 0 -\nstring"]),
    "no holders": array(1, ["1 0 0 0 -\nstring -1 0 " + ITEM]),
    "-2 permits": array(1, ["1 0 0 0 -\nzset -2 1 " + ITEM]),
    "permits without end": array(1, ["1 0 0 0 -\nzset %d 1 " % 10**17 + ITEM]),
    "holders without end": array(1, ["1 0 0 0 -\nzset 5 " + "9" * 30 + " " + ITEM]),
    "a holder that is none": array(1, ["1 0 0 0 -\nstring -1 1 x"]),
    "no digest": array(1, ["1 0 0 0\nstring -1 1 " + ITEM]),
    "a digest without end": array(1, ["1 0 0 0 " + "9" * 60]),
}

# what Redis itself says, and the exit status that it is worth
ERRORS = {
    65: ["WRONGTYPE Operation against a key holding the wrong kind of value"],
    77: ["NOAUTH Authentication required.",
         "WRONGPASS invalid username-password pair or user is disabled.",
         "NOPERM this user has no permissions to run the 'eval' command",
         "ERR The user executing the script can't run this command or "
         "subcommand script: f_1, on @user_script:1.",
         "ERR The user executing the script can't access at least one of the "
         "keys mentioned in the command arguments script: f_1",
         "ERR Error running script (call to f_1): @user_script:1: -NOPERM x",
         "ERR Error running script (call to f_1): @user_script:1: "
         "@user_script: 1: The user executing the script can't run this "
         "command or subcommand",
         "ERR ACL failure in script: User app has no permissions to run the "
         "'time' command script: 3f0a, on @user_script:3.",
         "ERR ACL failure in script: User @user_script:1:-OOM has no "
         "permissions to run the 'time' command script: 3f0a",
         "ERR ACL failure in script: No permissions to access a key",
         "NOPERM User -LOADING has no permissions to run the 'eval' command",
         "NOPERM No permissions to access a channel"],
    78: ["ERR DB index is out of range"],
    69: ["LOADING Redis is loading the dataset in memory",
         "READONLY You can't write against a read only replica. script: f_1",
         "ERR Error running script (call to f_1): @user_script:1: -READONLY x",
         "OOM command not allowed when used memory > 'maxmemory'.",
         "BUSY Redis is busy running a script. You can only call SCRIPT KILL",
         "MOVED 15495 127.0.0.1:23065", "ASK 15495 127.0.0.1:23065",
         "CLUSTERDOWN Hash slot not served",
         "MASTERDOWN Link with MASTER is down",
         "TRYAGAIN Multiple keys request during rehashing of slot",
         "MISCONF Redis is configured to save RDB snapshots",
         "NOREPLICAS Not enough good replicas to write.",
         "NOSCRIPT No matching script.", "EXECABORT Transaction discarded",
         "UNKILLABLE Sorry the script already executed write commands",
         "NOPROTO unsupported protocol version",
         "DENIED Redis is running in protected mode",
         "ERR unknown command 'EVAL'", "ERR max number of clients reached",
         "ERR Unknown command called from script script: 3f0a",
         "ERR Invalid command passed to redis.acl_check_cmd() script: 3f0a",
         "ERR Script attempted to execute a command while the cluster is down",
         "ERR Can not execute the command on a stale replica",
         "", "\x1b[31m\x9b\x07 \\ \x7f", "ERR " + "x" * 60000],
}


def errors():
    for status, texts in ERRORS.items():
        for text in texts:
            yield status, "-" + text[:70], \
                b"-%s\r\n" % text.encode("latin-1")


# --- a case -------------------------------------------------------------------

class Case:
    """servers: a Server's arguments for each. statuses: those that are right.
    lines: of stderr, at most. finds: what stderr must match. prints: what all
    of stdout must match. check: called with the case, for more. timeout: ms."""

    def __init__(self, name, arguments, servers, statuses, lines=1, finds=(),
                 prints="", environment=(), check=None, timeout=None):
        self.name, self.arguments, self.servers = name, arguments, servers
        self.statuses = statuses if isinstance(statuses, tuple) \
            else (statuses,)
        self.lines, self.finds, self.prints = lines, finds, prints
        self.environment, self.check = dict(environment), check
        silent = any(getattr(treat, "silent", False) for plan in servers
                     for treat in plan["treatments"].values())
        self.timeout = timeout or (SHORT if silent else LONG)

    def begin(self, directory):
        """Returns the process that has been started."""
        os.mkdir(directory)
        self.directory = directory
        self.running = []
        for number, plan in enumerate(self.servers):
            plan = dict(plan)
            path = None if plan.pop("tcp", False) or "url" in plan \
                else "%s/%d.sock" % (directory, number)
            self.running.append(Server(path, number=number, **plan))
        arguments = [self.arguments[0], "--server-timeout", "%dms" % self.timeout]
        for server in self.running:
            arguments += ["-S", server.url]
        arguments += [argument.replace("@", directory)
                      if isinstance(argument, str) else argument
                      for argument in self.arguments[1:]]
        return self.execute(arguments)

    def execute(self, arguments):
        self.files = [os.memfd_create(name) for name in ("out", "err")]
        self.began = time.monotonic()
        child = os.posix_spawn(
            REDLOCK, [REDLOCK] + arguments,
            {**os.environ, "LC_ALL": "C", **self.environment},
            file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
            + [(os.POSIX_SPAWN_DUP2, file, 1 + n)
               for n, file in enumerate(self.files)],
            setsid=True, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
        if not SANITIZED:
            try:
                resource.prlimit(child, resource.RLIMIT_AS, (MEMORY, MEMORY))
            except ProcessLookupError:
                pass
        return child

    def end(self, status, usage):
        """Returns what was wrong."""
        self.took = time.monotonic() - self.began
        self.status = os.waitstatus_to_exitcode(status)
        self.resident = usage.ru_maxrss
        self.out, self.err = [os.pread(file, os.fstat(file).st_size, 0)
                              for file in self.files]
        for file in self.files:
            os.close(file)
        wrong = list(self.judge())
        for server in self.running:
            server.close()
        return wrong

    def judge(self):
        text = self.err.decode("latin-1")
        lines = text.splitlines()
        if self.status not in self.statuses:
            yield "status %d instead of %s" % (
                self.status, " or ".join(map(str, self.statuses)))
        if self.took > LONGEST:
            yield "it did not end"
        # it began as a copy of us
        ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if self.resident > ours + RESIDENT and not SANITIZED:
            yield "%d kB of memory" % self.resident
        least = 0 if self.status == 0 or self.lines == 0 else 1
        if not least <= len(lines) <= self.lines:
            yield "%d lines on stderr" % len(lines)
        if re.search("[^\n -~]", text):
            yield "stderr is not clean"
        if max(map(len, lines), default=0) > 1500:
            yield "a line of %d bytes" % max(map(len, lines))
        for pattern in self.finds:
            if not re.search(pattern, text):
                yield "stderr is not like '%s'" % pattern
        if not re.fullmatch(self.prints, self.out.decode("latin-1"), re.S):
            yield "stdout: %r" % self.out[:300]
        if self.status != 0 and os.path.exists(self.directory + "/ran"):
            yield "COMMAND was started"
        if self.check is not None:
            yield from self.check(self)


class Matrix:
    """Runs the cases, AT_ONCE at a time; found: what was wrong, by number."""

    def __init__(self, cases, directory):
        self.directory = directory
        self.waiting = [(number, case, "a")
                        for number, case in enumerate(cases)][::-1]
        self.running = {}  # by process
        self.found = {}
        self.stalled = 0.0  # the longest that this machine has kept us waiting, in s
        ended, end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(end)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        LOOP.watch(ended, lambda _: os.read(ended, 512) and self.reap())
        self.start()

    def start(self):
        while self.waiting and len(self.running) < AT_ONCE:
            number, case, attempt = self.waiting.pop()
            child = case.begin("%s/%d%s" % (self.directory, number, attempt))
            self.running[child] = number, case, attempt
            LOOP.after(LONGEST, lambda child=child, case=case: self.kill(
                child, case))
        LOOP.over = not self.running

    def kill(self, child, case):
        if child in self.running and self.running[child][1] is case:
            os.kill(child, signal.SIGKILL)

    def reap(self):
        while self.running:
            child, status, usage = os.wait4(-1, os.WNOHANG)
            if child == 0:
                break
            number, case, attempt = self.running.pop(child)
            wrong = case.end(status, usage)
            # on a loaded machine an honest answer may be late, and so may a kill, which is TTL / 50 before the end
            late = case.status == 69 and \
                b"no answer within" in case.err + case.out
            killed_late = self.stalled > TTL / 50 and "too long" in str(wrong)
            if wrong and (late or killed_late) and attempt < "d":
                self.waiting.append((number, case, chr(ord(attempt) + 1)))
            elif wrong:
                self.found[number] = "case '%s': %s; %s" % (
                    case.name, ", ".join(wrong),
                    case.err.decode("latin-1").encode("unicode_escape")
                    .decode()[:400])
        self.start()

    def watch_stalls(self, began=None):
        now = time.monotonic()
        self.stalled = max(self.stalled, now - (began or now) - 0.01)
        LOOP.after(0.01, lambda: self.watch_stalls(now))


def main(directory, group, pattern=""):
    cases = [case for case in GROUPS[group]() if pattern in case.name]
    if SANITIZED and not pattern:
        cases = cases[::4]  # each start costs ten times as much
    matrix = Matrix(cases, directory)
    if group == "held":
        matrix.watch_stalls()
    LOOP.run()
    for _, line in sorted(matrix.found.items()):
        print(line)
    print("%d cases, %d wrong" % (len(cases), len(matrix.found)))
    return 1 if matrix.found or not cases else 0


# --- the cases ----------------------------------------------------------------

TOLERATED = ("name", "config", "user")  # what comes of them is only told, or asked
UNASKED = ("connect", "listening")


def at(stage, specific=()):
    """Everything that can be said there: its name, its treatment, and the exit
    status where nothing else is left."""
    fine = 0 if stage in TOLERATED else 69
    for name, treat in RUBBISH.items():
        if stage not in UNASKED or callable(treat):
            yield name, treat, 69
    for name, data in {**NONSENSE, **dict(specific)}.items():
        yield name, says(data) if stage in UNASKED else data, \
            0 if stage == "login" else fine
    for status, name, data in errors():
        treat = says(data, "close") if stage in UNASKED else data
        if stage == "login" and not re.match("-(DENIED|ERR max)", name):
            status = 77
        yield name, treat, 0 if stage in TOLERATED else status


def alone(label, arguments, stage, specific=(), prints="", fine_prints="",
          **plan):
    """One server, hostile at one stage; at every other one on a port."""
    for count, (name, treat, status) in enumerate(at(stage, specific)):
        tcp = count % 2 == 1
        yield Case(
            "%s, %s: %s" % (label, stage, name), arguments,
            [{"treatments": {stage: treat}, "tcp": tcp, **plan}], status,
            finds=[] if status == 0 else
            ["redis://127.0.0.1:[0-9]+: " if tcp else "unix:///.*0.sock: "],
            prints=fine_prints if status == 0 else prints,
            environment={"REDLOCK_PASSWORD": "secret"} if stage == "login"
            else {})


RUN = ["run", "-n", "-t", "30s", "--quarantine", "1ms", KEY, "--", "touch",
       "@/ran"]


# A server that says it was just started, and keeps everything; what it may say of
# the user who reads that when it starts.
YOUNG = {
    "info": bulk("# Server\r\nredis_version:7.0.15\r\nrun_id:%040d\r\n"
                 "uptime_in_seconds:5\r\n" % 7),
    "config": array("appendonly", "yes", "appendfsync", "always")}
RUN_YOUNG = [word if word != "1ms" else "1h" for word in RUN]
USERS = {
    "a user without rights": array("flags", ["off"], "passwords", [],
                                   "commands", "-@all", "keys", "",
                                   "channels", "", "selectors", []),
    "numbers for rights": array("flags", 7, "commands", 1, "keys", 2),
    "names without values": array("commands", "+@all", "keys"),
    "lists for rights": array("commands", ["+@all"], "keys", ["~*"],
                              "channels", ["&*"]),
    "flags that are lists": array("flags", [["allkeys"], ["allchannels"]],
                                  "commands", "+@all"),
    "60 kB of rights": array("commands", "+@all" + " -x" * 20000),
}


def busy_once(stage):
    """Refused for a moment, and then said."""
    treats = {**YOUNG, "user": array(*USER)}
    return {**treats, stage: Made(
        lambda server, words: b"-BUSY x\r\n" if server.asked[stage] == 1
        else treats[stage].replace(b"07\r", b"%02d\r" % (7 + server.number)))}


def with_replicas(arguments):
    """More than any number of NONSENSE that could be true."""
    return arguments[:1] + ["--replicas", "9"] + arguments[1:]


def run():
    for stage in ("connect", "login", "name", "info", "config"):
        yield from alone("run", RUN, stage)
    yield from alone("run", RUN, "acquire", GRANTS)
    yield Case("run, young", RUN_YOUNG, [{"treatments": YOUNG}], 0)
    for stage in ("info", "config", "user"):
        yield Case("run, young, busy once: " + stage,
                   ["run", "-w", "5s"] + RUN_YOUNG[2:],
                   [{"treatments": busy_once(stage)}], 0, lines=2)
    yield from alone("run --replicas", with_replicas(RUN), "wait")
    yield Case("run --replicas, enough", with_replicas(RUN),
               [{"treatments": {"wait": b":9\r\n"}}], 0)
    for name, treat, _ in at("user", USERS):
        yield Case("run, user: " + name, RUN_YOUNG,
                   [{"treatments": {**YOUNG, "user": treat}}], 69,
                   finds=["unix:///.*0.sock: "])


def on_three(label, stage, plans, arguments, specific=()):
    """The first two of three servers are hostile at a stage."""
    for name, treat, status in at(stage, specific):
        yield Case(
            "%s, %s: %s" % (label, stage, name), arguments,
            [{"treatments": {stage: treat} if number < 2 else {}, **plan}
             for number, plan in enumerate(plans)],
            (69, status))  # where the third was not needed before


RIGHTS = {
    "rights that are no lists": array(1, 5, "x"),
    "rights that are numbers": array(1, [5, 6], [7]),
    "60 kB of rights": array(1, [], ["+" + "x" * 900] * 60),
}
ACQUIRE = ["acquire", "-n", "-t", "3s", KEY]
FENCES = [{"fence": 5}, {"fence": 6}, {"fence": 9}]


def acquire():
    yield from alone("acquire", ACQUIRE, "acquire", GRANTS)
    # it is asked which rights it meant, and the refusal stands whatever it says
    for name, treat, _ in at("rights", RIGHTS):
        yield Case("acquire, refused, rights: " + name, ACQUIRE,
                   [{"treatments": {"acquire": b"-NOPERM no\r\n",
                                    "rights": treat}}], 77,
                   finds=["unix:///.*0.sock: its user (may not|lacks)"])
    yield Case("acquire, what is missing is named", ACQUIRE,
               [{"treatments": {"acquire": b"-NOPERM no\r\n",
                                "rights": array(1, ["+del", "~\x1b[31m"], [])}}],
               77, finds=["its user lacks \\+del ~"])
    yield from on_three("acquire", "raise", FENCES, ACQUIRE)
    # the third grants it, and is hostile when it is given back
    for name, treat, _ in at("release"):
        yield Case("acquire, given up: " + name, ACQUIRE,
                   [{"treatments": {"acquire": b"-LOADING\r\n"}},
                    {"treatments": {"acquire": b"-LOADING\r\n"}},
                    {"treatments": {"release": treat}}], 69)


MESSAGES = {
    "fence 0": "1 0 3000 -", "a negative fence": "1 -5 3000 -",
    "a fence beyond 2^53": "1 9007199254740993 3000 -",
    "a request never made": "99 5 3000 -", "request -1": "-1 5 3000 -",
    "a lease of 0": "1 5 0 -", "a lease beyond the ttl": "1 5 3001 -",
    "another's hold": "1 5 3000 +abc", "no hold": "1 5 3000 ",
    "numbers of 30 digits": " ".join(["9" * 30] * 3) + " -",
    "no numbers": "a b c -", "nothing": "", "60 kB": "1 " * 30000,
    "NUL": "1 5\0 3000 -", "escapes": "\x1b[31m 5 3000 -",
    "signs and blanks": "+1  5 0x5 -",
}
WAITING = ["acquire", "-w", "600ms", "-t", "3s", KEY]


def asks_seldom(case):
    asked = sum(server.asked.get("queue", 0) for server in case.running)
    if asked > 10 + 100 * case.took:
        yield "asked %d times in %.1f s" % (asked, case.took)


def told_while_raised():
    """Two grant it, one of them has lost it when it is to be raised, and before
    it says so the third one grants it by a message, with a smaller fence."""
    third = []

    def refuse(server, _):
        third[:] = [server]
        return array(0, 9000, 100, described(), 0, 0, MARK[:16])

    def lose(_, __):
        for server in third:
            server.hears = ("1 3 3000 - 10000000",)
            server.publish()
            server.hears = ()
        return array(0)

    def grants(fence):
        return array(1, fence, 10000000, "")

    return [{"treatments": {"queue": grants(10)}, "busy": True},
            {"treatments": {"queue": grants(5), "raise": Made(lose, 0.1)},
             "busy": True},
            {"treatments": {"queue": Made(refuse)}, "busy": True}]


def waiting():
    yield Case("a message that is right",
               ["acquire", "-w", "10s", "-t", "3s", KEY],
               [{"treatments": {}, "busy": True, "hears": ["1 77 3000 -"]}], 0,
               prints="[0-9a-f]{32}\n")
    for name, text in MESSAGES.items():
        yield Case("waiting, a message: " + name, WAITING,
                   [{"treatments": {}, "busy": True, "hears": [text]}], 75)
    yield Case("a vote by a message while fences are raised",
               ["acquire", "-w", "1s", "-t", "3s", KEY], told_while_raised(),
               (69, 75), lines=9)
    for stage in ("subscribe", "listening", "queue"):
        for name, treat, status in at(stage,
                                      GRANTS if stage == "queue" else ()):
            yield Case("waiting, %s: %s" % (stage, name), WAITING,
                       [{"treatments": {stage: treat}, "busy": True}],
                       (69, 75, status), lines=9)
    for name, data in REFUSALS.items():
        # what is below the numbers that a refusal has makes no sense
        yield Case("waiting, refused: " + name,
                   ["acquire", "-w", "200ms", "-t", "3s", KEY],
                   [{"treatments": {"queue": data}, "busy": True}],
                   (69, 75), lines=9, check=asks_seldom)
        yield Case("refused: " + name, ["acquire", "-n", KEY],
                   [{"treatments": {"acquire": data}}],
                   69 if str(-2**63) in name else 75)
    yield Case("waiting, at the end of a lease, again and again", WAITING,
               [{"treatments": {"queue": array(0, 0, 0, "", -1, 0, "")},
                 "busy": True}], (69, 75), lines=9, check=asks_seldom)
    for name, treat, status in at("acquire", GRANTS):
        if name == "fence 0":
            continue  # who takes nothing gets none
        yield Case("wait, acquire: " + name, ["wait", "-w", "200ms", KEY],
                   [{"treatments": {"acquire": treat}}],
                   (69, status), lines=2)


def by_hand():
    for stage, specific in (("login", ()), ("name", ()), ("extend", KEPT)):
        yield from alone("extend", ["extend", "-t", "3s", KEY, TOKEN], stage,
                         specific)
    yield from alone("extend --replicas", with_replicas(
        ["extend", "-t", "3s", KEY, TOKEN]), "wait")
    yield from alone("release", ["release", KEY, TOKEN], "release", TOLD)
    # whichever is picked, it says that others have given it back
    yield Case("release, others always first", ["release", KEY, TOKEN],
               [{"treatments": {"release": Made(lambda server, words: array(
                   -2, 0, "+a 1 +b 2") if words[-3] in ("*", b"*") else array(
                       1, 0, "0"))}}] * 3, 69,
               finds=["other releases with this token came first, 1000 times"])
    # more holds than it looks at; it is always first
    yield Case("release, 1000 holds", ["release", KEY, TOKEN],
               [{"treatments": {"release": Made(lambda server, words: array(
                   -2, 0, " ".join("+%d 1" % n for n in range(1000)))
                                                if words[-3] in ("*", b"*") else array(
                   1, 0, words[-3].split()[1]))}}] * 3, 0)
    yield Case("extend, gone", ["extend", KEY, TOKEN],
               [{"treatments": {"extend": says(array(-1))}}], 1)
    # it is released, by a server that would not say who it is: once more it is gone
    yield Case("release, busy once: info", ["release", KEY, TOKEN],
               [{"treatments": {
                   "info": busy_once("info")["info"],
                   "release": Made(lambda server, words: array(
                       1 if server.asked["release"] == 1 else -1, 0))}}] * 3, 0)
    yield Case("release, another's", ["release", KEY, TOKEN],
               [{"treatments": {"release": says(array(0))}}], 1)


def status():
    shown = re.escape(SHOWN_KEY) + ": unknown.*"
    yield from alone("status", ["status", KEY], "inspect",
                     {**VIEWS, **WAITERS}, shown)
    yield from alone("status -q", ["status", "-q", KEY], "inspect", VIEWS)
    # what one has taken away is told, whatever it says next
    yield from alone("break", ["break", "--now", "-y", KEY], "break", VIEWS,
                     "(.* evicted .*)?")
    yield from alone("list", ["list"], "scan", SCANS)
    # a large table is looked through to its end
    for keys in (-1, 10**7, 10**12):
        yield Case("list of %d keys" % keys, ["list"], [{"treatments": {
            "scan": Made(lambda server, words, keys=keys: array(
                1, str((1 + int(words[-2])) % 4), 10000, keys, []))}}], 0)
    yield from alone("list", ["list"], "look")
    yield from alone("list", ["list"], "look", LOOKS, passes=1)
    crowd = Made(lambda server, words: array(1, [] if int(words[2]) == 0 else [
        b"1 0 0 0 *\nzset 0 61 " + server.item()]))
    for name, treat, status in at("inspect", VIEWS):
        yield Case("list, too many holders: " + name, ["list"], [{"treatments": {
            "look": crowd, "inspect": treat}}], status)
    page = array(1, "zset", 3, 5, 3, 0, [ITEM], [], -1, 0, 0, "", "9 1 1")
    yield from alone("status, the second page", ["status", KEY], "inspect",
                     prints=shown, passes=1, first=page)


# what comes of them is advice: of these always, of these where they are refused
ADVISING, OPTIONAL = ("subscribe", "listening"), ("facts", "time", "scan")
DOCTOR = ["doctor", "--quarantine", "1ms", KEY]


def is_said_where(case):
    name = "redis://127.0.0.1:[0-9]+" if case.servers[0].get("tcp") \
        else "unix:///.*0.sock"
    settings, *lines, _ = case.out.decode("latin-1").splitlines()
    if not settings.startswith("settings: "):
        yield "stdout: no settings: %r" % settings[:200]
    for line in lines:
        if not re.match("%s: (ok|error: |warning: )" % name, line):
            yield "stdout: a line like %r" % line[:200]
    if len(case.out) > 3000:
        yield "stdout: %d bytes" % len(case.out)


def doctor():
    for stage in ("connect", "login", "name", "info", "config", "user", "facts",
                  "time", "rights", "acquire", "extend", "inspect", "look",
                  "scan", "subscribe", "listening", "queue", "release"):
        specific = RIGHTS if stage == "rights" else \
            USERS if stage == "user" else \
            GRANTS if stage == "acquire" else ()
        for count, (name, treat, status) in enumerate(at(stage, specific)):
            wellformed = isinstance(treat, bytes) \
                and not isinstance(treat, Behind)
            advice = stage in ADVISING or wellformed and (
                stage in OPTIONAL[:2] or stage == "scan" and (
                    status == 77 or re.search("nknown command|acl_check_cmd", name))
                or name.startswith(("rights that", "60 kB")))
            yield Case("doctor, %s: %s" % (stage, name), DOCTOR,
                       [{"treatments": {stage: treat}, "tcp": count % 2 == 1}],
                       0 if advice else status,
                       finds=[] if advice or status == 0 else
                       ["^redlock: 0 of 1 servers would grant a lock"],
                       prints="[ -~\n]+\n", check=is_said_where,
                       environment={"REDLOCK_PASSWORD": "secret"}
                       if stage == "login" else {})
            if count % 8 == 0 and stage != "login":
                yield Case("doctor, JSON, %s: %s" % (stage, name),
                           DOCTOR + ["--format", "json"],
                           [{"treatments": {stage: treat}}],
                           0 if advice else status, prints=".+",
                           check=is_clean_json)
    yield Case("doctor, what is missing is named", DOCTOR,
               [{"treatments": {"rights": array(1, ["+\x1b[31m", "~\n"], [])}}],
               77, prints=".*error: its user lacks \\+.*", check=is_said_where)
    for name, treat, _ in at("shard"):
        if isinstance(treat, bytes) and not isinstance(treat, Behind) \
                and not re.search("READONLY|MOVED|ASK|TRYAGAIN", name):
            yield Case("doctor, shard: " + name, DOCTOR,
                       [{"treatments": {"shard": treat}, "url": CLUSTER}], 0,
                       prints=".*: ok, .*")
    for stage in ("info", "config", "user", "facts", "time", "rights", "shard",
                  "acquire", "extend", "inspect", "look", "scan", "queue",
                  "release"):
        busy = Made(lambda server, words, stage=stage:
                    b"-BUSY x\r\n" if server.asked[stage] == 1 else None)
        yield Case("doctor, busy once: " + stage, DOCTOR,
                   [{"treatments": {stage: busy},
                     **({"url": CLUSTER} if stage == "shard" else {})}], 0,
                   prints=".*: ok, .*")
    yield Case("doctor, busy once: a shard that the node is not in", DOCTOR,
               [{"treatments": {"shard": Made(
                   lambda server, words: b"-BUSY x\r\n"
                   if server.asked["shard"] == 1 else array(1, 1))},
                 "url": CLUSTER}], 69,
               prints=".*error: .*: its cluster was upgraded, and it .*")
    yield Case("doctor, a shard that the node is not in", DOCTOR,
               [{"treatments": {"shard": array(1, 1)}, "url": CLUSTER}], 69,
               prints=".*error: .*: its cluster was upgraded, and it .*")
    yield Case("doctor, a lock that is granted twice", DOCTOR,
               [{"treatments": {"queue": array(1, 5)}}], 69,
               prints=".*error: it grants a lock that is held.*")


# --- while COMMAND runs -------------------------------------------------------

TTL = 3.0
HELD = ["run", "-n", "-t", "%dms" % (TTL * 1000), "key", "--", STAMP]


def died_in_time(case):
    """The last proof of COMMAND's life is before the end of validity."""
    end = min([server.granted_at for server in case.running
               if server.granted_at], default=0) + TTL * 0.99 - 0.002
    files = [name for name in os.listdir(case.directory)
             if name.startswith("beats.")]
    if len(files) != 1:
        yield "COMMAND was started %d times" % len(files)
    for name in files:
        with open(case.directory + "/" + name, "rb") as file:
            last = struct.unpack("qq", file.read(16))[1] / 1e6
        if last >= end:
            yield "COMMAND lived %d ms too long" % ((last - end) * 1000)


def held():
    few = ["nothing", "resets", "a byte each 100 ms", "HTTP",
           "a line without end", "a bulk of 2 GiB", "10000 nested arrays",
           "a RESP3 push", "half a reply and the end", "the number 7",
           "a text", "kept, with a fence beyond 2^53", "kept, and no more",
           "-LOADING Redis is loading the dataset in memory",
           "-NOAUTH Authentication required.", "-NOSCRIPT No matching script.",
           "-READONLY You can't write against a read only replica. script: f_1"]
    for name, treat, _ in at("extend", KEPT):
        if name not in few:
            continue
        yield Case("held, extend: " + name, HELD + ["-t", "@"],
                   [{"treatments": {"extend": treat}}], 76,
                   finds=["lock lost: "], check=died_in_time, timeout=900)
        yield Case("held, two of three extend: " + name, HELD + ["-t", "@"],
                   [{"treatments": {"extend": treat} if number < 2 else {}}
                    for number in range(3)], 76,
                   finds=["lock lost: "], check=died_in_time, timeout=900)
        yield Case("held, one of three extends: " + name,
                   HELD + ["-d", "3300", "-x", "3", "@"],
                   [{"treatments": {"extend": treat, "release": treat}
                     if number < 1 else {}} for number in range(3)], 3,
                   lines=0, timeout=900)
    for name, treat, _ in at("wait"):
        if name in few:
            yield Case("held, wait: " + name,
                       with_replicas(HELD) + ["-t", "@"],
                       [{"treatments": {"wait": treat}, "passes": 1}], 76,
                       finds=["lock lost: "], check=died_in_time, timeout=900)
    for name, treat, _ in at("release"):
        yield Case("held, release: " + name,
                   ["run", "-n", "key", "--", "sh", "-c", "exit 3"],
                   [{"treatments": {"release": treat}}], 3,
                   finds=["key: not released; the lease ends by itself in "],
                   timeout=2000)


# --- what is shown ------------------------------------------------------------

# hides text, or turns it around
TURNING = "\x85\xad\u061c\u200b\u200f\u2028\u202e\u2066\ufeff\U000e0041"
ESCAPES = "\x1b]0;owned\x07\x1b[31m\x9b\x7f\n\r\0\xff" \
    + TURNING.encode().decode("latin-1")


def is_clean_json(case):
    for line in case.out.decode().splitlines():
        json.loads(line)
    if re.search("[\0-\x09\x0b-\x1f\x7f-\x9f%s]" % TURNING, case.out.decode()):
        yield "stdout is not clean"


def shown():
    holder = described(*[ESCAPES.encode("latin-1").replace(b"\n", b"")] * 3)
    plan = {"treatments": {}, "holder": holder}
    text = "[\n -~]+"
    for arguments, code, prints in (
            (["acquire", "-n", KEY], 75, ""),
            (["run", "-n", KEY, "--", "touch", "@/ran"], 75, ""),
            (["status", KEY], 0, text), (["list"], 0, text),
            (["break", "--now", "-y", KEY], 0, text)):
        yield Case("escapes: " + arguments[0], arguments,
                   [{**plan, "busy": True}], code, prints=prints)
    for arguments in (["status", "--format", "json", KEY],
                      ["list", "--format", "json"],
                      ["acquire", "--format", "json", KEY]):
        yield Case("escapes in JSON: " + arguments[0], arguments, [dict(plan)],
                   0, prints=".*", check=is_clean_json)
    yield from repeated()
    for name, why in (("an error", says(b"-" + ESCAPES.replace(
            "\n", "").replace("\r", "").encode("latin-1") + b"\r\n")),
                      ("rubbish", says(ESCAPES.encode("latin-1")))):
        yield Case("escapes, JSON of " + name,
                   ["status", "--format", "json", KEY],
                   [{"treatments": {"inspect": why}}], 69, prints=".*",
                   check=is_clean_json)
        yield Case("escapes, verbose: " + name,
                   ["acquire", "-v", "-n", KEY],
                   [{"treatments": {"acquire": why}}], 69, lines=9)


def is_secret(case):
    for text in (case.out, case.err):
        if b"hunter2" in text:
            yield "a password is shown"


def repeated():
    """What a server was told comes back from it."""
    long = "x" * 150
    for name, said in (
            ("hunter2", b"-ERR hunter2\r\n"),
            ("hunter2", b"-WRONGPASS hunter2hunter2 hunter2 is wrong\r\n"),
            ("hunter2", b"-ERR unknown command 'AUTH', with args beginning "
                        b"with: 'hunter2' \r\n"),
            ("hunter2", b"-NOPERM " + b"y" * 150 + b"hunter2\r\n"),
            (long + "hunter2" + long,
             b"-ERR unknown command `AUTH`, with args beginning with: `"
             + long.encode() + b"hunter\r\n"),
            ("hunter2", b"hunter2\r\n")):
        for stage, arguments in (("login", ["acquire", "-v", "-n", KEY]),
                                 ("acquire", ["acquire", "-v", "-n", KEY]),
                                 ("inspect", ["status", "-v", KEY]),
                                 ("login", ["doctor", "-v", KEY]),
                                 ("queue", ["doctor", "--format", "json", KEY]),
                                 ("subscribe", ["acquire", "-v", "-w", "100ms",
                                                KEY])):
            yield Case("repeated at %s, %s: %r" % (arguments[0], stage, said[:60]),
                       arguments, [{"treatments": {stage: said},
                                    "busy": stage == "subscribe"}],
                       (64, 69, 75, 77), lines=99, prints=".*",
                       check=is_secret,
                       environment={"REDLOCK_PASSWORD": name})


# --- among others -------------------------------------------------------------

def is_told_once(case):
    text = case.err.decode("latin-1")
    for number in range(5):
        told = text.count("%d.sock: " % number)
        if told != (number < 3):
            yield "server %d is named %d times" % (number, told)


def quorum():
    kinds = list(RUBBISH.items())
    for count in range(0, len(kinds), 2):
        trio = [kinds[(count + step) % len(kinds)] for step in (0, 7, 13)]
        names = ", ".join(name for name, _ in trio)
        for stage in ("acquire", "info"):
            hostile = [{"treatments": {stage: treat}} for _, treat in trio]
            yield Case("3 of 5, %s: %s" % (stage, names),
                       ["run", "-w", "400ms", "-t", "3s", "key", "--", "touch",
                        "@/ran"],
                       hostile + [{"treatments": {}}, {"treatments": {}}], 69,
                       lines=2, finds=["3 of 5 servers gave no vote"],
                       timeout=800)
            yield Case("3 of 5 at once, %s: %s" % (stage, names),
                       ["acquire", "-n", "-t", "3s", "key"],
                       [dict(plan) for plan in hostile]
                       + [{"treatments": {}}, {"treatments": {}}], 69,
                       finds=["3 of 5 servers gave no vote"],
                       check=is_told_once, timeout=800)
            yield Case("2 of 5, %s: %s" % (stage, names),
                       ["run", "-n", "-t", "30s", "--quarantine", "1ms", "key",
                        "--", "sh", "-c", "exit 3"],
                       [dict(plan) for plan in hostile[1:]]
                       + [{"treatments": {}} for _ in range(3)], 3, lines=0,
                       timeout=LONG)


# --- those that are asked where to go -----------------------------------------

def lines(count, end, place="127.0.0.1:%d@1"):
    """CLUSTER NODES of so many lines; place: of each, with the server's port,
    else its own number."""
    return Made(lambda server, words: bulk("".join(
        server.node(n, end) if "%" in place
        else server.node(n, end).replace("127.0.0.1:%d@1" % server.port,
                                         place.format(n))
        for n in range(count))))


NODES = {
    "no lines": bulk("\n"),
    "lines of one word": bulk("x\n" * 1000),
    "lines that are too short": bulk("id 127.0.0.1:1@1 master - 0 0\n"),
    "no port": lines(1, "\n", "127.0.0.1"),
    "a port of 30 digits": lines(1, "\n", "127.0.0.1:" + "9" * 30),
    "a host of escapes": lines(1, "\n", "\x1b[31m:1@1"),
    "a host of 60 kB": lines(1, "\n", "h" * 60000 + ":1@1"),
    "nobody's port, ended by CR": lines(1000, "\r", "127.0.0.1:{}@1"),
    "another port in each line": lines(1000, "\n", "127.0.0.1:{}@1"),
    "another host in each line": lines(1000, "\n", "127.9.9.{}:1@1"),
    "more lines than slots": lines(17000, "\n"),
}
# well-formed, and of a cluster that is
GOOD_NODES = {"lines that end with CR": lines(500, "\r"),
              "lines that end with CRs": lines(500, "\r\r"),
              "a thousand lines": lines(1000, "\n")}

MOVED = {
    "no slot": b"-MOVED\r\n",
    "no place": b"-MOVED 5\r\n",
    "an empty place": b"-MOVED 5 \r\n",
    "no port": b"-MOVED 5 127.0.0.1\r\n",
    "a port of 30 digits": b"-MOVED 5 127.0.0.1:" + b"9" * 30 + b"\r\n",
    "a host of escapes": b"-MOVED 5 \x1b[31m:1\r\n",
    "a host of 60 kB": b"-MOVED 5 " + b"h" * 60000 + b":1\r\n",
    "another host each time": Made(lambda server, words: (
        b"-MOVED 5 127.9.9.9:%d\r\n" % (time.monotonic_ns() % 9999 + 1))),
    "itself, again and again": Made(lambda server, words: (
        b"-MOVED 5 127.0.0.1:%d\r\n" % server.port)),
}
MASTERS = {
    "one word": array("127.0.0.1"),
    "a number for the port": array("127.0.0.1", 1),
    "a port of 30 digits": array("127.0.0.1", "9" * 30),
    "a host of escapes": array("\x1b[31m", "1"),
    "a host with NUL": array("127.0.0.1\0x", "1"),
    "a host of 60 kB": array("h" * 60000, "1"),
    "three words": array("127.0.0.1", "1", "2"),
}
CLUSTER, SENTINEL = "redis+cluster://@", "redis+sentinel://@/main"


# an answer, and what stands behind it: EXISTS may say any number
FINE = {"a reply too many", "rubbish behind the reply", "the number 7",
        "the number -9", "the largest number", "itself, again and again",
        "-ASK 15495 127.0.0.1:23065"}


def search():
    for stage, url, specific, arguments in (
            ("slot", CLUSTER, MOVED, ["acquire", "-n", KEY]),
            ("slot", CLUSTER, MOVED, ["status", "-q", KEY]),
            ("slot", CLUSTER, MOVED, ["list"]),
            ("nodes", CLUSTER, NODES, ["list"]),
            ("master", SENTINEL, MASTERS, ["acquire", "-n", KEY]),
            ("master", SENTINEL, MASTERS, ["list"])):
        for name, treat, status in at(stage, specific):
            fine = name in FINE and (
                stage == "slot" or
                stage == "master" and isinstance(treat, Behind))
            yield Case("%s, %s: %s" % (arguments[0], stage, name), arguments,
                       [{"treatments": {stage: treat}, "url": url}],
                       0 if fine else (69, status),
                       finds=[] if fine else [re.escape(url.partition("@")[0])],
                       prints=".*" if fine else "")
    for name, treat in GOOD_NODES.items():
        yield Case("list, nodes: " + name, ["list"],
                   [{"treatments": {"nodes": treat}, "url": CLUSTER}], 0,
                   prints="key: .*\n")


GROUPS = {"run": run, "acquire": acquire, "waiting": waiting,
          "by_hand": by_hand, "status": status, "held": held, "shown": shown,
          "quorum": quorum, "doctor": doctor, "search": search}

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
