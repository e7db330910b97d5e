#!/usr/bin/python3
"""Sits at a terminal: runs a command as the leader of its session, types, reads.

    terminal.py [--seconds N] COMMAND [ARGUMENT ...] <STEPS

A step a line:

    type TEXT       types TEXT and Return
    key KEYS        types KEYS as they are: ^C and ^Z are those keys
    see PATTERN     waits until what has come after the last match matches
                    PATTERN, a regular expression; lines end as on a terminal,
                    "\\r\\n"
    run COMMAND     runs a shell command, which has to succeed, off the terminal;
                    again and again, for as long as `see` would wait
    hangup          the terminal is gone, as when a connection is lost
    # TEXT          nothing

In the end it waits for the command and exits with its status (128 + N where
signal N has ended it); with 99 where a step has failed, and then says which,
and shows all that was on the terminal.
"""

import errno
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time


class Failed(Exception):
    pass


class Terminal:
    def __init__(self, command, seconds):
        self.seconds = seconds
        self.shown = ""  # all of it
        self.seen = 0  # up to there `see` has matched
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP,
                           signal.SIGTTIN, signal.SIGTTOU, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(command[0], command)

    def read(self, wait):
        """What has come, within `wait` seconds. False at the end."""
        if self.fd is None:
            time.sleep(wait)
            return False
        if not select.select([self.fd], [], [], wait)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError as error:  # all who had it have closed it
            if error.errno != errno.EIO:
                raise
            data = b""
        self.shown += data.decode(errors="replace")
        return data != b""

    def until(self, is_so, what):
        """Reads until is_so(), which is asked each time that something may have changed."""
        end = time.monotonic() + self.seconds
        while not is_so():
            if time.monotonic() > end:
                raise Failed(f"not within {self.seconds} s: {what}")
            if not self.read(0.02):
                time.sleep(0.02)

    def type(self, text):
        os.write(self.fd, text.encode())

    def see(self, pattern):
        def is_seen():
            match = re.search(pattern, self.shown[self.seen:])
            if match:
                self.seen += match.end()
            return match

        self.until(is_seen, f"see {pattern}")

    def run(self, command):
        self.until(lambda: subprocess.run(["bash", "-c", command],
                                          stdin=subprocess.DEVNULL).returncode == 0,
                   f"run {command}")

    def hangup(self):
        os.close(self.fd)
        self.fd = None

    def step(self, line):
        kind, _, rest = line.partition(" ")
        if kind == "type":
            self.type(rest + "\r")
        elif kind == "key":
            self.type(re.sub(r"\^([A-Z\\\[])", lambda key: chr(ord(key[1]) & 31), rest))
        elif kind == "see":
            self.see(rest)
        elif kind == "run":
            self.run(rest)
        elif kind == "hangup":
            self.hangup()
        elif kind not in ("", "#"):
            raise Failed(f"no such step: {line}")

    def end(self):
        """The status, as a shell has it."""
        status = None

        def has_ended():
            nonlocal status
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return pid != 0

        self.until(has_ended, "the end of the command")
        return os.waitstatus_to_exitcode(status)

    def kill(self):
        """Whoever is left in the session."""
        subprocess.run(["pkill", "-KILL", "-s", str(self.pid)], check=False)


def main(arguments):
    seconds = 30.0
    if arguments[:1] == ["--seconds"]:
        seconds = float(arguments[1])
        arguments = arguments[2:]
    terminal = Terminal(arguments, seconds)
    line = ""
    try:
        for line in sys.stdin.read().splitlines():
            terminal.step(line)
        line = "(the end)"
        status = terminal.end()
        return status if status >= 0 else 128 - status
    except (Failed, OSError) as error:
        print(f"step: {line}\n{error}\n--- seen\n{terminal.shown[:terminal.seen]}"
              f"\n--- not looked at\n{terminal.shown[terminal.seen:]}", file=sys.stderr)
        terminal.kill()
        return 99


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
