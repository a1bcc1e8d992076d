"""What sidecar/clients/README.md shows is what runs here: each block is a file, word for word."""

import glob
import os
import re
import shutil
import subprocess
import sys

import pytest

from clients.languages import BUILT, CLIENTS, MISSING, WANTED, make, go_env
from kit.clock import wait_until
from kit.pg_wire import PgWire
from kit.readme import README
from kit.sidecar import BIN, GAVELCTL, clean_env

BLOCK = re.compile(r"(?:<!-- file: (\S+) -->\n)?```\w*\n(.*?)```", re.DOTALL)


def read(name):
    with open(os.path.join(CLIENTS, name), encoding="utf-8") as f:
        return f.read()


def test_each_block_is_its_file():
    shown = BLOCK.findall(read("README.md"))
    for name, text in shown:
        assert name and text == read(name), f"{name}:\n{text}"
    examples = {os.path.relpath(p, CLIENTS) for x in ("*/[eE]xample*.*", "go/example/*.go")
                for p in glob.glob(os.path.join(CLIENTS, x))}
    assert examples <= {name for name, _ in shown}
    assert {"guards/one_transaction.sql", "guards/version_column.sql"} <= {n for n, _ in shown}


def test_the_main_readme_shows_the_same():
    with open(README, encoding="utf-8") as f:
        text = f.read()
    shown = re.findall(r"<!-- file: (\S+) -->\n```\w*\n(.*?)```", text, re.DOTALL)
    assert shown and all(text == read(name) for name, text in shown), shown
    # The rule is the same, in the same words, wherever it is told.
    rule = "A yes is good for the answer's VALID_MS, counted from before the question was sent, less"
    told = ["README.md", "python/gavel.py", "go/gavel.go", "node/gavel.mjs", "java/Gavel.java", "c/gavel.h"]
    for place in [text, *map(read, told)]:
        assert rule in re.sub(r"\s+(// |\* )?", " ", place)
    # Every file that it names is there to be taken.
    section = text.split("## Clients and guards")[1].split("\n## ")[0]
    named = [x for x in re.findall(r"`([\w/]+\.\w+)`", section)]
    assert len(named) >= 11
    for name in named:
        assert any(os.path.exists(os.path.join(CLIENTS, at, name)) for at in ("", "guards")), name


def copied(folder, language):
    """The folder of a language, as it was taken home."""
    to = os.path.join(folder, language)
    shutil.copytree(os.path.join(CLIENTS, language), to)
    return to


def c(folder):
    """Installed, and found by pkg-config."""
    prefix = folder + "/prefix"
    make("c", ["cmake", "--install", BIN, "--prefix", prefix])
    found = glob.glob(prefix + "/lib*/**/pkgconfig/gavel.pc", recursive=True)
    env = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(found[0])}
    assert os.path.exists(prefix + "/include/gavel.h")
    assert os.path.exists(prefix + "/include/gavel_page.h")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "gavel"], env=env, check=True,
                           capture_output=True, text=True).stdout.split()
    program = copied(folder, "c") + "/program"
    make("c", ["cc", "-Wall", "-Wextra", "-Werror", os.path.join(folder, "c", "example.c"), "-o",
                program, *flags])
    # The headers are C++ too.
    make("c", ["c++", "-x", "c++", "-fsyntax-only", *[f for f in flags if f.startswith("-I")],
                os.path.join(folder, "c", "example.c")]) if shutil.which("c++") else None
    return [[program]]


