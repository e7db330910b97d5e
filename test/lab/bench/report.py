"""What a topic has found: tables and goals, as one structure that JSON can
carry, and how it is shown to people."""
import math


class Report:
    """What one topic says."""

    def __init__(self, title):
        self.found = {"title": title, "tables": [], "goals": [], "notes": [],
                      "failed": None}

    def table(self, title, rows):
        """Each row is a dict: columns are its names, the first names the row."""
        self.found["tables"].append({"title": title, "rows": rows})

    def goal(self, what, value, limit):
        """value is to be at most limit, in the digits that are shown."""
        self.found["goals"].append(
            {"what": what, "value": value, "limit": limit,
             "met": bool(float(shown(value)) <= limit)})

    def note(self, text):
        """What is missing, or left out."""
        self.found["notes"].append(text)


def shown(value):
    """Three digits of a number are enough for anybody."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "nan"
    digits = 2
    if abs(value) >= 10:
        digits = 1 if abs(value) < 100 else 0
    elif 0 < abs(value) < 0.1:
        digits = 3
    return f"{value:.{digits}f}"


def show_rows(title, rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names] + [[shown(row.get(name)) for name in names]
                       for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    words = [all(isinstance(row.get(name, ""), str) for row in rows)
             for name in names]
    print(f"\n  {title}")
    for line in lines if any(map(str.strip, names)) else lines[1:]:
        print("    " + "  ".join(
            text.ljust(width) if is_words else text.rjust(width)
            for is_words, text, width in zip(words, line, widths)).rstrip())


def show_topic(name, found):
    print(f"{name}: {found['title']}")
    for table in found["tables"]:
        show_rows(table["title"], table["rows"])
    if found["goals"]:
        show_rows("goals", [
            {"": goal["what"], "at most": goal["limit"],
             "is": goal["value"], " ": "met" if goal["met"] else "NOT MET"}
            for goal in found["goals"]])
    print("".join(f"\n  {note}" for note in found["notes"]))
    if found["failed"]:
        print(f"  FAILED: {found['failed']}")


def show(results):
    on, noise = results["machine"], results["noise"]
    print(f"{on['date']}: {on['cores']} cores, {on['cpu']}, "
          f"Linux {on['kernel']}, Redis {on['redis']}\n"
          f"load {on['load before']} before, {on['load after']} after; "
          f"took {results['seconds']:.0f} s\n"
          f"noise: the floor beside itself, {noise['turns']} turns each: "
          f"{shown(noise['ratio'])} times;\n"
          f"       {shown(noise['p50 ms'])} ms, 10 % below "
          f"{shown(noise['p10 ms'])}, 10 % above {shown(noise['p90 ms'])}\n")
    for name, found in results["topics"].items():
        show_topic(name, found)
    goals = [goal for found in results["topics"].values()
             for goal in found["goals"]]
    print(f"{sum(goal['met'] for goal in goals)} of {len(goals)} goals met")
