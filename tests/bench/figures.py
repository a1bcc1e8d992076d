"""What is computed from measurements, and the row of the table that comes of it. No I/O."""

import dataclasses
import math


class Skipped(Exception):
    """This row cannot be had here; its text is the word in the table."""


def percentile(values, share):
    """The smallest value that at least that share of all values do not exceed (nearest rank)."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median(values):
    return percentile(values, 0.5)


def p99(values):
    return percentile(values, 0.99)


def ratios(ours, theirs):
    """The ratio of each pair that was measured one after the other."""
    return [a / b for a, b in zip(ours, theirs, strict=True) if b > 0]


def split(lines):
    """{0: [values], 1: [values]} of a program's lines "TARGET VALUE", in their order."""
    found = {}
    for line in lines:
        target, value = line.split()
        found.setdefault(int(target), []).append(float(value))
    return found


@dataclasses.dataclass
class Row:
    """One line of the table. `share` is how much of its goal is used up: over 1 it is missed."""
    what: str
    ours: str
    against: str
    ratio: str
    goal: str
    share: float = None
    skipped: str = ""

    @property
    def verdict(self):
        if self.skipped:
            return "skipped"
        return "-" if self.share is None else "met" if self.share <= 1 else "MISSED"


def at_most(what, ours, against, value, goal, unit="×"):
    """A row whose value must not exceed the goal; both in the unit."""
    return Row(what, ours, against, number(value) + " " + unit, f"≤ {number(goal)} {unit}",
               value / goal)


def at_least(what, ours, against, value, goal, unit="×"):
    return Row(what, ours, against, number(value) + " " + unit, f"≥ {number(goal)} {unit}",
               goal / value if value > 0 else math.inf)


def told(what, ours, against="", ratio=""):
    """A row that has no goal, but belongs beside those that have one."""
    return Row(what, ours, against, ratio, "")


def skipped(what, why):
    return Row(what, "", "", "", "", skipped=why)


def number(value):
    """Three digits that count, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def spread(values, unit):
    """"p50 1.2 ms, p99 3.4 ms"."""
    return f"p50 {number(median(values))} {unit}, p99 {number(p99(values))} {unit}"
