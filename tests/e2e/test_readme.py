"""Every command of the README is run, as it stands there.

A block of commands is marked by a comment before it: `run` is run by a shell in one folder with
all others, in their order; `once` is run with --once added; `self` is what is running just now; `operator` is run
by the tests of PostgreSQL (test_postgres_names.py), `kubernetes` by those of the manifests (deploy/test_kubernetes.py);
`long` takes hours as it stands there, and is run shortened.
"""

import os
import re
import subprocess

import pytest

from kit.ports import free_port
from kit.readme import README, ROOT, commands
from kit.sidecar import BIN, clean_env

def test_every_block_is_marked():
    assert {kind for kind, _ in commands()} <= {"run", "once", "self", "operator", "kubernetes", "long"}


def test_the_first_screen_has_the_two_commands():
    with open(README, encoding="utf-8") as f:
        first = "".join(f.readlines()[:45])
    assert "sh deploy/try.sh" in first and "sh tests/run.sh" in first


def test_what_is_running_just_now():
    for kind, text in commands():
        if kind == "self":
            for command in text.strip().splitlines():
                words = command.split("#")[0].split()
                assert words[0] == "sh" and os.path.exists(os.path.join(ROOT, words[1])), command
                assert subprocess.run(["sh", "-n", words[1]], cwd=ROOT).returncode == 0


@pytest.mark.parametrize("text", [t for k, t in commands() if k == "once"])
def test_commands_that_stay_in_the_foreground(text):
    for command in text.strip().splitlines():
        done = subprocess.run(["sh", "-c", command.split("#")[0] + " --once"], cwd=ROOT,
                              env=clean_env(), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "took over after" in done.stdout and "The token grew" in done.stdout


# What a command that takes long is shortened by.
SHORTER = ((r"--hours 1$", "--seconds 3 --seed 7"), (r"(sim|votes) --hours 1$", r"\1 --seconds 1"),
           (r"score\.py$", "score.py --seeds 300 no-margin"), (r"(coverage\.py) --all$|(bench/run\.sh)$", r"\1\2 -h"),
           (r" 3600$", " 1"))


def shortened(command):
    command = command.split("#")[0].strip()
    for long, short in reversed(SHORTER):
        if re.search(long, command):
            return re.sub(long, short, command)
    raise AssertionError(f"nothing makes this shorter: {command}")


@pytest.mark.parametrize("command", [line for t in (t for k, t in commands() if k == "long")
                                     for line in t.strip().splitlines()])
def test_what_takes_hours_works_for_a_moment(command, folder):
    command = shortened(command)
    program = re.search(r"build/\S+/tests/\S+", command)
    if program and not os.path.exists(os.path.join(ROOT, program[0])):
        pytest.skip(f"{program[0]} is not built here")
    command = command.replace("build/found", folder + "/found")
    if "chaos" in command:
        command += f" --out {folder}/chaos"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, env=clean_env({"GAVEL_BIN": BIN}),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_the_demonstration_on_a_given_store(redis):
    done = subprocess.run(["sh", "deploy/try.sh", redis.url, "--once"], cwd=ROOT, env=clean_env(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert redis.url in done.stdout and "The token grew" in done.stdout
    assert redis.record("try", "try")


# Another name for the ports: those of the README may be taken on this machine.
CURL = """#!/usr/bin/python3
import sys, urllib.request, urllib.error
url = [a for a in sys.argv[1:] if not a.startswith("-")][-1]
try:
    reply = urllib.request.urlopen(url, timeout=10)
except urllib.error.HTTPError as e:
    reply = e
    if any("f" in a for a in sys.argv[1:] if a.startswith("-") and not a.startswith("--")):
        sys.exit(22)
sys.stdout.write(reply.read().decode())
"""


def test_commands_one_after_the_other(folder, redis):
    text = "\n".join(t for k, t in commands() if k == "run")
    http, health = free_port(), free_port()
    text = re.sub(r"\b4040\b", str(http), text)
    text = re.sub(r"\b4041\b", str(health), text)
    text = re.sub(r"redis://127\.0\.0\.1:6379", redis.url, text)
    os.makedirs(folder + "/build")
    os.symlink(BIN, folder + "/build/release")
    os.symlink(ROOT + "/sidecar", folder + "/sidecar")
    os.mkdir(folder + "/bin")
    with open(folder + "/bin/curl", "w") as f:
        f.write(CURL)
    os.chmod(folder + "/bin/curl", 0o755)
    script = f"trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\nset -eux\n{text}\n"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, text=True, timeout=120, stdin=subprocess.DEVNULL,
        capture_output=True, env=clean_env({
            "HOME": folder, "PATH": f"{folder}/bin:" + os.environ["PATH"],
            "GAVEL_HTTP": f"localhost:{http}", "GAVEL_HEALTH": f":{health}",
            "XDG_RUNTIME_DIR": folder, "RUNTIME_DIRECTORY": folder + "/run"}))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
