"""What else holds a lock while a command runs, as words for race.c. What is
not installed (scripts/bootstrap --bench) is said to be missing."""
import os
import shutil
import socket
import subprocess

from lab import HOME, service, wait_until

COMMAND = "/bin/true"
KEY = "lock"
RELEASE = ("if redis.call('get',KEYS[1])==ARGV[1] then "
           "return redis.call('del',KEYS[1]) else return 0 end")
BASH = f"""
token=$RANDOM$RANDOM$RANDOM
[[ $(redis-cli -s "$1" SET "$2" "$token" NX PX 30000) == OK ]] || exit 75
"${{@:3}}"
redis-cli -s "$1" EVAL "{RELEASE}" 1 "$2" "$token"
"""
PYTHON = """
import subprocess, sys, redis
with redis.Redis(unix_socket_path=sys.argv[1]).lock(sys.argv[2], timeout=30):
    subprocess.run(sys.argv[3:], check=True)
"""
NODE = """
const [path, key, ...command] = process.argv.slice(1);
const Redis = require("ioredis"), redlock = require("redlock");
const client = new Redis(path);
new (redlock.default || redlock)([client]).acquire([key], 30000).then(lock => {
    require("child_process").spawnSync(command[0], command.slice(1));
    return (lock.release || lock.unlock).call(lock); // 5, 4
}).then(() => client.quit(), error => { console.error(error); process.exit(1); });
"""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def works(*words, environment=None):
    return shutil.which(words[0]) and subprocess.run(
        words, env={**os.environ, **(environment or {})}, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL).returncode == 0


def redis_cli(server):
    """Two calls instead of redlock acquire and release."""
    call = ["redis-cli", "-s", server.path]
    return [*call, "SET", KEY, "token", "NX", "PX", "30000", "::+",
            *call, "EVAL", RELEASE, "1", KEY, "token"]


def etcd():
    """A server of its own; how its client is called."""
    url = f"http://127.0.0.1:{free_port()}"
    peer = f"http://127.0.0.1:{free_port()}"
    service(["sh", "-c", 'exec "$@" 2>/dev/null', "sh", "etcd",
             "--data-dir", HOME + "/etcd", "--listen-client-urls", url,
             "--advertise-client-urls", url, "--listen-peer-urls", peer,
             "--initial-advertise-peer-urls", peer,
             "--initial-cluster", "default=" + peer])
    call = ["env", "ETCDCTL_API=3", "etcdctl", "--endpoints=" + url]
    wait_until(lambda: works(*call, "endpoint", "health"), 20, "etcd")
    return call


def rivals(server, report):
    """Those that are here, each one in every so many rounds."""
    found = {}

    def rival(name, package, is_here, words):
        if is_here:
            found[name] = words()
        else:
            report.note(f"missing: {name} ({package})")

    modules = os.environ.get("NODE_REDLOCK", "")
    rival("flock(1)", "util-linux", shutil.which("flock"),
          lambda: ["flock", HOME + "/flock", COMMAND])
    rival("bash, redis-cli", "redis-tools",
          shutil.which("bash") and shutil.which("redis-cli"),
          lambda: ["@4", "bash", "-c", BASH, "-", server.path, KEY, COMMAND])
    rival("redis-py", "python3-redis",
          works("/usr/bin/python3", "-c", "import redis"),
          lambda: ["@20", "/usr/bin/python3", "-c", PYTHON, server.path, KEY,
                   COMMAND])
    rival("etcdctl lock", "etcd-server, etcd-client",
          shutil.which("etcd") and shutil.which("etcdctl"),
          lambda: ["@20", *etcd(), "lock", KEY, COMMAND])
    rival("node-redlock", "NODE_REDLOCK=DIRECTORY/node_modules",
          modules and works("node", "-e", "require('ioredis');"
                            "require('redlock')",
                            environment={"NODE_PATH": modules}),
          lambda: ["@20", "env", "NODE_PATH=" + modules, "node", "-e", NODE,
                   server.path, KEY, COMMAND])
    return found
