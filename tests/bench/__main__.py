"""python3 -m bench [--quick] [--out FOLDER] [GROUP...]: from the folder tests, see run.sh."""

import argparse
import os
import sys
import time
import traceback

from bench import (report, rows_answers, rows_candidates, rows_changes, rows_elections, rows_idle,
                   rows_polls, rows_start)
from bench.figures import Skipped, skipped
from bench.stand import Stand

MODULES = (rows_answers, rows_changes, rows_polls, rows_idle, rows_start, rows_elections,
           rows_candidates)


def measure(name, group, quick):
    """Its rows; a group that fails says so in the table, and the others go on."""
    rows = []
    try:
        with Stand(quick) as stand:
            for row in group(stand):
                rows.append(row)
    except Skipped as why:
        rows.append(skipped(name, str(why)))
    except Exception as error:
        traceback.print_exc()
        rows.append(skipped(name, f"failed ({type(error).__name__})"))
    return rows


def show(row):
    words = (row.what, row.skipped or row.ours, row.against, row.ratio, row.goal, row.verdict)
    print("  " + " | ".join(w for w in words if w), flush=True)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as f:
        f.write(text)


def main():
    parser = argparse.ArgumentParser(prog="sh tests/bench/run.sh")
    parser.add_argument("--quick", action="store_true", help="few rounds: a trial, no figures")
    parser.add_argument("--out", required=True, help="folder for bench.md and bench.svg")
    parser.add_argument("groups", nargs="*", help="only groups whose name contains one of these")
    chosen = parser.parse_args()
    head = report.machine() + (" (quick: no figures to be quoted)" if chosen.quick else "")
    rows, begun = [], time.monotonic()
    for name, group in [g for m in MODULES for g in m.GROUPS]:
        if chosen.groups and not any(word in name for word in chosen.groups):
            continue
        print(f"{time.monotonic() - begun:4.0f} s  {name}", flush=True)
        found = measure(name, group, chosen.quick)
        rows += found
        for row in found:
            show(row)
        # Written each time: what was measured stays when the run is cut short.
        write(chosen.out, "bench.md", report.markdown(rows, head))
        write(chosen.out, "bench.svg", report.svg(rows, head))
    print(f"{time.monotonic() - begun:4.0f} s  {chosen.out}/bench.md and bench.svg")
    return any(row.skipped.startswith("failed") for row in rows)


if __name__ == "__main__":
    sys.exit(main())
