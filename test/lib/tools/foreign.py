#!/usr/bin/python3
"""Another program that locks: redis-py's Lock, told what to do line by line.

    foreign.py SOCKET KEY

Reads commands from standard input and answers each with a line:

    acquire TIMEOUT [WAIT]  a lease of TIMEOUT seconds; waits for KEY up to WAIT seconds (0: does not
                            wait): "got" or "not"
    extend SECONDS          adds to the lease: "ok", or the exception's name
    release                 "ok", or the exception's name
    owned                   "yes" or "no"
"""
import sys

import redis
from redis.lock import Lock


def answer(client, key, words):
    if words[0] == "acquire":
        answer.lock = Lock(client, key, timeout=float(words[1]), sleep=0.01)
        wait = float(words[2]) if len(words) > 2 else 0
        got = answer.lock.acquire(blocking=wait > 0,
                                  blocking_timeout=wait if wait > 0 else None)
        return "got" if got else "not"
    if words[0] == "owned":
        return "yes" if answer.lock.owned() else "no"
    try:
        if words[0] == "extend":
            answer.lock.extend(float(words[1]))
        else:
            answer.lock.release()
    except redis.exceptions.RedisError as error:
        return type(error).__name__
    return "ok"


def main(socket, key):
    client = redis.Redis(unix_socket_path=socket)
    for line in sys.stdin:
        print(answer(client, key, line.split()), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
