"""Redis over TLS: who is trusted, what is told when nobody is, and that nothing leaves in the clear."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

import pytest

from kit.certificates import Authority
from kit.clock import wait_until
from kit.ports import free_port
from kit.sentinel import MASTER, Sentinel
from kit.sidecar import GAVEL, run
from kit.tls_redis import TlsRedis

FAST = ("--ttl", "1s", "--mode", "efficiency")


@pytest.fixture(scope="module")
def made():
    """All certificates, once."""
    folder = tempfile.mkdtemp(prefix="gv-crt-")
    made = Authority(folder + "/one")
    made.server = made.issue("server")
    made.named = made.issue("named", "DNS:localhost,DNS:redis.example")
    made.expired = made.issue("expired", days=-1)
    made.client = made.issue("client", "DNS:client")
    made.other = Authority(folder + "/two", "other-ca")
    made.other_server = made.other.issue("server")
    made.other_client = made.other.issue("client", "DNS:client")
    yield made
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def redis(folder, closing, made):
    return closing(TlsRedis(folder + "/redis", made, made.server))


def trouble(sidecar, *words, timeout=20):
    """The log tells of trouble with the store, in these words."""
    def told():
        texts = [e["why"] for e in sidecar.event("store-connect-failed")] + \
                [e["problem"] for e in sidecar.event("store")]
        return next((t for t in texts if all(w in t for w in words)), None)
    try:
        return wait_until(told, timeout)
    except AssertionError:
        raise AssertionError(f"{words} not in:\n{sidecar.log()}") from None


def test_it_leads_and_hands_over(redis, start, made):
    options = (*FAST, "--tls-ca", made.file)
    a = start("pod-a", *options)
    token = a.wait_leader().token
    b = start("pod-b", *options)
    b.wait_state("follower")
    clients = redis.cli("CLIENT", "LIST")
    assert len(re.findall(rf"laddr=127\.0\.0\.1:{redis.tls_port} ", clients)) == 4, clients
    assert a.stop() == 0
    assert b.wait_leader().token > token
    assert b.stop() == 0


@pytest.mark.parametrize("protocol", ["TLSv1.2", "TLSv1.3"])
def test_client_certificates(redis, start, made, protocol):
    redis.cli("CONFIG", "SET", "tls-protocols", protocol)
    redis.cli("CONFIG", "SET", "tls-auth-clients", "yes")

    def client(identity, certificate):
        return start(identity, *FAST, "--tls-ca", made.file, "--tls-cert",
                     certificate.certificate, "--tls-key", certificate.key)
    known = client("known", made.client)
    known.wait_leader()
    stranger = client("stranger", made.other_client)
    nobody = start("nobody", *FAST, "--tls-ca", made.file)
    assert re.search("refused the client certificate|does it take our certificate",
                     trouble(stranger, "certificate"))
    trouble(nobody, "--tls-cert and --tls-key")
    assert stranger.state() == "unknown" and nobody.state() == "unknown"


def test_names_and_chains(redis, start, made):
    by_name = start("by-name", *FAST, "--tls-ca", made.file,
                    store=f"rediss://localhost:{redis.tls_port}")
    trouble(by_name, "not for localhost")
    unknown = start("unknown", *FAST)  # the system's CAs do not know ours
    trouble(unknown, "not trusted", "--tls-ca")
    redis.show(made.expired)
    expired = start("expired", *FAST, "--tls-ca", made.file)
    trouble(expired, "expired")
    for sidecar in (by_name, unknown, expired):
        assert sidecar.state() == "unknown" and sidecar.probe("/livez").status == 200
    redis.show(made.named)  # all of them go on trying
    by_name.wait_leader(5)
    trouble(expired, "not for 127.0.0.1")


def test_the_systems_cas_may_be_others(redis, start, made):
    a = start("pod-a", *FAST, env={"SSL_CERT_FILE": made.file})
    a.wait_leader()


def test_a_leader_whose_store_is_not_trusted_any_more_leads_to_its_deadline(redis, start, made):
    a = start("pod-a", *FAST, "--tls-ca", made.file)
    token = a.wait_leader().token
    redis.show(made.other_server)
    redis.hang_up()
    trouble(a, "not trusted")
    wait_until(lambda: a.event("state", **{"from": "leader", "to": "unknown"}), 20)
    assert not a.check().leader
    redis.show(made.server)
    assert a.wait_leader(20).token > token


def test_without_tls_the_library_is_left_alone(redis, folder, start):
    """Its first use would read this, and wait for somebody to write it."""
    os.mkfifo(folder + "/openssl.cnf")
    a = start("pod-a", *FAST, store=f"redis://127.0.0.1:{redis.port}",
              env={"OPENSSL_CONF": folder + "/openssl.cnf"})
    a.wait_leader()


class Peer:
    """Takes connections, keeps what comes, and answers each with the same bytes."""

    def __init__(self, answer=b""):
        self.answer = answer
        self.came = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            while data := client.recv(65536):
                self.came.append(data)
                client.sendall(self.answer)
        except OSError:
            pass

    def close(self):
        for end in (self._listener, *self._open):
            end.close()


@pytest.mark.parametrize("answer,words", [
    (b"", "no TLS handshake in time"),
    (b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03", "no TLS handshake in time"),
    (b"-ERR unknown command\r\n", "no TLS is spoken there"),
    (bytes(range(256)), "no TLS is spoken there"),
])
def test_nothing_leaves_in_the_clear(start, closing, made, answer, words):
    peer = closing(Peer(answer))
    a = start("pod-a", *FAST, "--tls-ca", made.file, store=f"rediss://127.0.0.1:{peer.port}",
              env={"GAVEL_STORE_PASSWORD": "clear-secret"})
    trouble(a, words)
    assert peer.came and all(data[:2] == b"\x16\x03" or data[:2] == b"\x15\x03"
                             for data in peer.came)
    assert b"clear-secret" not in b"".join(peer.came)


def test_the_other_kind_of_port(redis, start, made):
    plain = start("pod-a", *FAST, store=f"redis://127.0.0.1:{redis.tls_port}")
    trouble(plain, "rediss://")
    tls = start("pod-b", *FAST, "--tls-ca", made.file, store=f"rediss://127.0.0.1:{redis.port}")
    trouble(tls, "TLS")


def test_files_are_read_again_on_sighup(redis, folder, start, made):
    ca = folder + "/ca.pem"
    shutil.copy(made.file, ca)
    # A ttl beside which all of this is short.
    a = start("pod-a", "--ttl", "30s", "--mode", "efficiency", "--tls-ca", ca)
    token = a.wait_leader().token

    def reconnects():
        return a.metrics()["gavel_store_reconnects_total"]

    def connects_again(do):
        before = reconnects()
        do()
        wait_until(lambda: reconnects() > before, 20, "it connects again")

    def read_again():
        shutil.copy(made.other.file, ca)
        a.signal(signal.SIGHUP)
        wait_until(lambda: a.event("reloaded", what="TLS files"), 5)
    redis.show(made.other_server)
    redis.hang_up()
    trouble(a, "not trusted")
    connects_again(read_again)
    with open(ca, "w") as f:
        f.write("nonsense")
    a.signal(signal.SIGHUP)
    failed = wait_until(lambda: a.event("reload-failed"), 5)[0]
    assert "--tls-ca" in failed["error"] and ca in failed["error"]
    connects_again(redis.hang_up)  # with what was read before
    assert a.check().token == token
    assert a.stop() == 0


def test_sentinels_and_their_master(redis, folder, closing, start, made):
    port = free_port()
    sentinel = closing(Sentinel(folder + "/sentinel", redis.tls_port, lines=[
        f"tls-port {port}", f"tls-cert-file {made.server.certificate}",
        f"tls-key-file {made.server.key}", f"tls-ca-cert-file {made.file}",
        "tls-auth-clients no", "tls-replication yes"]))
    wait_until(lambda: sentinel.details()["flags"] == "master", 20, "it sees the master")
    a = start("pod-a", *FAST, "--tls-ca", made.file,
              store=f"rediss+sentinel://127.0.0.1:{port}/{MASTER}")
    a.wait_leader()
    b = start("pod-b", *FAST, store=f"rediss+sentinel://127.0.0.1:{port}/{MASTER}")
    trouble(b, "not trusted")
    assert a.stop() == 0


def config(made, *options, store="rediss://h", env=None):
    return run(GAVEL, "config", "--store", store, "--election", "a", *options,
               env={"XDG_RUNTIME_DIR": "/tmp", **(env or {})})


def test_files_that_are_wrong_are_configuration_errors(folder, made):
    key = folder + "/encrypted.key"
    subprocess.run(["openssl", "pkey", "-in", made.client.key, "-aes256", "-passout", "pass:secret",
                    "-out", key], check=True, capture_output=True)
    certificate = made.client.certificate
    for options, words in [
            (("--tls-ca", "/nonexistent/ca.pem"), ("--tls-ca", "/nonexistent/ca.pem", "No such")),
            (("--tls-ca", made.client.key), ("--tls-ca", made.client.key, "no certificate")),
            (("--tls-cert", certificate, "--tls-key", key), ("--tls-key", key, "encrypted")),
            (("--tls-cert", certificate, "--tls-key", made.server.key),
             ("--tls-key", made.server.key, "does not belong")),
            (("--tls-cert", certificate), ("--tls-cert", "--tls-key")),
            (("--tls-key", key), ("--tls-key", "--tls-cert"))]:
        done = config(made, *options)
        assert done.returncode == 78 and all(w in done.stderr for w in words), done.stderr
    done = run(GAVEL, "run", "--store", "rediss://h", "--election", "a", "--socket", "off",
               "--tls-ca", key)
    assert done.returncode == 78 and "--tls-ca" in done.stderr
    done = config(made, "--tls-ca", made.file, store="redis://h")
    assert done.returncode == 78 and "--tls-ca" in done.stderr and "rediss://" in done.stderr


def test_files_are_shown_and_an_open_key_is_a_warning(folder, made):
    key = folder + "/client.key"
    shutil.copy(made.client.key, key)
    os.chmod(key, 0o640)
    env = {"GAVEL_TLS_CERT": made.client.certificate, "GAVEL_TLS_KEY": key}
    done = config(made, "--tls-ca", made.file, env=env)
    assert done.returncode == 0
    for option, path in (("tls-ca", made.file), ("tls-cert", made.client.certificate),
                         ("tls-key", key)):
        assert re.search(rf"^{option} +{re.escape(path)} ", done.stdout, re.MULTILINE)
    assert "--tls-key" in done.stderr and key in done.stderr and "warning" in done.stderr
    assert "PRIVATE KEY" not in done.stdout + done.stderr
    os.chmod(key, 0o600)
    assert config(made, env=env).stderr == ""
