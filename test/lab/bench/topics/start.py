"""what nobody else has: one process that takes a lock, runs a command and releases"""
import socket

from lab import HOME, REDLOCK, Server, tool
from races import race, rows

FLOOR = "floor"
COMMAND = "/bin/true"
KEY = "lock"
RELEASE = ("if redis.call('get',KEYS[1])==ARGV[1] then "
           "return redis.call('del',KEYS[1]) else return 0 end")
BASH = f"""
token=$RANDOM$RANDOM$RANDOM
[[ $(redis-cli -s "$1" SET "$2" "$token" NX PX 30000) == OK ]] || exit 75
"${{@:3}}"
redis-cli -s "$1" EVAL "{RELEASE}" 1 "$2" "$token"
"""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def contestants(address, url):
    floor = [tool("floor"), "lock", address, KEY, "token", COMMAND]
    return {FLOOR: floor, "floor again": floor,
            "redlock run": [REDLOCK, "run", "-S", url, KEY, COMMAND]}


def judge(report, where, runs):
    report.table(f"{where}: KEY -- {COMMAND}", rows(runs, FLOOR))
    one, floor = runs["redlock run"], runs[FLOOR]
    report.goal(f"{where}: wall, x floor", one.wall / floor.wall, 1.25)
    report.goal(f"{where}: CPU, x floor", one.cpu / floor.cpu, 1.3)


def run(report, times):
    port = free_port()
    server = Server("--port", str(port), "--bind", "127.0.0.1")
    judge(report, "Unix socket",
          race({**contestants(server.path, server.url()),
                "flock(1)": ["flock", HOME + "/flock", COMMAND],
                "bash, redis-cli": ["@4", "bash", "-c", BASH, "-", server.path, KEY, COMMAND]},
               times(400)))
    tcp = f"127.0.0.1:{port}"
    judge(report, "TCP", race(contestants(tcp, "redis://" + tcp), times(400)))

    redlock = [REDLOCK, "acquire", "-S", server.url(), KEY, "::+",
               REDLOCK, "release", "-S", server.url(), KEY, "{out}"]
    call = ["redis-cli", "-s", server.path]
    runs = race({"acquire, release": redlock,
                 "redis-cli SET, EVAL": [*call, "SET", KEY, "token", "NX", "PX", "30000", "::+",
                                         *call, "EVAL", RELEASE, "1", KEY, "token"]}, times(200))
    report.table("two processes", rows(runs))
    one, other = runs.values()
    report.goal("two processes: wall, x redis-cli", one.wall / other.wall, 0.5)
    report.goal("two processes: CPU, x redis-cli", one.cpu / other.cpu, 0.5)
