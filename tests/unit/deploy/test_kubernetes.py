"""deploy/kubernetes: every rendered object is one of its kind, and keeps the rules of docs/how-to/kubernetes.md."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import kubernetes_validate
import pytest
from cloudcoil.models.keda.v1alpha1 import ScaledObject, TriggerAuthentication
from pydantic import BaseModel, ValidationError
from tests.unit.deploy import containerfile
from tests.unit.deploy.manifests import (
    FOLDER,
    OVERLAYS,
    PODS,
    Object,
    containers,
    every_object,
    named,
    rendered,
    secret_keys,
    selects,
    template,
    templates,
    title,
    variables,
)
from tests.unit.deploy.test_bicep import settings_variables
from tests.unit.docs.pages import code, codes, page, table
from tests.unit.docs.test_command_docs import commands
from typer.main import get_command

from graticule.cli.main import app
from graticule.config import Settings, secret_variables
from graticule.schema.passwords import LOGINS, SCALER
from graticule.worker.app import DEFAULT_QUEUES

DOCS = page("kubernetes.md")
OLDEST = "1.30"  # of the releases of Kubernetes, as the page says
KEDA: dict[str, type[BaseModel]] = {"ScaledObject": ScaledObject, "TriggerAuthentication": TriggerAuthentication}
WITHOUT_A_SCHEMA = {"HTTPRoute"}  # no registry that is used here has those of the Gateway API
OF_OTHERS = {"PGSSLMODE", "AZURE_TOKEN_CREDENTIALS"}  # read by the clients of PostgreSQL, and by azure-identity
OF_LOGINS = {f"{role.upper()}_PASSWORD" for role in LOGINS}
IMAGES = {"graticule", "graticule-worker", "graticule-serve"}
PORTS = {"gateway": 8000, "orchestrator": 8001, "worker-light": 8002, "worker-heavy": 8002, "serve": 8003}
PORTS["serve-external"] = 8003


def mistakes(each: Object) -> list[str]:
    """Say what a cluster would find wrong with an object, a field that nobody knows among it."""
    if each["apiVersion"].startswith("keda.sh/"):
        return _keda_mistakes(each, KEDA[each["kind"]])
    try:
        kubernetes_validate.validate(each, OLDEST, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [f"{title(each)}: {error.message}"]
    return []


def _keda_mistakes(each: Object, model: type[BaseModel]) -> list[str]:
    try:
        read = model.model_validate(each).model_dump(mode="json", by_alias=True, exclude_unset=True)
    except ValidationError as error:
        return [f"{title(each)}: {error}"]
    return [] if read == each else [f"{title(each)}: of {each['spec']} only {read['spec']} is known"]


def test_every_object_is_one_that_a_cluster_takes() -> None:
    checked = [each for each in every_object() if each["kind"] not in WITHOUT_A_SCHEMA]
    assert {"Deployment", "StatefulSet", "Job", "CronJob", "NetworkPolicy", *KEDA} <= {each["kind"] for each in checked}
    assert list(chain.from_iterable(map(mistakes, checked))) == []


def _changed(each: Any, *path: str | int, value: object) -> Any:
    """Give a copy of an object in which something is another."""
    if not path:
        return value
    copy = each.copy()
    old = copy.get(path[0]) if isinstance(copy, dict) else copy[path[0]]
    copy[path[0]] = _changed(old, *path[1:], value=value)
    return copy


@pytest.mark.parametrize(
    ("kind", "name", "path", "value"),
    [
        ("Deployment", "gateway", ("spec", "replica"), 2),
        ("Deployment", "gateway", ("spec", "template", "spec", "containers", 0, "ports", 0, "containerPort"), "http"),
        ("ScaledObject", "worker-heavy", ("spec", "minReplicas"), 0),
        ("ScaledObject", "worker-heavy", ("spec", "triggers", 0, "type"), 4),
        ("TriggerAuthentication", "graticule-scaler", ("spec", "secretTargetRef", 0, "secret"), "x"),
    ],
)
def test_what_is_wrong_would_be_found(kind: str, name: str, path: tuple[str | int, ...], value: object) -> None:
    right = named("production", kind)[name]
    assert mistakes(right) == []
    assert mistakes(_changed(right, *path, value=value))


# What every pod keeps to


def pods() -> Iterator[tuple[str, Object]]:
    for overlay in OVERLAYS:
        for name, pod in templates(overlay).items():
            yield f"{overlay}: {name}", pod


def test_pods_run_as_nobody_in_particular_and_know_no_token_of_the_cluster() -> None:
    for name, pod in pods():
        spec = pod["spec"]
        context = spec["securityContext"]
        assert context["runAsNonRoot"] is True, name
        assert context["runAsUser"] == context["fsGroup"] == (999 if "database" in name else 10001), name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name
        assert spec["serviceAccountName"] != "default", name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        assert not any("hostPath" in volume for volume in spec["volumes"]), name


def test_containers_change_nothing_but_their_volumes_and_can_gain_nothing() -> None:
    for name, pod in pods():
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}, name
            for bound in ("requests", "limits"):
                assert {"cpu", "memory"} <= set(container["resources"][bound]), name


def test_what_is_mounted_is_there_and_what_is_temporary_is_bounded() -> None:
    for name, pod in pods():
        volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
        claimed = {"data"} if "StatefulSet" in name else set()
        for container in containers(pod):
            assert {each["name"] for each in container["volumeMounts"]} <= set(volumes) | claimed, name
        assert all("sizeLimit" in each["emptyDir"] for each in volumes.values() if "emptyDir" in each), name


def test_accounts_exist_and_are_given_no_token() -> None:
    for overlay in OVERLAYS:
        accounts = named(overlay, "ServiceAccount")
        assert {pod["spec"]["serviceAccountName"] for pod in templates(overlay).values()} == set(accounts)
        assert all(each["automountServiceAccountToken"] is False for each in accounts.values())


def test_the_namespace_refuses_what_is_not_restricted() -> None:
    for overlay in OVERLAYS:
        labels = named(overlay, "Namespace")["graticule"]["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
        assert {each["metadata"].get("namespace") for each in rendered(overlay)} == {"graticule", None}


# The processes


def processes(overlay: str) -> dict[str, Object]:
    """Give the containers of the processes by the names of their deployments."""
    return {name: template(each)["spec"]["containers"][0] for name, each in named(overlay, "Deployment").items()}


def test_processes_are_probed_on_their_ports_where_they_tell_how_they_are() -> None:
    for overlay in OVERLAYS:
        for name, container in processes(overlay).items():
            (port,) = container["ports"]
            assert port == {"name": "http", "containerPort": PORTS[name]}
            assert variables(container)["GRATICULE_PORT"] == str(PORTS[name])
            probes = {kind: container[kind]["httpGet"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
            assert {each["port"] for each in probes.values()} == {"http"}
            assert [each["path"] for each in probes.values()] == ["/livez", "/livez", "/readyz"]


def test_services_lead_to_pods_and_ways_in_to_services() -> None:
    for overlay in OVERLAYS:
        labels = [pod["metadata"]["labels"] for pod in templates(overlay).values()]
        services = named(overlay, "Service")
        for name, service in services.items():
            assert sum(selects({"matchLabels": service["spec"]["selector"]}, each) for each in labels) == 1, name
            (port,) = service["spec"]["ports"]
            assert port["port"] == PORTS.get(name, 5432)
        for ingress in named(overlay, "Ingress").values():
            (rule,) = ingress["spec"]["rules"]
            assert rule["host"] in ingress["spec"]["tls"][0]["hosts"]
            assert rule["http"]["paths"][0]["backend"]["service"]["name"] in services
        for route in named(overlay, "HTTPRoute").values():
            (backend,) = route["spec"]["rules"][0]["backendRefs"]
            assert backend["port"] == services[backend["name"]]["spec"]["ports"][0]["port"]
        ways = chain(named(overlay, "Ingress"), named(overlay, "HTTPRoute"))
        assert set(ways) <= {"gateway", "serve-external"}, "the others ask nobody who they are"


def test_workers_are_given_longer_to_stop_than_they_take() -> None:
    longest = Settings.model_fields["worker_grace_seconds"].default
    for overlay in OVERLAYS:
        for name in PORTS.keys() & named(overlay, "Deployment").keys():
            spec = template(named(overlay, "Deployment")[name])["spec"]
            assert spec["terminationGracePeriodSeconds"] >= longest + 20


def test_somebody_reaps_what_a_task_leaves_behind() -> None:
    for overlay in OVERLAYS:
        for name, pod in templates(overlay).items():
            assert pod["spec"].get("shareProcessNamespace", False) is ("worker" in name), name


def test_the_database_is_new_when_it_is_made() -> None:
    """As in deploy/compose."""
    pod = templates("small")["StatefulSet database"]["spec"]
    (mount,) = [
        each for each in pod["containers"][0]["volumeMounts"] if each["mountPath"] == "/docker-entrypoint-initdb.d"
    ]
    assert {"name": mount["name"], "emptyDir": {"sizeLimit": "1Mi"}} in pod["volumes"]


def test_the_database_can_be_started_alone() -> None:
    """With a selector, as the page about backups says."""
    wanted = {"app.kubernetes.io/component": "database"}
    chosen = [
        each for each in rendered("small") if selects({"matchLabels": wanted}, each["metadata"].get("labels", {}))
    ]
    assert {title(each) for each in chosen} == {"Service database", "ServiceAccount database", "StatefulSet database"}


def test_images_are_those_of_the_container_file_and_run_what_they_have() -> None:
    stages = set(containerfile.stages())
    for name, pod in pods():
        for container in containers(pod):
            image = container["image"].rpartition(":")[0].rpartition("/")[2]
            assert image in (IMAGES & stages) | {"postgis"}, name
            if image == "postgis":
                continue
            first = container["args"][0]
            wanted = {"worker": "graticule-worker", "serve": "graticule-serve"}.get(first, "graticule")
            assert image == wanted, name


def test_the_commands_exist() -> None:
    known = set(commands(get_command(app)))
    for name, pod in pods():
        for container in containers(pod):
            if arguments := container.get("args"):
                assert any(" ".join(arguments[:count]) in known for count in (1, 2, 3)), (name, arguments)


def test_the_queues_are_served_once_and_scaled_by_who_serves_them() -> None:
    for overlay in OVERLAYS:
        found = processes(overlay)
        served = {name: each["args"][2] for name, each in found.items() if each["args"][0] == "worker"}
        assert sorted(served.values()) == sorted(DEFAULT_QUEUES)
        for name, scaled in named(overlay, "ScaledObject").items():
            assert scaled["spec"]["scaleTargetRef"]["name"] == name
            assert "replicas" not in named(overlay, "Deployment")[name]["spec"]
            (trigger,) = scaled["spec"]["triggers"]
            metadata = trigger["metadata"]
            assert served[name] in (metadata.get("queueName"), *metadata.get("query", "").split("'"))
            arguments = found[name]["args"]
            most = arguments[arguments.index("--concurrency") + 1] if "--concurrency" in arguments else "64"
            assert metadata.get("targetQueryValue", metadata.get("messageCount")) == most


# Settings and secrets


def test_the_code_knows_every_variable() -> None:
    known = settings_variables() | OF_OTHERS | OF_LOGINS
    for overlay in OVERLAYS:
        told = set(named(overlay, "ConfigMap")["graticule-settings"]["data"])
        assert told <= known
        for name, pod in templates(overlay).items():
            if name != "StatefulSet database":
                given = set(chain.from_iterable(map(variables, containers(pod))))
                assert given <= known - told, name


def test_what_is_secret_comes_from_secrets_that_the_page_lists_and_nothing_else_does() -> None:
    listed = {(code(row[0]), key) for row in table(DOCS, "| secret | keys | for |") for key in codes(row[1])}
    used = set()
    for overlay in OVERLAYS:
        assert not named(overlay, "Secret")
        assert not set(named(overlay, "ConfigMap")["graticule-settings"]["data"]) & secret_variables()
        for name, pod in templates(overlay).items():
            for container in containers(pod):
                used |= set(secret_keys(container).values())
                if name != "StatefulSet database":
                    plain = set(variables(container)) - set(secret_keys(container))
                    assert not plain & (secret_variables() | OF_LOGINS), name
        for authentication in named(overlay, "TriggerAuthentication").values():
            references = authentication["spec"].get("secretTargetRef", ())
            used |= {(each["name"], each["key"]) for each in references}
    assert used == listed


def test_each_process_is_given_the_secrets_of_the_page_and_no_other() -> None:
    told = {
        (code(row[0]), key): set(codes(row[2]))
        for row in table(DOCS, "| secret | keys | for |")
        for key in codes(row[1])
    }
    for (secret, key), users in told.items():
        if secret == "graticule-keys":
            found = {n for n, each in processes("production").items() if (secret, key) in secret_keys(each).values()}
            assert found == users, (secret, key)


def test_each_process_has_the_login_of_its_own_role() -> None:
    roles = {"worker-light": "worker", "worker-heavy": "worker", "serve": "serve_internal"}
    for name, container in processes("production").items():
        role = roles.get(name, name.replace("-", "_"))
        assert variables(container)["GRATICULE_POSTGRES_USER"] == f"graticule_{role}"
        assert secret_keys(container)["GRATICULE_POSTGRES_PASSWORD"] == ("graticule-logins", role)
    logins = secret_keys(templates("production")["Job migrate"]["spec"]["containers"][0])
    assert {f"{role.upper()}_PASSWORD": ("graticule-logins", role.removeprefix("graticule_")) for role in LOGINS} == {
        name: found for name, found in logins.items() if name in OF_LOGINS
    }


def test_in_azure_nobody_has_a_password() -> None:
    for name, pod in templates("azure").items():
        assert pod["metadata"]["labels"]["azure.workload.identity/use"] == "true", name
        for container in containers(pod):
            assert not [each for each in variables(container) if each.endswith("_PASSWORD")], name
            assert variables(container)["GRATICULE_POSTGRES_USER"] is not None, name
    settings = named("azure", "ConfigMap")["graticule-settings"]["data"]
    for scaled in named("azure", "ScaledObject").values():
        namespace = scaled["spec"]["triggers"][0]["metadata"]["namespace"]
        assert namespace == settings["GRATICULE_SERVICE_BUS_NAMESPACE"]
    for account in named("azure", "ServiceAccount").values():
        assert "azure.workload.identity/client-id" in account["metadata"]["annotations"]


def test_the_scaler_is_told_by_the_settings_where_to_log_in() -> None:
    settings = named("production", "ConfigMap")["graticule-settings"]["data"]
    authentication = named("production", "TriggerAuthentication")["graticule-scaler"]["spec"]
    told = {each["parameter"]: settings[each["key"]] for each in authentication["configMapTargetRef"]}
    assert set(told) == {"host", "port", "dbName", "sslmode"}
    for scaled in named("production", "ScaledObject").values():
        (trigger,) = scaled["spec"]["triggers"]
        assert trigger["metadata"]["userName"] == SCALER
        assert trigger["authenticationRef"] == {"name": "graticule-scaler"}


# Files


def test_files_are_written_by_those_who_make_them_and_the_public_sees_its_copies_alone() -> None:
    writers = {"orchestrator", "worker-light", "worker-heavy"}
    for overlay in ("small", "production"):
        for name, container in processes(overlay).items():
            mounts = {each["name"]: each for each in container["volumeMounts"] if each["name"] != "tmp"}
            assert set(mounts) == ({"external"} if name == "serve-external" else {"storage", "external"})
            assert {bool(each.get("readOnly")) for each in mounts.values()} == {name not in writers}
        claims = named(overlay, "PersistentVolumeClaim")
        assert set(claims) == {"graticule-storage", "graticule-external"}


# What is never away at once


def test_in_production_there_are_two_of_each_on_different_nodes() -> None:
    budgets = {
        each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]: each["spec"]
        for each in named("production", "PodDisruptionBudget").values()
    }
    deployments = named("production", "Deployment")
    assert set(budgets) == set(deployments)
    for name in ("gateway", "orchestrator", "serve", "serve-external"):
        spec = deployments[name]["spec"]
        assert spec["replicas"] >= 2
        assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        spread = spec["template"]["spec"]["topologySpreadConstraints"]
        assert {each["topologyKey"] for each in spread} == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
        assert all(selects(each["labelSelector"], spec["template"]["metadata"]["labels"]) for each in spread)
    assert all(each["maxUnavailable"] == 1 for each in budgets.values())


# Who reaches whom


def _component(pod: Object) -> str:
    found: str = pod["metadata"]["labels"]["app.kubernetes.io/component"]
    return found


def flows(overlay: str) -> set[tuple[str, str, str]]:
    """Give who may send to whom, on which ports, as the policies say."""
    found = set()
    for policy in named(overlay, "NetworkPolicy").values():
        spec = policy["spec"]
        chosen = [pod for pod in templates(overlay).values() if selects(spec["podSelector"], pod["metadata"]["labels"])]
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for rule in spec.get(direction, ()):
                ports = ", ".join(str(each["port"]) for each in rule["ports"])
                for pod in chosen:
                    for peer in _peers(overlay, rule.get(peers)):
                        ends = (_component(pod), peer) if direction == "egress" else (peer, _component(pod))
                        port = ports.replace("http", str(PORTS.get(ends[1])))
                        found.add((*ends, port))
    return found


def _peers(overlay: str, rules: list[Object] | None) -> Iterator[str]:
    if rules is None:
        yield "anywhere"
    for rule in rules or ():
        if "ipBlock" in rule:
            yield "the world"
        elif "namespaceSelector" in rule:
            (label,) = rule["namespaceSelector"]["matchLabels"].items()
            yield {"graticule/ingress": "ingress", "graticule/monitoring": "monitoring"}.get(label[0], label[1])
        else:
            pods_of = templates(overlay).values()
            yield from (_component(pod) for pod in pods_of if selects(rule["podSelector"], pod["metadata"]["labels"]))


def told_flows() -> set[tuple[str, str, str]]:
    return {
        (source, target, ports)
        for sources, targets, ports, _ in table(DOCS, "| from | to | ports |")
        for source in codes(sources)
        for target in codes(targets)
    }


def test_who_reaches_whom_is_what_the_page_says() -> None:
    denied = named("production", "NetworkPolicy")["default-deny"]["spec"]
    assert denied == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert flows("production") == told_flows()


def test_policies_choose_pods_that_there_are() -> None:
    labels = [pod["metadata"]["labels"] for pod in templates("production").values()]
    unused = {
        name
        for name, policy in named("production", "NetworkPolicy").items()
        if not any(selects(policy["spec"]["podSelector"], each) for each in labels)
    }
    assert unused == {"database"}, "which is for a database in the cluster"


def test_the_metadata_of_a_node_is_out_of_reach() -> None:
    for overlay in ("production", "azure"):
        for policy in named(overlay, "NetworkPolicy").values():
            for rule in policy["spec"].get("egress", ()):
                blocks = [each["ipBlock"] for each in rule.get("to", ()) if "ipBlock" in each]
                assert all("169.254.0.0/16" in each["except"] for each in blocks)


# The page


def test_the_page_tells_every_overlay_and_component() -> None:
    overlays = {code(row[0]) for row in table(DOCS, "| overlay |")}
    components = {code(row[0]) for row in table(DOCS, "| component |")}
    assert overlays == set(OVERLAYS) == {each.name for each in (FOLDER / "overlays").iterdir()}
    assert components == {each.name for each in (FOLDER / "components").iterdir()}
    assert f"Kubernetes {OLDEST}" in DOCS
    assert {each["kind"] for each in every_object() if "template" in each.get("spec", {})} <= PODS
