"""Network namespaces, delays between them (distance.c), and servers there. All of
it is gone with the processes that it is made of."""
import os
import shutil
import subprocess

from lab import Redis, Server, service, tool, wait_until

ADDRESS = "10.9.0.2"  # of what is far


def why_not():
    """Nothing, or why there can be no network here."""
    if os.geteuid() != 0:
        return "left out: network namespaces need root"
    for name in ("ip", "iptables", "unshare", "nsenter"):
        if not shutil.which(name):
            return f"left out: there is no {name}"
    if subprocess.run(["unshare", "-n", "true"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        return "left out: network namespaces cannot be made here"
    return None


class Namespace:
    """inside: what a command has to begin with to be run there."""

    def __init__(self):
        self.pid = service(["unshare", "-n", "sleep", "infinity"]).pid
        mine = os.readlink("/proc/self/ns/net")
        wait_until(lambda: self.sleeps() and
                   os.readlink(f"/proc/{self.pid}/ns/net") != mine,
                   20, "a network namespace")
        self.inside = [shutil.which("nsenter"), "-t", str(self.pid), "-n"]
        self.run("ip", "link", "set", "lo", "up")
        # starts like Debian's cubic and is on every machine; what some have
        # instead (bbr) spreads a few packets over a ms
        self.run("sh", "-c",
                 "echo reno >/proc/sys/net/ipv4/tcp_congestion_control")

    def sleeps(self):
        with open(f"/proc/{self.pid}/comm", encoding="ascii") as file:
            return file.read() == "sleep\n"

    def run(self, *words):
        subprocess.run([*self.inside, *words], check=True,
                       stdin=subprocess.DEVNULL)


class NamedServer(Server):
    """In a namespace, with the Unix socket that every server has."""

    def __init__(self, namespace, port, *options):
        self.namespace = namespace
        super().__init__("--port", str(port), "--bind", "0.0.0.0",
                         "--protected-mode", "no", *options)

    def start(self):
        self.process = service(
            [*self.namespace.inside, "redis-server", "--unixsocket", self.path,
             "--dir", self.home, "--save", "", "--appendonly", "no",
             *self.options])
        wait_until(self.answers, 20, "a redis-server")


class NamedSentinel(NamedServer):
    """One that watches ADDRESS:port by the name of main."""

    def __init__(self, namespace, port, watched):
        self.watched = watched
        super().__init__(namespace, port)

    def start(self):
        conf = self.home + "/conf"
        with open(conf, "w", encoding="ascii") as file:
            file.write(f"sentinel monitor main {ADDRESS} {self.watched} 2\n")
        self.process = service(
            [*self.namespace.inside, "redis-server", conf, "--sentinel",
             "--unixsocket", self.path, "--dir", self.home, *self.options])
        wait_until(self.answers, 20, "a Sentinel")


def cluster(namespace, ports):
    """Its nodes; there must be a wire, by which they meet."""
    nodes = [NamedServer(namespace, port, "--cluster-enabled", "yes",
                         "--cluster-announce-ip", ADDRESS,
                         "--cluster-node-timeout", "60000") for port in ports]
    for i, node in enumerate(nodes):
        redis, share = Redis(node.path), 16384 / len(nodes)
        redis("CLUSTER", "ADDSLOTSRANGE", str(int(i * share)),
              str(int((i + 1) * share) - 1))
        redis("CLUSTER", "SET-CONFIG-EPOCH", str(i + 1))
        redis("CLUSTER", "MEET", ADDRESS, str(ports[0]))
    wait_until(lambda: all("cluster_state:ok" in Redis(node.path)(
        "CLUSTER", "INFO") for node in nodes), 20, "a cluster")
    return nodes


class Wire:
    """near and far, and what is between them."""

    def __init__(self):
        self.near, self.far, self.process = Namespace(), Namespace(), None

    def stretch(self, rtt):
        """Every packet takes half of the round trip (ms) from now on."""
        if self.process:
            self.process.kill()
            self.process.wait()
            wait_until(lambda: not self.is_up(), 20, "no wire")
        self.process = service([tool("distance"), str(rtt * 500),
                                str(self.near.pid), str(self.far.pid)])
        wait_until(self.is_up, 20, "a wire")

    def is_up(self):
        with open(f"/proc/{self.near.pid}/net/route",
                  encoding="ascii") as file:
            return "wire" in file.read()
