#!/usr/bin/python3
"""A full-screen program: shows UP and the keys that it gets, each as key-KEY.

q ends it; z stops its process group, as an editor does at ^Z; s stops only itself. When it
is continued it shows AGAIN.
"""

import curses
import os
import signal


def show(screen, text):
    screen.clear()
    screen.addstr(0, 0, text)
    # ncurses ignores ^Z while it draws, though the text can be seen already
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
    screen.refresh()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})


def stop(screen, pid, number):
    curses.endwin()
    os.kill(pid, number)
    show(screen, "AGAIN")


def main(screen):
    show(screen, "UP")
    while True:
        key = screen.getch()
        if key == ord("q"):
            return
        if key == ord("z"):
            stop(screen, 0, signal.SIGTSTP)
        elif key == ord("s"):
            stop(screen, os.getpid(), signal.SIGSTOP)
        elif key >= 0:
            show(screen, "key-" + chr(key))


curses.wrapper(main)
