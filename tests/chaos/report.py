"""What a run has shown, as text, as JSON and as a picture."""

import collections
import json
import os
import statistics

from chaos.judge import OF_ATTACHMENT
from chaos.timeline import draw
from kit.clock import S

REACH = 2 * S
WAYS = ("socket", *OF_ATTACHMENT, "http", "page")


def command(store, seed, seconds, mode):
    return f"sh tests/chaos/run.sh --store {store} --seed {seed} --seconds {seconds:g} --mode {mode}"


def collect(story, rounds, run):
    """`run`: what was run and how; all of it is in the answer."""
    faults = collections.Counter(f[0] for f in story.faults)
    numbers = collections.Counter(story.judge.numbers())
    healed = sorted(rounds.healed_s)
    return {
        **run,
        "rounds": len(healed),
        "faults": sum(faults.values()),
        "faults_by_kind": dict(sorted(faults.items())),
        "faults_skipped": rounds.skipped,
        "faults_without_effect": rounds.void,
        "answers": numbers["answers"],
        "answers_by_way": {w: numbers["answers by " + w] for w in WAYS},
        "leader_answers": numbers["leader answers"],
        "grants": numbers["grants"],
        "writes_accepted": numbers["writes accepted"],
        "writes_refused": numbers["writes refused"],
        "accepted_in_the_resource": story.judge.accepted,
        "healed_within_s": {"median": round(statistics.median(healed), 3),
                            "most": round(healed[-1], 3)} if healed else None,
        "healed_later_than_on_a_quiet_host": sum(h > rounds.bound_s() for h in healed),
        "healing_not_judged": rounds.unjudged,
        "two_masters": len(story.judge.excuses),
        "excused": story.judge.excused() if story.judge.excuses else 0,
        "host_late_ms": round(rounds.latency.worst_ns(0, 1 << 62) / 1e6, 1),
        "violations": [{"kind": v.kind, "at_s": round((v.at - run["began_ns"]) / S, 3),
                        "text": v.text} for v in story.violations()],
        "harness_failures": rounds.failures,
    }


def gaps(found):
    """Why it proves nothing, if it does not."""
    rounds, unjudged = found["rounds"], found["healing_not_judged"]
    told = {"leader_answers": "nobody was told that it leads",
            "writes_accepted": "no write was accepted", "faults": "there was no fault",
            "rounds": "after no round it was judged whether one leads again"}
    missing = [text for key, text in told.items() if not found[key]]
    if unjudged > max(1, rounds // 4):
        missing.append(f"after {unjudged} of {unjudged + rounds} rounds the host was too late to "
                       "judge whether one leads again")
    return missing


def status(found):
    if found["violations"]:
        return 1
    return 2 if found["harness_failures"] or gaps(found) else 0


def as_text(found, story):
    lines = [f"chaos: store {found['store']}, seed {found['seed']}, {found['lasted_s']:.0f} s",
             *(f"  {text}" for text in found["settings"])]
    lines += [f"  SKIPPED: {text}" for text in found["skipped"]]
    lines.append(f"  {found['faults']} faults in {found['rounds']} rounds; not counted: "
                 f"{found['faults_without_effect']} that found nothing to strike, "
                 f"{found['faults_skipped']} whose target was being struck already:")
    lines += [f"    {count:6} {kind}" for kind, count in found["faults_by_kind"].items()]
    by_way = ", ".join(f"{way} {count:,}" for way, count in found["answers_by_way"].items())
    lines += [
        f"  {found['answers']:,} answers ({by_way}), {found['leader_answers']:,} of them leader; "
        f"{found['grants']:,} grants led",
        f"  {found['writes_accepted']:,} writes accepted, {found['writes_refused']:,} refused as "
        "stale"]
    if found["healed_within_s"]:
        lines.append("  after the faults of a round one led within "
                     f"{found['healed_within_s']['median']} s (median), "
                     f"{found['healed_within_s']['most']} s (most); "
                     f"{found['healed_later_than_on_a_quiet_host']} times later than it takes on a "
                     "quiet host")
    if found["healing_not_judged"]:
        lines.append(f"  {found['healing_not_judged']} times nobody led for long after a round, on a "
                     "host too late for the leases: not judged")
    if found["two_masters"]:
        lines.append(f"  two masters answered {found['two_masters']} times, which is not covered: "
                     f"{found['excused']} times two led then")
    lines.append(f"  the host was late by up to {found['host_late_ms']} ms")
    lines.append(f"  violations: {len(found['violations'])}")
    for violation, told in zip(story.violations(), found["violations"]):
        lines.append(f"\n{told['kind']}, {told['at_s']} s after the start: {told['text']}")
        lines += ["    " + text for text in story.around(violation.at, REACH)]
    lines += [f"\nthe harness failed: {text}" for text in found["harness_failures"]]
    lines += [f"\nnothing is proven: {text}" for text in gaps(found)]
    if status(found):
        lines.append("\nAgain: " + command(found["store"], found["seed"], found["asked_s"],
                                               found["mode"]))
    return "\n".join(lines)


def write(out, found, text, story, replicas):
    with open(os.path.join(out, "report.txt"), "w", encoding="utf-8") as f:
        f.write(text + "\n")
    with open(os.path.join(out, "report.json"), "w", encoding="utf-8") as f:
        json.dump(found, f, indent=1)
    began = found["began_ns"]
    heading = (f"{found['store']}, seed {found['seed']}: who led when (pale: still trusted), "
               f"faults in red; {len(found['violations'])} violations")
    with open(os.path.join(out, "timeline.svg"), "w", encoding="utf-8") as f:
        f.write(draw(story, replicas, began, began + int(found["lasted_s"] * S), heading))
