"""The Kubernetes manifests: rendered, held against the API's types, and against what they promise."""

import copy
import os
import re
import shutil
import subprocess

import pytest
import yaml

from deploy import strict
from kit.readme import ROOT, commands
from kit.sidecar import GAVEL, run

OVERLAYS = sorted(os.listdir(os.path.join(strict.KUSTOMIZE, "overlays")))
pytestmark = pytest.mark.skipif(strict.why_not() is not None, reason=str(strict.why_not()))


@pytest.fixture(scope="module")
def rendered():
    return {name: strict.render("overlays/" + name) for name in OVERLAYS}


def pod_of(objects):
    (deployment,) = [o for o in objects if o["kind"] == "Deployment"]
    return deployment["spec"]["template"]["spec"]


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def gavel_of(objects):
    (found,) = [c for c in containers(pod_of(objects)) if c["name"] == "gavel"]
    return found


def environment(objects):
    """What the sidecar is given; fields of the pod as Kubernetes would fill them in."""
    return {e["name"]: e.get("value", "pod-1") for e in gavel_of(objects)["env"]}


def test_the_overlays_are_those_that_are_described():
    assert OVERLAYS == ["podmonitor", "postgres", "redis", "redlock", "two-containers"]


def test_all_keys_and_types_are_those_of_the_api(rendered, tmp_path):
    objects = [o for name in OVERLAYS for o in rendered[name]]
    assert {o["kind"] for o in objects} == {"Deployment", "NetworkPolicy", "PodMonitor"}
    assert strict.problems(objects, str(tmp_path)) == []


def misspelt(deployment):
    gavel = deployment["spec"]["template"]["spec"]["initContainers"][0]
    gavel["livenesProbe"] = gavel.pop("livenessProbe")


def wrong_type(deployment):
    deployment["spec"]["replicas"] = "3"


def wrong_place(deployment):
    deployment["spec"]["enableServiceLinks"] = False


@pytest.mark.parametrize("spoil, word", [(misspelt, "livenesProbe"), (wrong_type, "number"),
                                         (wrong_place, "enableServiceLinks")])
def test_the_check_finds_what_is_wrong(rendered, tmp_path, spoil, word):
    deployment = copy.deepcopy(next(o for o in rendered["redis"] if o["kind"] == "Deployment"))
    spoil(deployment)
    found = strict.problems([deployment], str(tmp_path))
    assert len(found) == 1 and word in found[0], found


@pytest.mark.parametrize("name", OVERLAYS)
def test_pods_meet_the_restricted_standard(rendered, name):
    pod = pod_of(rendered[name])
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & set(pod)
    assert {tuple(set(v) - {"name"})[0] for v in pod["volumes"]} <= {"emptyDir", "secret"}
    for container in containers(pod):
        context = container["securityContext"]
        assert context["runAsUser"] > 0 and context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not {"privileged", "hostPort"} & set(context)
    users = [c["securityContext"]["runAsUser"] for c in containers(pod)]
    assert len(users) == len(set(users)) == 2


@pytest.mark.parametrize("name", OVERLAYS)
def test_probes_and_limits_are_those_of_a_sidecar(rendered, name):
    gavel = gavel_of(rendered[name])
    assert gavel["startupProbe"]["httpGet"] == {"path": "/readyz", "port": 4041}
    assert gavel["livenessProbe"]["httpGet"] == {"path": "/livez", "port": 4041}
    assert "readinessProbe" not in gavel
    assert "cpu" not in gavel["resources"]["limits"] and gavel["resources"]["limits"]["memory"]
    assert {"cpu", "memory"} == set(gavel["resources"]["requests"])
    assert all("secret" not in str(e.get("valueFrom")) for e in gavel["env"])
    fields = {e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"]
              for e in gavel["env"] if "valueFrom" in e}
    assert fields == {"GAVEL_IDENTITY": "metadata.name", "GAVEL_NAMESPACE": "metadata.namespace"}


def test_native_sidecars_release_at_once_and_plain_ones_drain(rendered):
    for name in OVERLAYS:
        pod, gavel = pod_of(rendered[name]), gavel_of(rendered[name])
        if name == "two-containers":
            assert "initContainers" not in pod and [c["name"] for c in pod["containers"]] == \
                ["gavel", "app"]
            drain = int(re.fullmatch(r"(\d+)s", gavel["args"][2]).group(1))
            assert drain < pod["terminationGracePeriodSeconds"]
            assert gavel["lifecycle"]["postStart"]["exec"]["command"][:4] == \
                ["/usr/bin/gavel", "wait", "--for", "ready"]
            assert "restartPolicy" not in gavel
        else:
            assert gavel["restartPolicy"] == "Always" and gavel in pod["initContainers"]
            assert gavel["args"] == ["run", "--drain", "none"] and "lifecycle" not in gavel


