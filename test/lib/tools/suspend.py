#!/usr/bin/python3
"""^Z at every moment of a start: each COMMAND is a job in the foreground of a terminal, and its
group gets SIGTSTP a little later each time, within the first MS milliseconds. It has to stop, and
after a SIGCONT it has to end by SIGINT.

    suspend.py TIMES MS COMMAND [ARGUMENT ...]

Prints how often all of that was so, and what was not.
"""

import os
import pty
import signal
import sys
import time

PATIENCE = 10


def job(command):
    """In a group of its own that has the terminal, as a shell makes it."""
    ready, done = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        for number in (signal.SIGINT, signal.SIGTSTP, signal.SIGTTOU):
            signal.signal(number, signal.SIG_DFL)
        os.write(done, b"x")
        os.execvp(command[0], command)
    os.read(ready, 1)
    os.close(ready)
    os.close(done)
    return pid


def next_status(pid):
    """As wait(2) has it; None if there is none in time."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        changed, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if changed:
            return status
        time.sleep(0.001)
    os.killpg(pid, signal.SIGKILL)
    return None


def suspend(command, wait):
    pid = job(command)
    time.sleep(wait)
    os.killpg(pid, signal.SIGTSTP)
    status = next_status(pid)
    if status is None or not os.WIFSTOPPED(status):
        return f"not stopped: {status}"
    os.killpg(pid, signal.SIGCONT)
    os.killpg(pid, signal.SIGINT)
    status = next_status(pid)
    return "well" if status == signal.SIGINT else f"not ended by SIGINT: {status}"


def shell(times, milliseconds, command):
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    well = 0
    for i in range(times):
        wait = milliseconds / 1000 * i / times
        how = suspend(command, wait)
        well += how == "well"
        if how != "well":
            print(f"{how} after {wait * 1000:.1f} ms")
    print(f"well: {well}")


def main(times, milliseconds, *command):
    pid, fd = pty.fork()
    if pid == 0:
        shell(int(times), float(milliseconds), command)
        sys.stdout.flush()
        os._exit(0)
    try:
        while data := os.read(fd, 4096):
            sys.stdout.write(data.decode().replace("\r\n", "\n"))
    except OSError:  # the end
        pass
    os.waitpid(pid, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
