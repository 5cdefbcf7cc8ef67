"""The manifests of deploy/kubernetes as a cluster would get them: rendered by kustomize, and taken apart."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[3] / "deploy" / "kubernetes"
OVERLAYS = ("small", "production", "azure")
PODS = {"Deployment", "StatefulSet", "Job", "CronJob"}
Object = dict[str, Any]


def kustomize() -> list[str]:
    """Give the command that renders a folder."""
    if found := shutil.which("kustomize"):
        return [found, "build"]
    if found := shutil.which("kubectl"):
        return [found, "kustomize"]
    pytest.skip("neither kustomize nor kubectl is installed, which render the manifests")


@cache
def rendered(overlay: str) -> list[Object]:
    """Give the objects of an overlay."""
    done = subprocess.run(
        [*kustomize(), str(FOLDER / "overlays" / overlay)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return [each for each in yaml.load_all(done.stdout, yaml.CSafeLoader) if each]


def every_object() -> list[Object]:
    """Give the objects of all overlays; what several have alike is given once."""
    found = {json.dumps(each, sort_keys=True): each for overlay in OVERLAYS for each in rendered(overlay)}
    return list(found.values())


def named(overlay: str, kind: str) -> dict[str, Object]:
    """Give the objects of one kind by their names."""
    return {each["metadata"]["name"]: each for each in rendered(overlay) if each["kind"] == kind}


def title(each: Object) -> str:
    """Name an object for whoever reads a failure."""
    return f"{each['kind']} {each['metadata']['name']}"


def template(each: Object) -> Object:
    """Give what an object makes pods from."""
    spec = each["spec"]["jobTemplate"]["spec"] if each["kind"] == "CronJob" else each["spec"]
    found: Object = spec["template"]
    return found


def templates(overlay: str) -> dict[str, Object]:
    """Give the templates of all pods of an overlay by the names of their owners."""
    return {title(each): template(each) for each in rendered(overlay) if each["kind"] in PODS}


def containers(pod: Object) -> Iterator[Object]:
    """Give all containers of a template, those that come before the others among them."""
    yield from pod["spec"].get("initContainers", ())
    yield from pod["spec"]["containers"]


def variables(container: Object) -> dict[str, str | None]:
    """Give the variables that a container is given by name, None for what a secret holds."""
    return {each["name"]: each.get("value") for each in container.get("env", ())}


def secret_keys(container: Object) -> dict[str, tuple[str, str]]:
    """Give from which secret, and which key of it, a variable comes."""
    references = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in container["env"] if "valueFrom" in each}
    return {name: (each["name"], each["key"]) for name, each in references.items()}


def selects(selector: Object, labels: dict[str, str]) -> bool:
    """Tell whether a selector takes something with these labels."""
    wanted = selector.get("matchLabels", {})
    rules = selector.get("matchExpressions", ())
    assert all(rule["operator"] in {"In", "NotIn"} for rule in rules)
    return all(labels.get(name) == value for name, value in wanted.items()) and all(
        (labels.get(rule["key"]) in rule["values"]) == (rule["operator"] == "In") for rule in rules
    )
