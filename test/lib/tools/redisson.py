#!/usr/bin/python3
"""Another program that locks: in the way of Redisson's RLock.

    redisson.py ADDRESS KEY NAME FILE [HOLD [PAUSE [TURNS]]]

ADDRESS is a Unix socket, or HOST:PORT of a cluster's node that has KEY: there it
publishes and listens by slot, or with "all:" in front to all nodes. It takes KEY
TURNS times (for ever), holds it for HOLD ms (5), appends NAME to FILE each time, and
waits for PAUSE ms (0) between two turns.
It locks as a thread of Redisson does: a script that takes the hash or says how
long it still lasts; a subscription while it is held; and another try at each
message, or when that time is over.
"""
import socket
import sys
import time
import uuid

import redis

TAKE = """
local mine = redis.call('hexists', KEYS[1], ARGV[1]) == 1
if mine or redis.call('exists', KEYS[1]) == 0 then
  redis.call('hincrby', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return false
end
return redis.call('pttl', KEYS[1])
"""
GIVE = """
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return false
end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('del', KEYS[1])
redis.call(ARGV[3], KEYS[2], '0')
return 1
"""
LEASE = 30000  # ms


def words(*items):
    """A request, for a connection that listens: redis-py may not know SSUBSCRIBE."""
    data = [item if isinstance(item, bytes) else str(item).encode() for item in items]
    return b"*%d\r\n" % len(data) + b"".join(b"$%d\r\n%s\r\n" % (len(each), each) for each in data)


class Lock:
    def __init__(self, address, key, name):
        publishes_to_all = address.startswith("all:")
        address = address.removeprefix("all:")
        self.socket = address if address.startswith("/") else None
        self.place = None if self.socket else (address.rsplit(":", 1)[0], int(address.rsplit(":", 1)[1]))
        self.client = redis.Redis(unix_socket_path=self.socket) if self.socket \
            else redis.Redis(*self.place)
        self.publish = "publish" if self.socket or publishes_to_all else "spublish"
        self.subscribe = "SUBSCRIBE" if self.publish == "publish" else "SSUBSCRIBE"
        self.key, self.owner = key, "%s:%s" % (uuid.uuid4(), name)
        self.channel = "redisson_lock__channel:" + (key if "{" in key else "{%s}" % key)
        self.ear = None

    def take(self):
        return self.client.eval(TAKE, 1, self.key, self.owner, LEASE)

    def listen(self):
        self.ear = socket.socket(socket.AF_UNIX if self.socket else socket.AF_INET)
        self.ear.connect(self.socket or self.place)
        self.ear.sendall(words(self.subscribe, self.channel))
        self.ear.settimeout(10)
        self.ear.recv(4096)

    def acquire(self):
        left = self.take()
        if left is None:
            return
        if self.ear is None:
            self.listen()
        while (left := self.take()) is not None:
            self.ear.settimeout(max(left, 1) / 1000)
            try:
                if not self.ear.recv(65536):
                    raise SystemExit("the server hung up")
            except socket.timeout:
                pass

    def release(self):
        return self.client.eval(GIVE, 2, self.key, self.channel, self.owner, LEASE, self.publish)


def main(address, key, name, path, hold="5", pause="0", turns="-1"):
    lock, left = Lock(address, key, name), int(turns)
    with open(path, "a", encoding="ascii") as order:
        while left != 0:
            lock.acquire()
            order.write(name + "\n")
            order.flush()
            time.sleep(int(hold) / 1000)
            if lock.release() != 1:
                raise SystemExit("it was not ours")
            time.sleep(int(pause) / 1000)
            left -= 1


if __name__ == "__main__":
    main(*sys.argv[1:])
