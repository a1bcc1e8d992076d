"""prepare.sh where something cannot be had: it says so, with the reason, and is no failure. The tools are
stand-ins here: nothing is fetched, nothing is built."""

import os
import shutil
import subprocess

import pytest

from kit.readme import ROOT

FAILS = "#!/bin/sh\necho '{0}'\nexit 1\n"
WORKS = "#!/bin/sh\nexit 0\n"
# What podman and buildah say of images and of running them.
NO_BASE = '#!/bin/sh\n[ "$1" != image ]\n'
NO_RUN = '#!/bin/sh\n[ "$1" != run ] || { echo "runc: not permitted"; exit 126; }\n'
NO_BUILD = '#!/bin/sh\ncase "$*" in *docker/Dockerfile*) echo "{0}"; exit 1 ;; esac\n'


@pytest.fixture
def prepare(tmp_path):
    shutil.copytree(os.path.join(ROOT, "tests", "deploy"), tmp_path / "tests" / "deploy")
    (tmp_path / "deploy").mkdir()
    shutil.copy(os.path.join(ROOT, "deploy", "packages.sh"), tmp_path / "deploy")
    (tmp_path / "bin").mkdir()

    def call(**programs):
        """Without each program that is None."""
        all_of_them = dict.fromkeys(("buildah", "podman", "runc", "debootstrap", "catatonit", "npm"),
                                    WORKS) | {"id": "#!/bin/sh\necho 0\n"} | programs
        for name, text in all_of_them.items():
            if text is not None:
                (tmp_path / "bin" / name).write_text(text)
                (tmp_path / "bin" / name).chmod(0o755)
        for name in ("sh git grep tail cat mkdir rm ln flock timeout date cksum cut printf dirname "
                     "find tar sleep").split():
            found = shutil.which(name)
            if found:
                os.symlink(found, tmp_path / "bin" / name)
        done = subprocess.run(["sh", "tests/deploy/prepare.sh"], cwd=tmp_path, text=True, timeout=60,
                              capture_output=True, stdin=subprocess.DEVNULL,
                              env={"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path),
                                   "GAVEL_CACHE": str(tmp_path / "cache")})
        tools = tmp_path / "build" / "tools"
        return done, {p.name: p.read_text().strip() for p in tools.iterdir() if p.is_file()}
    return call


@pytest.mark.parametrize("programs, reason", [
    ({"podman": None}, "no podman here"),
    ({"id": "#!/bin/sh\necho 1000\n"}, "building without a daemon takes root"),
    ({"podman": FAILS.format("no overlay")}, "podman does not run here: no overlay"),
    ({"podman": NO_BASE, "debootstrap": FAILS.format("E: no mirror")},
     "no Debian 13 to be had by debootstrap: E: no mirror"),
    ({"buildah": FAILS.format("no chroot")}, "buildah cannot build here: no chroot"),
    ({"podman": NO_RUN}, "podman cannot run containers here: runc: not permitted"),
    ({"buildah": NO_BUILD.format("E: Failed to fetch this")}, "Debian's packages are not reached"),
])
def test_images_that_cannot_be_had_are_skipped(prepare, programs, reason):
    done, told = prepare(npm=None, **programs)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SKIPPED: image: {reason}\n" in done.stdout
    assert "SKIPPED: kubernetes: no npm here\n" in done.stdout
    assert told == {"no-image": reason, "no-kubernetes": "no npm here"}


def test_npm_that_is_not_reached_is_named(prepare):
    done, told = prepare(npm=FAILS.format("npm error network: refused"), podman=None)
    assert done.returncode == 0, done.stdout + done.stderr
    assert told["no-kubernetes"] == "npm's registry is not reached: npm error network: refused"


def test_an_image_that_cannot_be_built_is_a_failure(prepare):
    done, told = prepare(npm=None, buildah=NO_BUILD.format("gcc: error"))
    assert done.returncode == 1 and "gcc: error" in done.stderr
    assert "images" not in told


def test_images_that_were_built_are_named(prepare):
    done, told = prepare(npm=None)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no-image" not in told and len(told["images"].splitlines()) == 3
