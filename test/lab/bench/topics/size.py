"""the program, and what it asks of the system"""
import os
import re
import shutil
import subprocess

from lab import ENVIRONMENT, HOME, REDLOCK, Server, tool
from report import shown

TRUE = "/bin/true"


def binary(report):
    stripped = HOME + "/stripped"
    subprocess.run(["strip", "-o", stripped, REDLOCK], check=True)
    size = os.path.getsize(stripped) / 1024
    loaded = subprocess.run(["ldd", REDLOCK], stdout=subprocess.PIPE,
                            text=True, check=True).stdout
    libraries = [line.split()[0] for line in loaded.splitlines()
                 if "=>" in line]
    report.table("binary", [{"": "stripped, KiB", " ": shown(size)},
                            {"": "libraries", " ": ", ".join(libraries)}])
    report.goal("stripped, KiB", size, 150)


def calls_of(words):
    """The names of system calls in order, of each process or thread, and what
    it was made by."""
    trace = HOME + "/trace"
    subprocess.run(["strace", "-f", "-qq", "-o", trace, *words], check=True,
                   env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)
    found = {}
    with open(trace, encoding="utf-8", errors="replace") as file:
        for line in file:
            if match := re.match(r"(\d+) +([a-z0-9_]+)\(", line):
                found.setdefault(match[1], []).append(match[2])
    return list(found.values())


def in_order(calls):
    """a, b x 3, c"""
    found = []
    for call in calls:
        if found and found[-1][0] == call:
            found[-1][1] += 1
        else:
            found.append([call, 1])
    return [call if count == 1 else f"{call} x {count}"
            for call, count in found]


def wrapped(words, width=66):
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) + 2 > width:
            lines.append("")
        lines[-1] += ", " * bool(lines[-1]) + word
    return lines


def system_calls(report):
    server = Server()
    traced = {
        "redlock": calls_of([REDLOCK, "run", "-S", server.url(), "k", TRUE]),
        "floor": calls_of([tool("floor"), "lock", server.path, "k", "t",
                           TRUE])}
    counts = {name: {} for name in traced}
    for name, processes in traced.items():
        for calls in processes:
            for call in calls:
                counts[name][call] = counts[name].get(call, 0) + 1
    names = sorted(counts["redlock"] | counts["floor"],
                   key=lambda call: (-counts["redlock"].get(call, 0), call))
    report.table(f"system calls of one uncontended run of {TRUE}", [
        {"": "all", **{name: sum(each.values())
                       for name, each in counts.items()}},
        *({"": "  " + call, **{name: each.get(call, 0)
                               for name, each in counts.items()}}
          for call in names)])
    for name, processes in traced.items():
        report.table(f"{name}: in order, by process or thread", [
            {"": str(i + 1) if first else "", " ": line}
            for i, calls in enumerate(processes)
            for first, line in zip([True] + [False] * len(calls),
                                   wrapped(in_order(calls)))])


def run(report, _):
    if shutil.which("strip"):
        binary(report)
    else:
        report.note("missing: strip (binutils)")
    if shutil.which("strace"):
        system_calls(report)
    else:
        report.note("missing: strace")
