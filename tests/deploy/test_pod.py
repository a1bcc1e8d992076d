"""The rendered manifest as pods: `podman kube play` of the overlay with two plain containers (podman
knows no native sidecars), two pods against one Redis.

What is changed in it: image names, the store's address, and what podman 4.3 does not have: the field
metadata.namespace, probes that are asked from outside, volumes and Secrets of a pod's own, and an end
after which it does not start a container again. In the place of
fsGroup the folder and the application have that group. Its volumes hold a Secret's text undecoded.
"""

import copy
import datetime
import http.client
import json
import os
import re

import pytest
import yaml

from deploy import containers, strict
from deploy.containers import BRIDGE, inspect, podman, process_of
from e2e.conftest import *  # noqa: F401,F403 pylint: disable=wildcard-import,unused-wildcard-import
from kit.clock import wait_until
from kit.redis_server import Redis

WHY_NOT = containers.why_not() or strict.why_not()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
PASSWORD, ENCODED = "secret", "c2VjcmV0"


def adapted(spec, name, store):
    gavel_image, app_image = containers.images()
    spec = copy.deepcopy(spec)
    spec["restartPolicy"] = "Never"
    folder = f"run-{name}"
    for volume in spec["volumes"]:
        volume["name"] = folder if volume["name"] == "gavel" else volume["name"]
        if "secret" in volume:
            volume["secret"]["secretName"] = f"store-{name}"
    for container in spec["containers"]:
        for mount in container["volumeMounts"]:
            mount["name"] = folder if mount["name"] == "gavel" else mount["name"]
        if container["name"] == "gavel":
            container["image"] = gavel_image
            for entry in container["env"]:
                if entry["name"] == "GAVEL_NAMESPACE":
                    entry.pop("valueFrom")
                    entry["value"] = "default"
                if entry["name"] == "GAVEL_STORE":
                    entry["value"] = store
            for key in ("ports", "livenessProbe", "startupProbe"):
                container.pop(key)
        else:
            container["image"] = app_image
            container["env"] = [{"name": "EVERY_S", "value": "0.05"}]
            container["securityContext"]["runAsGroup"] = spec["securityContext"]["fsGroup"]
    return spec