def go(folder):
    to = copied(folder, "go")
    make("go", ["go", "build", "-o", "program", "./example"], cwd=to, env=go_env())
    programs = [[to + "/program"]]
    # In an application's own module, as the README says: with the client's go.mod, and without.
    edit = re.search(r"`(go mod edit [^`]+)`", read("README.md"))[1].split()
    for name, own in (("with", True), ("without", False)):
        app = f"{folder}/{name}"
        os.makedirs(app + "/gavel")
        for x in ("gavel.go", "go.mod")[:1 + own]:
            shutil.copy(f"{to}/{x}", app + "/gavel")
        text = read("go/example/main.go")
        with open(app + "/main.go", "w", encoding="utf-8") as f:
            f.write(text if own else text.replace('"gavel"', '"yourmodule/gavel"'))
        env = {**go_env(), "GOFLAGS": ""}
        make("go", ["go", "mod", "init", "yourmodule"], cwd=app, env=env)
        if own:
            make("go", edit, cwd=app, env=env)
        make("go", ["go", "build", "-o", "program", "."], cwd=app, env=env)
        programs.append([app + "/program"])
    return programs


def java(folder):
    to = copied(folder, "java")
    make("java", ["javac", "-d", to, to + "/Gavel.java", to + "/Example.java"])
    return [["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", to, "Example"]]


PROGRAMS = {
    "c": c, "go": go, "java": java,
    "python": lambda folder: [[sys.executable, copied(folder, "python") + "/example.py"],
                              [sys.executable, folder + "/python/example_run.py"]],
    "node": lambda folder: [["node", copied(folder, "node") + "/example.mjs"]],
    "sh": lambda folder: [["sh", copied(folder, "sh") + "/example.sh"]],
}


@pytest.mark.parametrize("language", WANTED)
def test_the_example(language, start, folder):
    if language in MISSING:
        pytest.skip(MISSING[language])
    os.makedirs(BUILT, exist_ok=True)
    os.mkdir(folder + "/state")
    programs = PROGRAMS[language](folder)

    def said(sidecar, command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, cwd=os.path.join(folder, language),
                              env=clean_env({"GAVEL_SOCKET": sidecar.socket_path,
                                             "GAVELCTL": GAVELCTL}))
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout
    options = ("--ttl", "30s", "--mode", "efficiency")
    pods = [start(f"pod-{x}", *options, store=f"local:{folder}/state") for x in "a"]
    token = pods[0].wait_leader().token
    pods.append(start("pod-b", *options, store=f"local:{folder}/state"))
    for command in programs:
        assert said(pods[0], command) == (0, f"write with {token}\n"), command
    assert said(pods[1], programs[0])[1] == ""


def test_one_transaction(postgres):
    postgres.sql("CREATE TABLE job (id int PRIMARY KEY, done_at timestamptz)")
    postgres.sql("CREATE TABLE outbox (job_id int)")
    postgres.sql("INSERT INTO job SELECT generate_series(1, 3)")
    text = read("guards/one_transaction.sql")
    workers = [PgWire(postgres.port, "super", "app") for _ in range(2)]
    begun, rest = text.split("COMMIT;", 1)[0], "COMMIT;"
    # Both are in the middle of it at the same time: each has a job of its own.
    for worker in workers:
        worker.ask(begun)
    for worker in workers:
        worker.ask(rest)
    assert postgres.sql("SELECT job_id FROM outbox ORDER BY job_id") == "1\n2"
    # One that ends in the middle has done nothing.
    workers[0].ask(begun)
    workers[0].close()
    # Its end is seen by the server in its own time.
    wait_until(lambda: workers[1].ask(text) or postgres.sql("SELECT count(*) FROM outbox") == "3")
    workers[1].ask(text)
    assert postgres.sql("SELECT job_id FROM outbox ORDER BY job_id") == "1\n2\n3"
    workers[1].close()


def test_the_version_column(postgres):
    postgres.sql("CREATE TABLE account (id int PRIMARY KEY, balance int, version int)")
    postgres.sql("INSERT INTO account VALUES (1, 100, 1)")
    session = PgWire(postgres.port, "super", "app")

    def write(balance, version):
        text = read("guards/version_column.sql")
        for name, value in ((":balance", balance), (":id", 1), (":version", version)):
            text = text.replace(name, str(value))
        return session.ask(text)
    assert write(150, 1) == "2"
    assert write(90, 1) is None  # was read before the other wrote
    assert write(140, 2) == "3"
    assert session.ask("SELECT balance FROM account") == "140"
    session.close()
