"""what waiting and holding ask of a server and of the machine"""
import os
import time

from lab import median
from waiters import OPTIONS, QUEUE, Field, difference, sent_commands

HOLDER = "redlock, holding"
HOLDERS = 50


def cpu_ms(pid):
    """Spent so far by all threads, to the nanosecond."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat",
                  encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e6


def peak_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


def hold_many(field, count):
    """Each a key of its own, with the default ttl, and renewed together: a
    window of one period has one renewal of each."""
    for i in range(count):
        field.crowd.redlock(i, "run", f"own{i}", "sleep", "600")
    while field.redis("DBSIZE") < 2 * count:  # the lock and its record
        time.sleep(0.05)


def run(report, times):
    count, seconds = times(100), 10 * times(100) / 100
    fields = {name: Field() for name in (*OPTIONS, HOLDER)}
    for name, field in fields.items():
        if name == HOLDER:
            hold_many(field, min(HOLDERS, count))
            continue
        field.hold()
        field.waiters(name, count)
    time.sleep(0.5)
    before = {name: (time.monotonic(), sent_commands(field.redis),
                     {pid: cpu_ms(pid) for pid in field.crowd.running})
              for name, field in fields.items()}
    time.sleep(seconds)
    rows = {}
    for name, field in fields.items():
        began, sent, spent = before[name]
        took = time.monotonic() - began
        commands = sum(difference(sent_commands(field.redis), sent).values())
        cpu = [(cpu_ms(pid) - ms) / took for pid, ms in spent.items()]
        rss = [peak_kb(pid) for pid in field.crowd.running]
        rows[name] = {"": name, "processes": len(cpu), "seconds": took,
                      "commands/s each": commands / took / len(cpu),
                      "CPU ms/s": median(cpu), "most": max(cpu),
                      "peak RSS MiB": max(rss) / 1024}
        field.crowd.kill()
        field.server.kill()
    report.table("each", list(rows.values()))
    own = rows[QUEUE]
    report.goal("a waiter: commands/s", own["commands/s each"], 0.25)
    report.goal("a waiter: CPU ms/s", own["CPU ms/s"], 1)
    report.goal("a waiter: peak RSS, MiB", own["peak RSS MiB"], 2.5)
    report.goal("a holder: commands/s", rows[HOLDER]["commands/s each"], 0.1)
