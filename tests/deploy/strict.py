"""Strict checks of Kubernetes manifests, without a cluster: kubectl's kustomize renders them, and
TypeScript's compiler holds each object against the API's types: a key that the API does not have
is an error, and so is a value of another type."""

import json
import os
import shutil
import subprocess

import yaml

from kit.readme import ROOT

TOOLS = os.path.join(ROOT, "build", "tools", "kubernetes")
KUBECTL = os.path.join(TOOLS, "kubectl")
TSC = os.path.join(TOOLS, "node_modules", "typescript", "lib", "tsc.js")
KUSTOMIZE = os.path.join(ROOT, "deploy", "kubernetes")
TYPES = {  # (apiVersion, kind): module, interface
    ("apps/v1", "Deployment"): ("kubernetes-models/apps/v1/Deployment", "IDeployment"),
    ("v1", "Pod"): ("kubernetes-models/v1/Pod", "IPod"),
    ("networking.k8s.io/v1", "NetworkPolicy"):
        ("kubernetes-models/networking.k8s.io/v1/NetworkPolicy", "INetworkPolicy"),
    ("monitoring.coreos.com/v1", "PodMonitor"):
        ("@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor",
         "IPodMonitor"),
}


def why_not():
    """Why manifests cannot be checked here, or None."""
    if not os.path.exists(KUBECTL) or not os.path.exists(TSC):
        try:
            with open(os.path.join(ROOT, "build", "tools", "no-kubernetes"), encoding="utf-8") as f:
                return "no kubectl and no types of Kubernetes' API: " + f.read().strip()
        except FileNotFoundError:
            return "no kubectl and no types of Kubernetes' API (sh tests/deploy/prepare.sh fetches them)"
    return None if shutil.which("node") else "no node"


def render(overlay):
    """The objects of an overlay, or of the base."""
    done = subprocess.run([KUBECTL, "kustomize", os.path.join(KUSTOMIZE, overlay)], text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return [o for o in yaml.safe_load_all(done.stdout) if o]


def problems(objects, folder):
    """What the compiler says of the objects: a list of lines, empty if nothing."""
    lines = []
    for i, o in enumerate(objects):
        module, interface = TYPES[(o["apiVersion"], o["kind"])]
        lines.append(f'import {{ {interface} as T{i} }} from "{module}";')
        lines.append(f"const object{i}: T{i} = {json.dumps(o, indent=1)};")
        lines.append(f"console.log(object{i});")
    with open(os.path.join(folder, "objects.ts"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines))
    if not os.path.exists(os.path.join(folder, "node_modules")):
        os.symlink(os.path.join(TOOLS, "node_modules"), os.path.join(folder, "node_modules"))
    with open(os.path.join(folder, "tsconfig.json"), "w", encoding="utf-8") as f:
        json.dump({"files": ["objects.ts"], "compilerOptions": {
            "noEmit": True, "strict": True, "skipLibCheck": True, "types": [], "target": "es2020",
            "lib": ["es2020", "dom"], "module": "commonjs", "moduleResolution": "node"}}, f)
    done = subprocess.run(["node", TSC, "-p", folder], capture_output=True, text=True, timeout=120,
                          cwd=folder)
    found = [line for line in done.stdout.splitlines() if "error TS" in line]
    assert bool(found) == (done.returncode != 0), done.stdout + done.stderr
    return found
