"""The clients of all languages, each in a program that takes commands on stdin and says on stdout
what comes of them:

    is_leader -> is_leader true|false        token   -> token N|-
    require   -> require N|not-leader        watch   -> change true N | change false -, at each change
    attach    -> later: revoked N NS         detach  -> detached
    run       -> started N NS; cancelled N NS when it has to stop; then it waits for finish
    finish    -> stopped N NS: work returns; returned, once run() has

NS is CLOCK_BOOTTIME, in hundredths of a second where the language has no such clock.
"""

import os
import shutil
import subprocess
import sys
import threading

from kit.clock import wait_until
from kit.sidecar import BIN, GAVELCTL, LONG, clean_env

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
CLIENTS = os.path.join(HERE, "..", "..", "sidecar", "clients")
BUILT = os.path.join(BIN, "tests", "clients")
# GAVEL_LANGUAGES="go java" runs those alone.
WANTED = tuple(os.environ.get("GAVEL_LANGUAGES", "c python go node java sh").split())
MISSING = {language: f"SKIPPED: {language}: no {program} here (package {package})"
           for language, program, package in (("go", "go", "golang-go"), ("node", "node", "nodejs"),
                                              ("java", "javac", "default-jdk-headless"))
           if language in WANTED and not shutil.which(program)}
LANGUAGES = tuple(x for x in WANTED if x not in MISSING)
# A shell has nothing that runs beside it: what it attaches and runs is `gavelctl exec`.
ATTACHES = tuple(x for x in LANGUAGES if x != "sh")


def make(language, command, **kwargs):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=240, **kwargs)
    assert done.returncode == 0, f"{language}: {' '.join(command)}\n{done.stdout}{done.stderr}"


def go_env():
    return clean_env({
        "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GO111MODULE": "on",
        "GOCACHE": os.path.join(BUILT, "go-cache"), "GOPATH": os.path.join(BUILT, "go-path")})


def build_go():
    """A module of the client and the program, as an application would have it."""
    folder = os.path.join(BUILT, "go")
    os.makedirs(folder + "/gavel", exist_ok=True)
    for name in ("gavel.go", "go.mod"):
        shutil.copy(os.path.join(CLIENTS, "go", name), folder + "/gavel")
    shutil.copy(os.path.join(PROGRAMS, "program.go"), folder)
    with open(folder + "/go.mod", "w") as f:
        f.write("module program\n\ngo 1.19\n\nrequire gavel v0.0.0\n\nreplace gavel => ./gavel\n")
    make("go", ["go", "build", "-o", "program", "."], cwd=folder, env=go_env())
    if LONG:  # it compiles half of the standard library for that
        make("go", ["go", "vet", ".", "gavel"], cwd=folder, env=go_env())


def build_java():
    folder = os.path.join(BUILT, "java")
    os.makedirs(folder, exist_ok=True)
    make("java", ["javac", "-Xlint:all", "-Werror", "-d", folder, "--release", "17",
                   os.path.join(CLIENTS, "java", "Gavel.java"),
                   os.path.join(PROGRAMS, "Program.java")])


COMMANDS = {
    "c": [os.path.join(BUILT, "client_program")],
    "python": [sys.executable, os.path.join(PROGRAMS, "program.py")],
    "go": [os.path.join(BUILT, "go", "program")],
    "node": ["node", os.path.join(PROGRAMS, "program.mjs")],
    "java": ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp",
             os.path.join(BUILT, "java"), "Program"],
    "sh": ["sh", os.path.join(PROGRAMS, "program.sh")],
}


class Program:
    def __init__(self, language, socket_path, election="", env=()):
        self.language = language
        self.heard = []
        self.process = subprocess.Popen(
            [*COMMANDS[language], socket_path, election], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
            env=clean_env({"GAVEL_CLIENTS": CLIENTS, "GAVELCTL": GAVELCTL, **dict(env)}))
        self.errors = []
        self._threads = [threading.Thread(target=self._read, args=pair, daemon=True)
                         for pair in ((self.process.stdout, self.heard),
                                      (self.process.stderr, self.errors))]
        for thread in self._threads:
            thread.start()

    def _read(self, stream, lines):
        for line in stream:
            lines.append(line.split())

    def tell(self, verb):
        self.process.stdin.write(verb + "\n")
        self.process.stdin.flush()

    def all(self, word):
        return [w for w in list(self.heard) if w[0] == word]

    def wait_for(self, *words, timeout=60.0, count=1):
        """The last line that begins with these words, once there are so many."""
        def found():
            assert self.process.poll() is None, f"{self.language} ended: {self.errors}"
            lines = [w for w in list(self.heard) if w[:len(words)] == list(words)]
            return lines if len(lines) >= count else None
        try:
            return wait_until(found, timeout, f"{self.language} says {' '.join(words)}")[-1]
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.heard[-20:]}\n{self.errors[-20:]}") from None

    def ask(self, verb, timeout=60.0):
        count = len(self.all(verb))
        self.tell(verb)
        return self.wait_for(verb, timeout=timeout, count=count + 1)[1]

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive(), f"{self.language}: something of it has been left running"
        self.process.stdout.close()
        self.process.stderr.close()
        # A shell tells of what it was ended with.
        errors = [e for e in self.errors if e != ["Terminated"]]
        assert not errors, f"{self.language}: {errors}"
