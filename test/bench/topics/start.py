"""what nobody else has: one process that takes a lock, runs a command and releases"""
from lab import REDLOCK, Server, tool
from races import race, rows
from rivals import COMMAND, KEY, free_port, redis_cli, rivals

FLOOR = "floor"


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
                **rivals(server, report)}, times(400)))
    tcp = f"127.0.0.1:{port}"
    judge(report, "TCP", race(contestants(tcp, "redis://" + tcp), times(400)))

    redlock = [REDLOCK, "acquire", "-S", server.url(), KEY, "::+",
               REDLOCK, "release", "-S", server.url(), KEY, "{out}"]
    runs = race({"acquire, release": redlock,
                 "redis-cli SET, EVAL": redis_cli(server)}, times(200))
    report.table("two processes", rows(runs))
    one, other = runs.values()
    report.goal("two processes: wall, x redis-cli", one.wall / other.wall, 0.5)
    report.goal("two processes: CPU, x redis-cli", one.cpu / other.cpu, 0.5)
