"""many who want one lock at a time, and hold it for 1 ms"""
from lab import median
from waiters import (FLOOR, QUEUE, Field, difference, sent_commands,
                     server_cpu)

HOLD = 1000  # microseconds


def drain(way, count):
    field = Field()
    field.hold()
    before = sent_commands(field.redis), server_cpu(field.redis)
    field.waiters(way, count, HOLD)
    begin = field.drain(way)
    sent = difference(sent_commands(field.redis), before[0])
    cpu = server_cpu(field.redis) - before[1]
    found = field.marks_found()
    field.server.kill()
    if len(found) != count:
        raise RuntimeError(f"{count - len(found)} of {count} never came")
    scripts = sent.pop("eval", 0) + sent.pop("evalsha", 0)
    scripts -= way == QUEUE  # the holder's release
    return {"drain ms": (found[-1].end - begin) / 1000,
            "scripts": scripts / count,
            "others": sum(sent.values()) / count,
            "server CPU us": 1000 * cpu / count}


def run(report, times):
    table, first = [], None
    for count, turns in (10, 15), (100, 5), (500, 3):
        if times(100) < 10 and count > 100:
            report.note("500 are left out of a short run")
            break
        found = {QUEUE: [], FLOOR: []}
        for _ in range(times(turns)):
            for way, each in found.items():
                each.append(drain(way, count))
        rows = {way: {name: median([one[name] for one in each])
                      for name in each[0]} for way, each in found.items()}
        for way, row in rows.items():
            walls = [one["drain ms"] for one in found[way]]
            table.append({
                "": f"{count} x {way}", "turns": len(walls),
                "drain ms": row["drain ms"], "from": min(walls),
                "to": max(walls), "each ms": row["drain ms"] / count,
                "x floor": row["drain ms"] / rows[FLOOR]["drain ms"],
                "scripts": row["scripts"], "others": row["others"],
                "server CPU us": row["server CPU us"]})
        own = rows[QUEUE]
        first = first or own
        report.goal(f"{count}: drain, x floor",
                    own["drain ms"] / rows[FLOOR]["drain ms"], 1.3)
        if own is first:
            continue
        report.goal(f"{count}: commands each, x those of 10",
                    (own["scripts"] + own["others"]) /
                    (first["scripts"] + first["others"]), 1.1)
        report.goal(f"{count}: server CPU each, x that of 10",
                    own["server CPU us"] / first["server CPU us"], 1.1)
    report.table("from the release to the last one's end; the rest is for one "
                 "acquisition, from start to end", table)
