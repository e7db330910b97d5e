"""what a server takes to note how a run ended: both scripts of a run, with and without it"""
import re
import statistics
import subprocess

from lab import ENVIRONMENT, REDLOCK, Redis, Server

ENDED = 12  # the word of the release: after EVALSHA, its SHA1, 5, 5 keys, database, token, hold and min_hold
PAIRS = 100


def scripts_of_a_run(server):
    """The two requests of a run that is in nobody's way."""
    monitor = Redis(server.path)
    monitor("MONITOR")
    for _ in range(2):  # the first one sends the script
        subprocess.run([REDLOCK, "run", "-S", server.url(), "--quarantine", "0", "lock", "true"],
                       env=ENVIRONMENT, stdin=subprocess.DEVNULL, check=True)
    Redis(server.path)("PING")
    found, line = [], ""
    while '"PING"' not in line:
        line = monitor.reply()
        words = [word.encode().decode("unicode_escape")[1:-1]
                 for word in re.findall(r'"(?:[^"\\]|\\.)*"', line)]
        if words and words[0] == "EVALSHA":
            found.append(words)
    return found[-2:]


def took(redis, acquire, release):
    """Microseconds of the server's time for a run."""
    redis("CONFIG", "RESETSTAT")
    for _ in range(PAIRS):
        for request in (acquire, release):
            if redis(*request)[0] != 1:
                raise RuntimeError("a script was refused")
    fields = redis.info("commandstats")["cmdstat_evalsha"]
    return int(re.search(r"usec=(\d+)", fields)[1]) / PAIRS


def run(report, times):
    server = Server()
    acquire, release = scripts_of_a_run(server)
    without = release[:ENDED] + [""] + release[ENDED + 1:]
    redis = Redis(server.path)
    runs = {"a run": [], "without its history": []}
    for _ in range(times(200)):
        for name, request in zip(runs, (release, without)):
            runs[name].append(took(redis, acquire, request))
    middle = {name: statistics.median(each) for name, each in runs.items()}
    report.table("the server's time", [
        {"": name, "us": middle[name], "least": min(each)} for name, each in runs.items()])
    report.goal("a run, x without its history", middle["a run"] / middle["without its history"], 1.05)
