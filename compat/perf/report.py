"""Measurements of a run, and the table made of them."""

import json
import os
import platform
import statistics
import subprocess
import time


class Figures:
    """Values by (row, metric), broker and state; `better` says which way is good."""

    def __init__(self):
        self.values = {}
        self.units = {}
        self.failures = []

    def add(self, row, metric, unit, broker, state, value, better="less"):
        key = (row, metric)
        self.units[key] = (unit, better)
        self.values.setdefault(key, {}).setdefault(f"{broker} {state}", []).append(value)

    def table(self, first="klamm warm", second="kafka warm", cold="kafka cold"):
        lines = [
            "| row | metric | Kafka, cold | Kafka, median (least - most) "
            "| Klamm, median (least - most) | Klamm / Kafka |",
            "|---|---|---|---|---|---|",
        ]
        for (row, metric), by_broker in self.values.items():
            unit, _ = self.units[(row, metric)]
            ratio = "-"
            if first in by_broker and second in by_broker:
                theirs = statistics.median(by_broker[second])
                ours = statistics.median(by_broker[first])
                ratio = figure(ours / theirs) if theirs else "-"
            cells = [shown(by_broker.get(name)) for name in [cold, second, first]]
            others = [f"{name}: {shown(values)}" for name, values in by_broker.items()
                      if name not in (first, second, cold, "klamm cold")]
            label = f"{metric}, {unit}" if unit else metric
            lines.append(f"| {row} | {label} | {' | '.join(cells)} | "
                         f"{'; '.join([ratio, *others])} |")
        return "\n".join(lines)

    def save(self, path, about):
        measured = [
            {"row": row, "metric": metric, "unit": self.units[(row, metric)][0], "values": values}
            for (row, metric), values in self.values.items()]
        with open(path, "w") as out:
            json.dump({"about": about, "failures": self.failures, "figures": measured}, out,
                      indent=1)
            out.write("\n")


def figure(value):
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


def shown(values):
    if not values:
        return "-"
    middle = figure(statistics.median(values))
    return middle if len(values) < 2 else f"{middle} ({figure(min(values))} - {figure(max(values))})"


def machine():
    """What the figures depend on."""
    model = "?"
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as lines:
        memory_gib = int(lines.readline().split()[1]) / 1024 / 1024
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                            text=True, cwd=os.path.dirname(os.path.abspath(__file__)))
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cores": os.cpu_count(),
        "processor": model,
        "memory_gib": round(memory_gib, 1),
        "kernel": platform.release(),
        "commit": commit.stdout.strip(),
        "load_before": os.getloadavg(),
    }
