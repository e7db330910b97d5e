"""What bench and stress share: redis-servers of their own, delays in front of
them, many processes, and what the witness (mark.c) has written."""
import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
REDLOCK = os.environ.get("REDLOCK") or ROOT + "/build/redlock"
TOOLS = os.path.dirname(REDLOCK) + "/test"
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith("REDLOCK")}
ENVIRONMENT["XDG_CONFIG_HOME"] = "/nonexistent"  # no settings but ours

HOME = tempfile.mkdtemp(prefix="rl.", dir="/tmp")  # a socket's path is short
ENVIRONMENT["XDG_RUNTIME_DIR"] = HOME
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # runs what atexit has


def tool(name):
    return os.path.join(TOOLS, name)


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.002)


def service(arguments, environment=None):
    """A process that dies with this one."""
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        env={**ENVIRONMENT, **(environment or {})})
    atexit.register(process.kill)
    return process


class Redis:
    """One connection; replies are str, int, None or lists of these."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        data = [b"*%d\r\n" % len(words)]
        for word in words:
            word = str(word).encode()
            data.append(b"$%d\r\n%s\r\n" % (len(word), word))
        self.socket.sendall(b"".join(data))

    def reply(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("the server is gone")
        kind, rest = line[:1], line[1:-2]
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            if size < 0:
                return None
            return self.file.read(size + 2)[:-2].decode("utf-8", "replace")
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        return rest.decode()

    def __call__(self, *words):
        self.send(*words)
        return self.reply()

    def info(self, section):
        """Its fields."""
        lines = self("INFO", section).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)


class Server:
    count = 0

    def __init__(self, *options, environment=None):
        self.home = f"{HOME}/{Server.count}"
        Server.count += 1
        os.mkdir(self.home)
        self.path = self.home + "/s"
        self.options, self.environment = options, environment
        self.process = None
        self.start()

    def start(self):
        """With the data that it has."""
        self.process = service(
            ["redis-server", "--port", "0", "--unixsocket", self.path,
             "--dir", self.home, "--save", "", *self.options],
            self.environment)
        wait_until(self.answers, 20, "a redis-server")

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError("redis-server does not start")
        try:
            return Redis(self.path)("PING") == "PONG"
        except RuntimeError as error:
            return "NOAUTH" in str(error)
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def url(self):
        return "unix://" + self.path

    def delayed(self, least, most, seed=1):
        """The URL of a proxy in front of it (microseconds, one way)."""
        path = f"{self.home}/d{least}-{most}"
        service([tool("delay"), "-s", str(seed), str(least), str(most), path,
                 self.path])
        wait_until(lambda: os.path.exists(path), 20, "a proxy")
        return "unix://" + path


class Crowd:
    """Processes, reaped by whoever asks; their complaints are kept."""

    def __init__(self, urls):
        self.environment = {**ENVIRONMENT, "REDLOCK_SERVERS": ",".join(urls)}
        self.running = {}  # by pid: what the caller knows it by
        self.errors = tempfile.mktemp(prefix="err.", dir=HOME)
        atexit.register(self.kill)

    def spawn(self, name, *arguments):
        actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 2, self.errors,
                    os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)]
        pid = os.posix_spawn(arguments[0], arguments, self.environment,
                             file_actions=actions, setpgroup=0)
        self.running[pid] = name
        return pid

    def redlock(self, name, *arguments):
        return self.spawn(name, REDLOCK, *arguments)

    def call(self, *arguments):
        """redlock to its end; its output."""
        return subprocess.run([REDLOCK, *arguments], env=self.environment,
                              stdin=subprocess.DEVNULL, timeout=60,
                              stdout=subprocess.PIPE, check=True,
                              text=True).stdout.strip()

    def reap(self):
        """Those that have ended since: (pid, name, status, rusage)."""
        ended = []
        for pid in list(self.running):
            got, status, usage = os.wait4(pid, os.WNOHANG)
            if got:
                ended.append((pid, self.running.pop(pid),
                              os.waitstatus_to_exitcode(status), usage))
        return ended

    def finish(self, seconds, what):
        ended = []

        def is_over():
            ended.extend(self.reap())
            return not self.running

        wait_until(is_over, seconds, what)
        return ended

    def kill(self):
        for pid in self.running:
            os.kill(pid, signal.SIGKILL)
        self.running = {}

    def complaints(self):
        if not os.path.exists(self.errors):
            return []
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()


class Onlooker:
    """Looks at a lock with `status` and `list` while others are at it: whatever
    happens to it, what they print is well-formed and shows no more holders
    than there may be."""

    def __init__(self, crowd, key, most, program=REDLOCK):
        self.environment, self.key, self.most = crowd.environment, key, most
        self.program = program
        self.over = threading.Event()
        self.looks, self.wrong = 0, []
        self.thread = threading.Thread(target=self.look_on, daemon=True)
        self.thread.start()

    def end(self):
        self.over.set()
        self.thread.join()

    def look_on(self):
        while not self.over.wait(0.05):
            for line in self.ask("status", self.key):
                self.judge(line, json.loads(line)["holders"])
            for line in self.ask("list"):
                holders = json.loads(line)["holders"]
                self.judge(line, [{"partial": False}] * holders)

    def ask(self, *arguments):
        self.looks += 1
        done = subprocess.run(
            [self.program, arguments[0], "--format", "json", *arguments[1:]],
            env=self.environment, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if done.returncode not in (0, 69):
            self.wrong.append(f"{arguments} ended with {done.returncode}")
        return done.stdout.splitlines()

    def judge(self, line, holders):
        limit = 10**9 if json.loads(line)["kind"] == "shared" else self.most
        if sum(not holder["partial"] for holder in holders) > limit:
            self.wrong.append(line)


class Mark:
    """A start of mark; end is None where it was killed."""

    def __init__(self, words):
        self.start, self.end = int(words[1]), None
        self.id, self.fence, self.token = words[2], int(words[3]), words[4]
        self.slot = int(words[5])


def marks(path):
    """In the order of their starts."""
    found, open_marks = [], {}
    if not os.path.exists(path):
        return found
    with open(path, encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] == "S":
                mark = Mark(words)
                open_marks[words[2], words[4]] = mark
                found.append(mark)
            else:
                open_marks[words[2], words[4]].end = int(words[1])
    return sorted(found, key=lambda mark: mark.start)


def share(values, part):
    """The value that this part (0 to 1) of them does not exceed."""
    ordered = sorted(values)
    if not ordered:
        return float("nan")
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


def median(values):
    return share(values, 0.5)