class Pod:
    def __init__(self, folder, name, template, store):
        self.name = name
        self.folder = f"run-{name}"
        # As the kubelet makes an emptyDir in memory with an fsGroup.
        podman("volume", "create", "--opt", "type=tmpfs", "--opt", "device=tmpfs", "--opt",
               "o=uid=0,gid=65532,mode=2777", self.folder)
        objects = [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"store-{name}"},
             "data": {"password": ENCODED}},
            {"apiVersion": "v1", "kind": "Pod",
             "metadata": {"name": name, "labels": template["metadata"]["labels"]},
             "spec": adapted(template["spec"], name, store)}]
        path = os.path.join(folder, name + ".yaml")
        with open(path, "w", encoding="utf-8") as f:
            yaml.safe_dump_all(objects, f)
        podman("kube", "play", path)
        self.gone = False

    def check(self):
        """(leads, token)"""
        done = podman("exec", f"{self.name}-gavel", "/usr/bin/gavel", "check", check=False)
        words = done.stdout.decode().split()
        return (True, int(words[1])) if done.returncode == 0 else (False, 0)

    def leads(self):
        return not self.gone and self.check()[0]

    def address(self):
        infra = inspect("pod", self.name)["InfraContainerID"]
        networks = inspect("container", infra)["NetworkSettings"]["Networks"]
        return next(iter(networks.values()))["IPAddress"]

    def get(self, path, port=4041):
        connection = http.client.HTTPConnection(self.address(), port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()

    def when(self, event, **fields):
        """The time of the last such event of the sidecar, in seconds."""
        done = podman("logs", f"{self.name}-gavel")
        events = [json.loads(line) for line in (done.stdout + done.stderr).splitlines()]
        (*_, last) = [e for e in events if e["event"] == event
                      and all(e.get(k) == v for k, v in fields.items())]
        return datetime.datetime.fromisoformat(last["time"].replace("Z", "+00:00")).timestamp()

    def app_log(self):
        done = podman("logs", f"{self.name}-app", check=False)
        return (done.stdout + done.stderr).decode()

    def tokens(self):
        return [int(t) for t in re.findall(r"would write token (\d+)", self.app_log())]

    def delete(self):
        """As the kubelet does: one SIGTERM to each container, time to end, then the network goes.
        (`podman pod stop` takes the network away before, and `podman stop` may signal twice.)"""
        both = [f"{self.name}-app", f"{self.name}-gavel"]
        podman("kill", "--signal", "TERM", *both)
        podman("wait", *both)
        self.gone = True

    def close(self):
        podman("pod", "rm", "-f", "-t", "0", self.name, check=False)
        podman("volume", "rm", "-f", self.folder, f"store-{self.name}", check=False)
        podman("secret", "rm", f"store-{self.name}", check=False)


def assert_confined(pod):
    for container, user in (("gavel", 65532), ("app", 10001)):
        with open(f"/proc/{process_of(f'{pod.name}-{container}')}/status", encoding="utf-8") as f:
            status = f.read()
        assert re.search(rf"^Uid:\s{user}\s", status, re.M)
        assert re.search(r"^CapEff:\s0+$", status, re.M)
        assert re.search(r"^NoNewPrivs:\s1$", status, re.M)
        assert inspect("container", f"{pod.name}-{container}")["HostConfig"]["ReadonlyRootfs"]


@pytest.fixture
def template():
    (deployment,) = [o for o in strict.render("overlays/two-containers")
                     if o["kind"] == "Deployment"]
    return deployment["spec"]["template"]


@pytest.fixture
def store(folder, closing):
    redis = closing(Redis(folder + "/redis", ["--bind", "0.0.0.0", "--protected-mode", "no"]))
    redis.cli("ACL", "SETUSER", "default", "on", ">" + PASSWORD, ">" + ENCODED)
    return f"redis://{BRIDGE}:{redis.port}"


def test_two_pods_and_a_rolling_replacement(folder, closing, template, store):
    unique = os.getpid()
    pods = [closing(Pod(folder, f"app-{unique}-{i}", template, store)) for i in "ab"]
    leader = wait_until(lambda: next((p for p in pods if p.leads()), None), 60, "one leads")
    other = next(p for p in pods if p is not leader)

    # Application and sidecar are different users; the socket is shared, the page too.
    users = {c: inspect("container", f"{leader.name}-{c}")["Config"]["User"]
             for c in ("gavel", "app")}
    assert users["gavel"].startswith("65532") and users["app"].startswith("10001")
    assert_confined(leader)
    wait_until(lambda: len(leader.tokens()) > 3, 30, "the application acts")
    assert not set(leader.tokens()) & set(other.tokens())

    # Probes come from outside; the application's HTTP does not listen there.
    for pod in pods:
        assert pod.get("/livez") == 200 and pod.get("/readyz") == 200
        assert pod.get("/leader") in (200, 503)
        with pytest.raises(OSError):
            pod.get("/v1/leader", port=4040)

    # The leader's pod is deleted: its sidecar drains, gives the lock away, and the other leads.
    if not leader.leads():  # the machine was so busy that it lost its lease
        leader, other = other, leader
    first = max(leader.tokens())
    leader.delete()
    wait_until(other.leads, 60, "the other leads")
    second = other.check()[1]
    gap_s = other.when("state", to="leader") - leader.when("draining")
    print(f"pod: handed over {gap_s:.1f} s after SIGTERM, answers being valid for 2 s")
    assert second > first
    wait_until(lambda: second in other.tokens(), 30, "the other application acts")
    # Nothing was done with one token by two, and all that the first one did came before.
    assert not set(leader.tokens()) & set(other.tokens())
    assert max(leader.tokens()) < second
    # Given away, and not left to run out.
    assert leader.when("state", **{"from": "resigning", "to": "follower", "reason": "draining"}) > 0

    # A third one takes its place before the second goes, as a rolling update does.
    third = closing(Pod(folder, f"app-{unique}-c", template, store))
    wait_until(lambda: third.get("/readyz") == 200, 60, "the third is ready")
    other.delete()
    wait_until(third.leads, 60, "the third leads")
    assert third.check()[1] > second