@pytest.mark.parametrize("name", OVERLAYS)
def test_gavel_accepts_the_configuration(rendered, name, tmp_path):
    given = environment(rendered[name])
    if "redlock:" in given.get("GAVEL_STORE", "") and \
            "redlock:" not in run(GAVEL, "run", "--help").stdout:
        pytest.skip("this gavel has no redlock")
    for variable in [v for v in given if v.endswith("_FILE")]:
        path = tmp_path / variable
        path.write_text("postgres://app:secret@postgres/app\n" if "url" in given[variable]
                        else "secret\n")
        given[variable] = str(path)
    done = run(GAVEL, "config", *gavel_of(rendered[name])["args"][1:],
               env={**given, "RUNTIME_DIRECTORY": str(tmp_path)})
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    assert "secret" not in done.stdout


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_network_policy_lets_the_store_and_metrics_through(rendered, name):
    (policy,) = [o for o in rendered[name] if o["kind"] == "NetworkPolicy"]
    spec = policy["spec"]
    ports = {p["port"] for rule in spec["egress"] for p in rule["ports"]}
    assert ports == {53, 5432 if name == "postgres" else 6379}
    let_in = [p["port"] for rule in spec["ingress"] for p in rule["ports"]]
    assert let_in == [8080, 4041] and "from" not in spec["ingress"][0]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    labels = next(o for o in rendered[name] if o["kind"] == "Deployment")
    assert spec["podSelector"]["matchLabels"] == labels["spec"]["template"]["metadata"]["labels"]


def test_the_pod_monitor_finds_the_pods(rendered):
    (monitor,) = [o for o in rendered["podmonitor"] if o["kind"] == "PodMonitor"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= {
        "app.kubernetes.io/name": "app"}.items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in [p["name"] for p in gavel_of(rendered["podmonitor"])["ports"]]


def test_the_image_s_version_is_the_project_s(rendered):
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
        version = re.search(r"project\(gavel VERSION (\S+)", f.read()).group(1)
    assert {gavel_of(rendered[name])["image"] for name in OVERLAYS} == {"gavel:" + version}


def test_an_overlay_of_one_s_own_as_the_readme_shows_it(tmp_path):
    (text,) = [t for kind, t in commands() if kind == "kubernetes"]
    shutil.copytree(strict.KUSTOMIZE, tmp_path / "deploy" / "kubernetes")
    done = subprocess.run(["sh", "-eu", "-c", text], cwd=tmp_path, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=60,
                          env={**os.environ, "PATH": strict.TOOLS + ":" + os.environ["PATH"]})
    assert done.returncode == 0 and not done.stderr, done.stderr
    objects = [o for o in yaml.safe_load_all(done.stdout) if o]
    assert strict.problems(objects, str(tmp_path)) == []
    assert {o["metadata"]["namespace"] for o in objects} == {"my-app"}
    assert {c["image"] for c in containers(pod_of(objects))} == \
        {"registry.example/my-app:1.2", "registry.example/gavel:0.1.0"}
    env = {e["name"]: e.get("value") for e in gavel_of(objects)["env"]}
    assert env["GAVEL_ELECTION"] == "my-app" and env["GAVEL_STORE_FILE"] == "/etc/gavel/store/url"
    assert [o["kind"] for o in objects if o["kind"] == "PodMonitor"]


@pytest.mark.parametrize("store", ["postgres", "redis", "redlock"])
def test_components_go_with_any_store(tmp_path, store):
    shutil.copytree(strict.KUSTOMIZE, tmp_path / "kubernetes")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kustomization.yaml").write_text(f"""
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../kubernetes/overlays/{store}]
components: [../kubernetes/components/two-containers, ../kubernetes/components/podmonitor]
""")
    objects = strict.render(str(tmp_path / "mine"))
    assert strict.problems(objects, str(tmp_path)) == []
    (of_this_store,) = [o for o in objects if o["kind"] == "NetworkPolicy"]
    port = of_this_store["spec"]["egress"][-1]["ports"][0]["port"]
    assert port == (5432 if store == "postgres" else 6379)
    assert len([o for o in objects if o["kind"] == "PodMonitor"]) == 1
    assert {c["name"] for c in pod_of(objects)["containers"]} == {"app", "gavel"}
