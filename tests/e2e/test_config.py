"""Every option with values that are empty, wrong, overlong and contradictory: all errors at once,
each naming key, value and what would be right, and exit status 78."""

import re

import pytest

from kit.sidecar import GAVEL, run

GOOD = {"store": "redis://127.0.0.1:6379", "election": "a"}
LONG = "x" * 5000

WRONG = {
    "store": ["http://x", "redis://", "redis://h:99999", "redis://h/x", "local:", "nonsense",
              "redis://" + LONG, "redlock:redis://a,redis://b", "redlock:redis://a,b,redis://c",
              "redlock:redis://a,redis://b,redis://a:6379"],
    "election": ["-a", "a b", "ä", "a/b", "x" * 101, "a,,b"],
    "namespace": ["-a", "a b", "x" * 101, "a{b}"],
    "identity": ["a b", "$(HOSTNAME)", "x" * 129, 'a"b', "ä"],
    "ttl": ["10", "299ms", "2h", "-1s", "1e3s", "10 s", LONG, "0s", "99999999999999999999s"],
    "margin": ["10", "1ms", "9s", "x"],
    "wait": ["10", "-5s", "x"],
    "mode": ["fast", "CORRECTNESS", LONG],
    "on-renew-failure": ["panic"],
    "valid-for": ["2", "0s", "x"],
    "drain": ["never", "10", "-1s"],
    "redis-wait-replicas": ["-1", "101", "x", "1.5"],
    "token-floor": ["-1", "x", "1e9", "90000000000001", "99999999999999999999"],
    "require-app": ["yes", "1"],
    "app-timeout": ["5", "99ms", "none"],
    "app-check": ["https://localhost/", "http://example.org/", "localhost:80", "http://[::1"],
    "http": ["4040", "localhost:99999", "localhost:", "example.org:80", ":x", "[::1"],
    "health": ["4041", ":99999", "x"],
    "socket": ["relative/path", "/" + "x" * 107],
    "page-dir": ["relative/path", "OFF"],
    "socket-mode": ["999", "rw", "0o660", "7777777"],
    "redis-wait-replicas": ["-1", "101", "x", "1.5"],
    "tls-ca": ["/nonexistent/ca.pem"],
    "tls-cert": ["/nonexistent/cert.pem"],
    "tls-key": ["/nonexistent/key.pem"],
    "pg-lock": ["row"],
    "pg-pooler": ["transaction"],
    "pg-key": ["x", "7,", "9223372036854775808"],
    "pg-schema": ["x" * 64],
    "pg-token": ["sequence:", "sequence:s", "nextval"],
    "pg-synchronous": ["yes"],
    "log-format": ["xml"],
    "log-level": ["loud"],
}


def config(values, env=None):
    args = [x for k, v in values.items() for x in (f"--{k}", v)]
    return run(GAVEL, "config", *args, env={"XDG_RUNTIME_DIR": "/tmp", **(env or {})})


def errors(done):
    assert done.returncode == 78, (done.returncode, done.stdout[-500:], done.stderr[-2000:])
    return done.stderr


def test_every_option_is_tried_here():
    listed = set(re.findall(r"^  --([a-z-]+)", run(GAVEL, "run", "--help").stdout, re.MULTILINE))
    assert listed - {"help", "version"} == set(WRONG) | {"store-user", "store-password-file"}


@pytest.mark.parametrize("option", sorted(WRONG))
def test_wrong_values(option):
    for value in WRONG[option]:
        text = errors(config({**GOOD, option: value}))
        assert f"--{option}" in text, (value, text)
        if len(value) < 40 and value.isascii():
            assert value in text, (value, text)
        assert len(text) < 4000, "overlong values are not repeated in full"


@pytest.mark.parametrize("option", sorted(WRONG))
def test_wrong_values_in_the_environment(option):
    name = "GAVEL_" + option.upper().replace("-", "_")
    good = {k: v for k, v in GOOD.items() if k != option}
    assert name in errors(config(good, {name: WRONG[option][0]}))


@pytest.mark.parametrize("option", sorted(WRONG))
def test_empty_values(option):
    assert f"--{option}" in errors(config({**GOOD, option: ""}))
    name = "GAVEL_" + option.upper().replace("-", "_")
    good = {k: v for k, v in GOOD.items() if k != option}
    assert name in errors(config(good, {name: ""}))


def test_all_errors_at_once():
    """One wrong value of each option in one command: each is named. Only a right URL says whether
    there is TLS."""
    text = errors(config({k: v[0] for k, v in WRONG.items() if not k.startswith("tls-")}))
    assert [k for k in WRONG if f"--{k}" not in text and not k.startswith("tls-")] == []


@pytest.mark.parametrize("values,keys", [
    ({"ttl": "10s", "margin": "500ms"}, ["margin"]),  # below ttl/10 in correctness
    ({"ttl": "10s", "margin": "9s"}, ["margin"]),
    ({"http": "localhost:4040", "health": "localhost:4040"}, ["http", "health"]),
    ({"http": "off", "health": "off", "socket": "off"}, ["http", "socket"]),
    ({"pg-lock": "session"}, ["pg-lock"]),  # not with Redis
    ({"store": "postgres://h/db", "election": "a,b", "pg-key": "7"}, ["pg-key"]),
    ({"store": "postgres://h/db", "store-user": "x"}, ["store-user"]),
    ({"store": "postgres://h"}, ["store"]),
])
def test_contradictions(values, keys):
    text = errors(config({**GOOD, **values}))
    for key in keys:
        assert f"--{key}" in text, text


def test_a_small_margin_is_accepted_in_efficiency():
    values = {**GOOD, "ttl": "10s", "margin": "500ms", "mode": "efficiency"}
    assert config(values).returncode == 0


