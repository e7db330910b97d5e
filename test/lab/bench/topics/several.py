"""several keys that are free, taken together on a network of 20 ms"""
from lab import REDLOCK, share, tool
from network import ADDRESS, NamedServer, Wire, why_not
from races import race

PORT = 6379
RTT = 20  # ms
KEYS = (1, 2, 4, 16)


def name(count):
    return "one key" if count == 1 else f"{count} keys"


def line(count):
    """A run that holds so many keys, which are its own."""
    also = [word for i in range(1, count)
            for word in ("--also", f"{count}.{i}")]
    return [REDLOCK, "run", "-S", f"redis://{ADDRESS}:{PORT}", *also,
            f"{count}.0", tool("floor"), "now"]


def run(report, times):
    if why := why_not():
        report.note(why)
        return
    wire = Wire()
    server = NamedServer(wire.far, PORT)
    wire.stretch(RTT)
    runs = race({name(count): line(count) for count in KEYS}, times(20),
                start=True, inside=wire.near.inside)
    report.table(f"{RTT} ms away, in round trips (the handshake is one)", [
        {"": each, "turns": len(one.walls), "to the start": one.start / RTT,
         "in all": one.wall / RTT, "p10": share(one.walls, 0.1) / RTT,
         "p90": share(one.walls, 0.9) / RTT} for each, one in runs.items()])
    for count in KEYS[1:]:
        report.goal(f"{name(count)}, x one key",
                    runs[name(count)].wall / runs[name(1)].wall,
                    1.1 if count <= 4 else 1.5)
    server.kill()
