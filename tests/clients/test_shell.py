"""What only the functions for the shell can meet: time passes between gavelctl's answer and theirs."""

import os
import re
import shutil
import subprocess
import threading

import pytest

from clients.fake_sidecar import FakeSidecar
from clients.languages import CLIENTS
from kit.clock import wait_until
from kit.sidecar import GAVELCTL, clean_env

SHELLS = [x for x in ("sh", "bash") if shutil.which(x)]


def test_an_answer_that_was_held_up_after_gavelctl_had_it(folder, closing, program):
    late = folder + "/late-gavelctl"
    with open(late, "w") as f:
        f.write(f'#!/bin/sh\n"{GAVELCTL}" "$@"\nstatus=$?\nsleep 0.6\nexit $status\n')
    os.chmod(late, 0o755)
    fake = closing(FakeSidecar(folder + "/fake"))
    shell = program("sh", fake.path, "a", env={"GAVELCTL": late})
    fake.answer = lambda: fake.leader(valid_ms=60_000)
    assert shell.ask("is_leader") == "true"
    fake.answer = lambda: fake.leader(valid_ms=500)
    assert shell.ask("is_leader") == "false"
    assert shell.ask("token") == "-" and shell.ask("require") == "not-leader"
    assert b"check a\n" in fake.asked


class Script:
    """A script beside gavel.sh, started as `sh script.sh` in its folder."""

    def __init__(self, folder, text, sidecar, *arguments, shell="sh", env=()):
        if not os.path.exists(folder + "/gavel.sh"):
            shutil.copy(os.path.join(CLIENTS, "sh", "gavel.sh"), folder)
        with open(folder + "/script.sh", "w") as f:
            f.write(text)
        self.said = []
        self.process = subprocess.Popen(
            [shell, "script.sh", *arguments], cwd=folder, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            env=clean_env({"GAVELCTL": GAVELCTL, "GAVEL_SOCKET": sidecar, **dict(env)}))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))

    def says(self, line):
        wait_until(lambda: line in self.said, 20, f"it says {line}: {self.said}")

    def wait(self):
        self.process.wait(20)
        self._reader.join(20)
        return self.process.returncode

    def close(self):
        """gavelctl ends what it runs."""
        self.process.terminate()
        self.wait()
        self.process.stdout.close()


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("ifs", [",", "\\n", "0123456789", ""])
def test_what_the_script_splits_by_changes_nothing(folder, closing, shell, ifs):
    fake = closing(FakeSidecar(folder + "/fake"))
    text = f"""IFS=$(printf '{ifs}_'); IFS=${{IFS%_}}
. ./gavel.sh
if gavel_is_leader; then echo yes "$(gavel_token)"; else echo no; fi
echo goes on
"""
    fake.answer = lambda: fake.leader(token=1796157414879, valid_ms=60_000)
    script = closing(Script(folder, text, fake.path, shell=shell))
    assert script.wait() == 0 and script.said == ["yes 1796157414879", "goes on"]
    fake.answer = b"follower -\n"
    script = closing(Script(folder, text, fake.path, shell=shell))
    assert script.wait() == 0 and script.said == ["no", "goes on"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_callback_that_fails_does_not_end_the_watcher(folder, closing, shell):
    fake = closing(FakeSidecar(folder + "/fake"))
    fake.answer = b"follower -\n"
    script = closing(Script(folder, """set -e
. ./gavel.sh
told() { echo "told $*"; false; }
GAVEL_POLL_S=0.05
gavel_on_change told
""", fake.path, shell=shell))
    script.says("told false -")
    fake.answer = lambda: fake.leader(token=7, valid_ms=60_000)
    script.says("told true 7")


def attach_line():
    """In the words of the file's head."""
    with open(os.path.join(CLIENTS, "sh", "gavel.sh"), encoding="utf-8") as f:
        return re.search(r"^# +(gavel_attach .*?) +#", f.read(), re.MULTILINE)[1]


def test_a_script_that_attaches_itself(start, folder, closing):
    """It is run anew once this replica leads, and a token from elsewhere is not taken for that; an
    election within another's has an attachment of its own."""
    os.mkdir(folder + "/state")
    pod = start("pod-a", "--ttl", "1h", "--drain", "2m", "--mode", "efficiency", "--valid-for", "200ms",
                store=f"local:{folder}/state", elections=["one", "two"], http="off", health="off")
    for name in ("one", "two"):
        pod.wait_leader(election=name)
    one, two = pod.check("one").token, pod.check("two").token
    script = closing(Script(folder, f""". ./gavel.sh
echo begun
{attach_line()}
echo "works $GAVEL_ELECTION $GAVEL_TOKEN $*"
[ "$GAVEL_ELECTION" = one ] || exit
GAVEL_ELECTION=two sh script.sh within
trap 'echo asked to end' TERM
echo waits
while [ ! -e go ]; do sleep 0.05; done
""", pod.socket_path, "a b", env={"GAVEL_ELECTION": "one", "GAVEL_TOKEN": "5"}))
    script.says("waits")
    assert script.said == ["begun", "begun", f"works one {one} a b", "begun", "begun",
                           f"works two {two} within", "waits"]
    assert [e["what"] for e in pod.event("application", election="one")] == ["attached"]
    assert "attached" in [e["what"] for e in pod.event("application", election="two")]
    pod.terminate()
    script.says("asked to end")
    assert not pod.event("application", election="one", what="done")  # it waits for the script
    open(folder + "/go", "w").close()
    wait_until(lambda: pod.event("application", election="one", what="done"), 20, "it is done")