def test_missing_options_are_named_together():
    text = errors(config({}))
    assert "--store" in text and "--election" in text


def test_flags_given_twice_and_unknown_ones():
    text = run(GAVEL, "config", "--store", GOOD["store"], "--election", "a", "--ttl", "5s",
               "--ttl", "6s")
    assert text.returncode in (64, 78) and "--ttl" in text.stderr
    unknown = run(GAVEL, "config", "--store", GOOD["store"], "--election", "a", "--tll", "5s")
    assert unknown.returncode == 64 and "--tll" in unknown.stderr and "--ttl" in unknown.stderr


def test_elections_repeat_on_the_command_line_and_are_listed_in_the_environment():
    many = run(GAVEL, "config", "--store", GOOD["store"], "--election", "a", "--election", "b",
               env={"XDG_RUNTIME_DIR": "/tmp"})
    listed = config({"store": GOOD["store"]}, {"GAVEL_ELECTION": "a,b"})
    for done in (many, listed):
        assert done.returncode == 0 and re.search(r"\ba\b.*\bb\b", done.stdout), done.stdout
    assert "--election" in errors(run(GAVEL, "config", "--store", GOOD["store"], "--election",
                                      "a", "--election", "a"))


def test_secrets(folder):
    file = folder + "/password"
    with open(file, "w") as f:
        f.write("from-the-file\n")
    env = {"GAVEL_STORE_PASSWORD": "from-the-env"}
    shown = config(GOOD, env)
    assert shown.returncode == 0 and "from-the-env" not in shown.stdout + shown.stderr
    shown = config(GOOD, {"GAVEL_STORE_PASSWORD_FILE": file})
    assert shown.returncode == 0 and "from-the-file" not in shown.stdout + shown.stderr
    assert file in shown.stdout
    both = errors(config(GOOD, {**env, "GAVEL_STORE_PASSWORD_FILE": file}))
    assert "GAVEL_STORE_PASSWORD" in both and "GAVEL_STORE_PASSWORD_FILE" in both
    missing = errors(config(GOOD, {"GAVEL_STORE_PASSWORD_FILE": folder + "/none"}))
    assert folder + "/none" in missing
    url = config({**GOOD, "store": "redis://user:in-the-url@127.0.0.1:6379"})
    assert "in-the-url" not in url.stdout + url.stderr
    flag = run(GAVEL, "config", "--store", GOOD["store"], "--election", "a", "--store-password",
               "on-the-line")
    assert flag.returncode in (64, 78) and "on-the-line" not in flag.stdout + flag.stderr


def test_the_origin_of_each_value_is_shown():
    shown = config({**GOOD, "ttl": "5s"}, {"GAVEL_MODE": "efficiency", "GAVEL_TTL": "7s"})
    assert shown.returncode == 0
    line = {m.group(1): m.group(0) for m in
            re.finditer(r"^(ttl|mode|drain|margin) .*$", shown.stdout, re.MULTILINE)}
    assert "5s" in line["ttl"] and "--ttl" in line["ttl"]
    assert "efficiency" in line["mode"] and "GAVEL_MODE" in line["mode"]
    assert "10s" in line["drain"] and "1s" in line["margin"]


def test_old_names_are_accepted():
    shown = run(GAVEL, "config", "--store", GOOD["store"], "--election", "a", "--id", "pod-7",
                "--election-namespace", "blue", env={"XDG_RUNTIME_DIR": "/tmp"})
    assert shown.returncode == 0 and "pod-7" in shown.stdout and "blue" in shown.stdout


def test_unknown_variables_are_a_warning_only():
    done = config(GOOD, {"GAVEL_PORT": "tcp://10.0.0.1:80", "GAVEL_TLL": "5s"})
    assert done.returncode == 0
    assert "GAVEL_PORT" in done.stdout + done.stderr


def test_run_refuses_what_config_refuses():
    done = run(GAVEL, "run", "--store", "nonsense", "--election", "-a", "--ttl", "10")
    text = errors(done)
    assert "--store" in text and "--election" in text and "--ttl" in text


def test_a_port_in_use_ends_the_start(start):
    a = start("pod-a")
    done = run(GAVEL, "run", "--store", "redis://127.0.0.1:1", "--election", "a", "--http",
               f"127.0.0.1:{a.http_port}", "--health", "off", "--socket", "off")
    assert done.returncode == 1 and str(a.http_port) in done.stderr


def test_without_a_runtime_directory_the_option_is_named():
    done = run(GAVEL, "config", "--store", GOOD["store"], "--election", "a",
               env={"RUNTIME_DIRECTORY": "relative"})
    assert done.returncode in (0, 78)
    if done.returncode == 78:
        assert "--socket" in done.stderr or "RUNTIME_DIRECTORY" in done.stderr


def test_redlock_errors_name_the_node_and_no_secret_is_shown():
    url = "redlock:redis://u:hunter2@a,rediss://hunter3@b:7000/1,redis+unix://:hunter4@/run/r.sock"
    shown = config({"store": url, "election": "a"})
    assert shown.returncode == 0, shown.stderr
    assert "hunter" not in shown.stdout + shown.stderr
    for part in ("redlock:redis://u:***@a", "@b:7000/1", "/run/r.sock"):
        assert part in shown.stdout, shown.stdout
    wrong = config({"store": url.replace("7000", "70000"), "election": "a"})
    assert "node 2 of redlock" in errors(wrong) and "hunter" not in errors(wrong)
    few = config({"store": "redlock:redis://a,redis://b", "election": "a"})
    assert "at least 3 nodes" in errors(few)
    replicas = config({"store": url, "election": "a", "redis-wait-replicas": "1"})
    assert "--redis-wait-replicas" in errors(replicas)
