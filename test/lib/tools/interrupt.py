#!/usr/bin/python3
"""^C at every moment of a start: each COMMAND is run in a terminal of its own, and ^C typed a
little later each time, from the first moment until some time after it says "up".

    interrupt.py TIMES COMMAND [ARGUMENT ...]

Prints how they ended, and how often: "signal 2: 1000" is what should be. "runs on" is one that
has not ended 5 s later, with "after MS" for the first of each that is not of signal 2.
"""

import collections
import os
import pty
import select
import signal
import sys
import time

PATIENCE = 5


def start(command):
    ready, done = os.pipe()
    pid, fd = pty.fork()
    if pid == 0:
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
            signal.signal(number, signal.SIG_DFL)
        os.write(done, b"x")
        os.execvp(command[0], command)
    # before that there is no terminal to get a ^C from
    os.read(ready, 1)
    os.close(ready)
    os.close(done)
    return pid, fd


def until_up(fd):
    """Seconds."""
    began = time.monotonic()
    shown = b""
    while b"up" not in shown:
        shown += os.read(fd, 4096)
    return time.monotonic() - began


def how_it_ends(pid, fd):
    """All that it says is read, as a terminal that is full would stop it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return f"signal {-code}" if code < 0 else f"exit {code}"
        if select.select([fd], [], [], 0.005)[0]:
            try:
                os.read(fd, 4096)
            except OSError:
                time.sleep(0.005)
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    return "runs on"


def interrupt(command, wait):
    pid, fd = start(command)
    time.sleep(wait)
    os.write(fd, b"\x03")
    ending = how_it_ends(pid, fd)
    os.close(fd)
    return ending


def main(times, *command):
    longest = []
    for _ in range(5):
        pid, fd = start(command)
        longest.append(until_up(fd))
        os.write(fd, b"\x03")
        how_it_ends(pid, fd)
        os.close(fd)
    span = 1.3 * sorted(longest)[2]
    endings = collections.Counter()
    for i in range(int(times)):
        wait = span * i / int(times)
        ending = interrupt(command, wait)
        endings[ending] += 1
        if ending != "signal 2" and endings[ending] == 1:
            print(f"{ending} after {wait * 1000:.1f} ms", file=sys.stderr)
    print(", ".join(f"{ending}: {count}" for ending, count in sorted(endings.items())))


if __name__ == "__main__":
    main(*sys.argv[1:])
