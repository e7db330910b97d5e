"""Contestants side by side, by race.c."""
import random
import subprocess

from lab import ENVIRONMENT, median, share, tool


class Runs:
    """The turns of one contestant; times are in ms."""

    def __init__(self, turns):
        self.walls = [turn[0] / 1e6 for turn in turns]
        self.cpus = [turn[1] / 1e6 for turn in turns]
        self.rss = max(turn[2] for turn in turns)
        self.starts = [turn[3] / 1e6 for turn in turns]
        self.wall, self.cpu = median(self.walls), median(self.cpus)
        self.start = median(self.starts)


def race(contestants, rounds, *, jobs=1, start=False, inside=()):
    """By the names of contestants, each a list of words for race.c; inside is
    what leads into a namespace."""
    words = [*inside, tool("race"), "-n", str(rounds), "-j", str(jobs),
             "-w", str(min(rounds // 10, 5)),
             "-s", str(random.randrange(1 << 31))] + ["-o"] * start
    for command in contestants.values():
        words += [":::", *command]
    done = subprocess.run(words, env=ENVIRONMENT, text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        said = "; ".join(done.stderr.splitlines()[-3:])
        raise RuntimeError(f"{', '.join(contestants)}: {said}")
    turns = [[] for _ in contestants]
    for line in done.stdout.splitlines():
        contestant, *figures = map(int, line.split())
        turns[contestant].append(figures)
    return {name: Runs(one) for name, one in zip(contestants, turns)}


def rows(runs, floor=None):
    """For a table; ratios are those of medians."""
    found = []
    for name, one in runs.items():
        row = {"": name, "turns": len(one.walls), "wall ms": one.wall,
               "p10": share(one.walls, 0.1), "p90": share(one.walls, 0.9)}
        if floor:
            row["x floor"] = one.wall / runs[floor].wall
        row["CPU ms"] = one.cpu
        if floor:
            row["CPU x floor"] = one.cpu / runs[floor].cpu
        found.append(row)
    return found


def noise(address, rounds):
    """Of the machine: what has no reason to differ."""
    command = [tool("floor"), "lock", address, "noise", "token", "/bin/true"]
    runs = race({"one": command, "other": command}, rounds)
    walls = runs["one"].walls + runs["other"].walls
    return {"turns": rounds, "ratio": runs["one"].wall / runs["other"].wall,
            "p50 ms": median(walls), "p10 ms": share(walls, 0.1),
            "p90 ms": share(walls, 0.9)}
