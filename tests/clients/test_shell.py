"""What only the functions for the shell can meet: time passes between gavelctl's answer and theirs."""

import os

from clients.fake_sidecar import FakeSidecar
from kit.sidecar import GAVELCTL


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
