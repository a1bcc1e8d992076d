"""PostgreSQL with TLS, and where passwords and addresses come from: libpq's own options and files
count, and what is wrong is a matter of configuration, said in clear words."""

import os
import signal

import pytest

from e2e.cases import told
from e2e.told import show_nowhere
from kit.certificates import Authority
from kit.clock import S, boottime_ns, wait_until
from kit.postgres_server import Postgres

SECRET = "hunter2-Zq"
# The superuser, for the tests themselves, gets in as ever.
RULES = {"trust": "host all all all trust\n",
         "scram": "host all super all trust\nhost all all all scram-sha-256\n",
         "tls-scram": "host all super all trust\nhostssl all all all scram-sha-256\n"}


@pytest.fixture
def server(folder, closing):
    """server(tls, rules): with TLS its certificate is for localhost, of an authority of ours."""
    def one(tls, rules="trust"):
        top = folder + ("/tls" if tls else "/plain")
        options = []
        if tls:
            authority = Authority(top + "/certificates")
            shown = authority.issue("server", "DNS:localhost")
            options = ["ssl=on", f"ssl_cert_file={shown.certificate}", f"ssl_key_file={shown.key}"]
        postgres = closing(Postgres(top, options))
        postgres.authority = top + "/certificates/ca.crt"
        postgres.sql(f"ALTER ROLE app PASSWORD '{SECRET}'")
        with open(postgres.data + "/pg_hba.conf", "w", encoding="ascii") as f:
            f.write(RULES[rules])
        postgres.sql("SELECT pg_reload_conf()")
        return postgres
    return one


def write(path, text, mode=0o600):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def refused(pod, *words):
    """It never leads, and it says why: nobody but an operator can mend it."""
    told(pod, reason="store-refused", timeout=30)
    wait_until(lambda: all(w in pod.status()["detail"] for w in words), 30,
               f"{words} in {pod.status()}")
    assert not pod.leads() and not pod.event("state", to="leader")


def test_the_server_is_verified(start, server, folder):
    postgres = server(tls=True)
    full = f"postgres://app@localhost:{postgres.port}/app?sslmode=verify-full&sslrootcert="
    names = [f"{'e' * 80}{i}" for i in range(40)]  # answers that take more than one TLS record
    pod = start("pod-a", "--ttl", "3s", "--mode", "efficiency", store=full + postgres.authority,
                elections=names)
    for name in names:
        pod.wait_leader(60, name)
    tokens = [pod.check(n).token for n in names]
    assert postgres.sql("SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
                        "WHERE usename = 'app'") == "t"
    other = Authority(folder + "/other")
    by_number = full.replace("localhost", "127.0.0.1")
    wrong = {full + other.file: ("certificate verify failed", "sslrootcert"),
             by_number + postgres.authority: ("does not match host name", "connect by"),
             full + folder + "/none.crt": ("does not exist",),
             full.replace("verify-full", "verify") + other.file: ("invalid sslmode value",)}
    pods = [(start(f"wrong-{i}", "--ttl", "1s", store=url, http="off", health="off"), words)
            for i, (url, words) in enumerate(wrong.items())]
    for other_pod, words in pods:
        refused(other_pod, *words)
    until = boottime_ns() + 2 * S
    wait_until(lambda: boottime_ns() > until)
    assert [pod.check(n).token for n in names] == tokens, "nothing was lost in between"


def test_a_server_without_tls_is_refused_where_tls_is_asked_for(start, server, folder):
    postgres = server(tls=False, rules="scram")
    passfile = write(folder + "/pass", f"127.0.0.1:{postgres.port}:app:app:{SECRET}\n")
    url = postgres.url + f"?passfile={passfile}&"
    refused(start("pod-a", "--ttl", "1s", store=url + "sslmode=require"),
            "does not support SSL", "turn ssl on")
    refused(start("pod-b", "--ttl", "1s", store=url + "channel_binding=require"),
            "channel binding", "scram-sha-256")
    assert postgres.locks() == []
    start("pod-c", "--ttl", "1s", store=url + "sslmode=prefer").wait_leader(60)


def test_a_service_with_its_password_from_a_file(start, server, folder):
    postgres = server(tls=True, rules="tls-scram")
    # The password is found by the name that was given, though its address is looked up before.
    passfile = write(folder + "/pass", f"localhost:{postgres.port}:app:app:{SECRET}\n")
    common = (f"host=localhost\nport={postgres.port}\nuser=app\npassfile={passfile}\n"
              f"sslmode=verify-full\nsslrootcert={postgres.authority}\nchannel_binding=require\n")
    services = write(folder + "/services", f"[good]\n{common}dbname=app\n[vague]\n{common}")
    env = {"PGSERVICEFILE": services}
    pod = start("pod-a", "--ttl", "1s", store="postgres:///?service=good", env=env)
    pod.wait_leader(60)
    assert postgres.sql("SELECT count(*) > 0 AND bool_and(ssl) FROM pg_stat_ssl JOIN "
                        "pg_stat_activity USING (pid) WHERE usename = 'app'") == "t"
    vague = start("pod-b", "--ttl", "1s", store="postgres:///?service=vague", env=env)
    refused(vague, "names no database")
    none = start("pod-c", "--ttl", "1s", store="postgres:///?service=none", env=env)
    refused(none, "no such service")
    write(passfile, f"localhost:{postgres.port}:app:app:wrong-Zq-7\n")
    postgres.end_backend(postgres.locks()[0])
    refused_again = wait_until(lambda: "28P01" in pod.log(), 30)
    assert refused_again and not pod.leads()
    pod.signal(signal.SIGHUP)
    show_nowhere(pod, SECRET, "wrong-Zq-7")
    write(passfile, f"localhost:{postgres.port}:app:app:{SECRET}\n")
    pod.wait_leader(60)  # read anew at each attempt
    for one in (pod, vague, none):
        show_nowhere(one, SECRET, "wrong-Zq-7")
