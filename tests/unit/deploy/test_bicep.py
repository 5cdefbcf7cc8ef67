"""deploy/azure: every file parses, everything in it is declared, and it does what docs/how-to/azure.md says."""

import re
from collections.abc import Iterator
from itertools import chain

import pytest
from pydantic import AliasChoices
from tests.unit.deploy.bicep import FOLDER, File, descendants, entries, literal, text_of
from tests.unit.docs.pages import blocks, code, codes, page, table
from tests.unit.docs.test_command_docs import commands
from tree_sitter import Node
from typer.main import get_command

from graticule.cli.main import app
from graticule.config import Settings, secret_variables
from graticule.core.table import DatabaseRole
from graticule.schema import pgstac
from graticule.schema.deploy import _script

FILES = [File(path) for path in sorted(FOLDER.glob("*.bicep"))]
MAIN = next(file for file in FILES if file.path.name == "main.bicep")
PARAMETERS = File(FOLDER / "main.bicepparam")
DOCS = page("azure.md")
TYPE = re.compile(r"Microsoft\.\w+(/\w+)+@\d{4}-\d{2}-\d{2}(-preview)?")
# As Azure lists its built-in roles.
ROLES = {
    "AcrPull": "7f951dda-4ed3-4680-a7ca-43fe172d538d",
    "Azure Service Bus Data Owner": "090c5cfd-751d-490a-894a-3ce6f1109419",
    "Azure Service Bus Data Receiver": "4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0",
    "Azure Service Bus Data Sender": "69a216fc-b8fb-44d8-bc22-1f3c2cd27a39",
    "Key Vault Secrets User": "4633458b-17de-408a-b874-0445c86b69e6",
    "Storage Blob Data Contributor": "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
    "Storage Blob Data Owner": "b7e6dc6d-f1e8-4753-8033-0f276bb0955b",
    "Storage Blob Data Reader": "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1",
    "Storage Blob Delegator": "db58b8e5-c6ad-4a2a-8342-4190687cbf4a",
}
OF_AZURE = {"AZURE_CLIENT_ID", "AZURE_TOKEN_CREDENTIALS"}  # read by azure-identity
PROCESSES = {
    "gateway": ["gateway"],
    "orchestrator": ["orchestrator"],
    "worker": ["lightWorker", "heavyWorker"],
    "serveInternal": ["serveInternal"],
    "serveExternal": ["serveExternal"],
    "operations": ["migrate", "logins", "prune", "verify"],
}


def file(name: str) -> File:
    return next(each for each in FILES if each.path.name == name)


def settings_variables() -> set[str]:
    aliases = [field.validation_alias for field in Settings.model_fields.values()]
    named = {str(name).upper() for alias in aliases if isinstance(alias, AliasChoices) for name in alias.choices}
    return named | {f"GRATICULE_{name}".upper() for name in (*Settings.model_fields, "host", "port")}


@pytest.mark.parametrize("each", [*FILES, PARAMETERS], ids=repr)
def test_it_is_bicep_in_which_everything_is_declared(each: File) -> None:
    assert each.mistakes == []
    assert each.unknown() == []


@pytest.mark.parametrize("each", FILES, ids=repr)
def test_parameters_outputs_and_types_are_told(each: File) -> None:
    assert each.undescribed() == []
    for name, node in each.declared("resource").items():
        kind = literal(node.named_children[1])
        is_nested = node.parent is not None and node.parent.type == "object_property"
        assert is_nested or TYPE.fullmatch(kind), f"{name}: {kind}"


@pytest.mark.parametrize(
    "text",
    [
        "param a string\nvar b = [a\n",
        "var a = {\n  name: \n}\n",
        "resource a 'Microsoft.X/y@2024-01-01' = {\n  name: 'x'\n",
        "var a = b\n",
        "var a = [for each in [1]: eahc]\n",
    ],
)
def test_what_is_wrong_would_be_found(text: str) -> None:
    found = File(FOLDER / "wrong.bicep", text.encode())
    assert found.mistakes or found.unknown()


@pytest.mark.parametrize("each", FILES, ids=repr)
def test_modules_are_given_what_they_need_and_asked_for_what_they_have(each: File) -> None:
    for name in each.declared("module"):
        module, given = each.module(name)
        required = {parameter for parameter, is_required in module.parameters.items() if is_required}
        assert required <= set(given) <= set(module.parameters), name
    for module_name, output in each.outputs_asked():
        assert output in each.module(module_name)[0].declared("output"), f"{module_name}.{output}"
    for name, whence in each.imported.items():
        assert name in file(whence).declared("variable")


def test_the_file_of_parameters_gives_what_is_required() -> None:
    required = {name for name, is_required in MAIN.parameters.items() if is_required}
    assert required <= set(PARAMETERS.parameters) <= set(MAIN.parameters)


def test_no_key_has_a_value_in_a_file() -> None:
    secrets = [each for each in MAIN.root.named_children if each.type == "decorators" and "@secure()" in text_of(each)]
    assert len(secrets) == 5
    for node in secrets:
        declaration = node.next_named_sibling
        assert declaration is not None
        assert [each.type for each in declaration.named_children] == ["identifier", "type"]
        given = PARAMETERS.declared("parameter")[text_of(declaration.named_children[0])].named_children[-1]
        assert text_of(given).startswith("readEnvironmentVariable('GRATICULE_")


def test_no_key_is_asked_for_and_no_host_is_guessed() -> None:
    written = "".join(text_of(each.root) for each in FILES)
    assert not re.findall(r"\blist\w*\(|\w+\.windows\.net", written)


def test_logins_are_made_for_the_object_ids_of_the_identities() -> None:
    arguments = [text_of(each).strip("'") for each in MAIN.items(MAIN.module("logins")[1]["arguments"])][3:]
    logins = [re.fullmatch(r"(\w+)=\$\{identityOf\.(\w+)\.name\}:\$\{principals\.(\w+)\}", each) for each in arguments]
    named = {login[1]: (login[2], login[3]) for login in logins if login}
    camel = {name: re.sub(r"_(\w)", lambda found: found[1].upper(), name) for name in named}
    assert named == {name: (camel[name], camel[name]) for name in named}
    assert set(named) == {role.removeprefix("graticule_") for role in DatabaseRole} - {"owner"}


def test_the_roles_are_those_of_their_names() -> None:
    declared = file("roles.bicep").declared("variable")["roles"].named_children[-1]
    assert {name: literal(value) for name, value in entries(declared).items()} == ROLES


def granted() -> Iterator[tuple[str, str, str, str]]:
    """Give who has which role for what, as the files say."""
    for module, kind in (("messaging", "queue"), ("vault", "secret")):
        for grant in _objects(MAIN.module(module)[1]["grants"]):
            yield grant["process"], grant["role"], kind, grant[kind]
    for account in ("bronze", "silver", "external"):
        given = MAIN.module(account)[1]
        for grant in _objects(given["grants"]):
            yield grant["process"], grant["role"], "account", account
        for grant in _objects(given["containerGrants"]) if "containerGrants" in given else ():
            yield grant["process"], grant["role"], "container", grant["container"]
    assert "roles['Storage Blob Data Owner']" in text_of(file("functions.bicep").root)
    yield "gateway", "Storage Blob Data Owner", "host", ""


def _objects(array: Node) -> list[dict[str, str]]:
    return [{name: MAIN.known(value) for name, value in entries(each).items()} for each in MAIN.items(array)]


def told_roles() -> Iterator[tuple[str, str, str, str]]:
    """Give the same as the page says."""
    for process, role, scope in table(DOCS, "| identity | role | for |"):
        kind = scope.split()[0].removesuffix("s")
        for name in codes(scope) or [""]:
            yield process, role, kind, name


def test_each_identity_has_exactly_the_roles_of_the_page() -> None:
    assert sorted(granted()) == sorted(told_roles())
    principals = entries(file("identities.bicep").declared("output")["principals"].named_children[-1])
    for process, role, _, _ in granted():
        assert process in principals
        assert role in ROLES


def test_a_partner_may_read_write_delete_and_list_below_its_own_prefix_only() -> None:
    """Outside its prefix, the condition of the page admits none of what the role allows."""
    blobs = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
    (condition,) = re.findall(r'--condition "(.+?)"$', DOCS, re.DOTALL | re.MULTILINE)
    by_blob, by_list = " ".join(condition.split()).split(" ) AND ( ")
    actions, own_blob = by_blob.rsplit(" OR ", 1)
    a_list, own_list = by_list.rsplit(" OR ", 1)
    assert own_blob == "@Resource[$blobs:path] StringStartsWith 'ddh/'"
    assert own_list == "@Request[$blobs:prefix] StringStartsWith 'ddh/' )"
    read = "(ActionMatches{'$blobs/read'} AND NOT SubOperationMatches{'Blob.List'})"
    others = [f"(ActionMatches{{'$blobs/{action}'}})" for action in ("write", "add/action", "delete", "move/action")]
    assert actions == "( (" + " AND ".join(f"!{action}" for action in (read, *others)) + ")"
    assert a_list == "!(ActionMatches{'$blobs/read'} AND SubOperationMatches{'Blob.List'})"
    assert f"blobs={blobs}\n" in DOCS
    (command,) = [each for each in blocks(DOCS, "sh") if "--condition" in each]
    assert '--role "Storage Blob Data Contributor"' in command
    assert "--condition-version 2.0" in command


def test_roles_are_given_nowhere_else() -> None:
    assigning = {
        each.path.name
        for each in FILES
        for node in each.declared("resource").values()
        if "roleAssignments" in literal(node.named_children[1])
    }
    known = {"queue-role", "container-role", "secret-role", "storage", "registry", "functions"}
    assert assigning == {f"{name}.bicep" for name in known}


def variables(module: str) -> set[str]:
    """Name the variables that a process is given."""
    given = MAIN.module(module)[1]
    plain = [entries(each)["name"] for each in MAIN.items(given["variables"])]
    secret = [entries(each)["variable"] for each in MAIN.items(given["secrets"])] if "secrets" in given else []
    own = MAIN.module(module)[0].declared("variable")["own"].named_children[-1]
    names = [literal(each) for each in (*plain, *secret, *(entries(each)["name"] for each in own.named_children))]
    assert len(set(names)) == len(names), f"{module} is given a variable twice"
    return set(names)


@pytest.mark.parametrize(("process", "modules"), PROCESSES.items())
def test_each_process_has_exactly_the_variables_of_the_page(process: str, modules: list[str]) -> None:
    place = 1 + list(PROCESSES).index(process)
    told = {code(row[0]) for row in table(DOCS, f"| variable | {' | '.join(PROCESSES)} |") if row[place] == "yes"}
    assert set().union(*map(variables, modules)) == told


def test_the_code_knows_every_variable() -> None:
    name = re.compile(r"'((?:GRATICULE|POSTGRES|AZURE|SERVICE_BUS|USE)_\w+)'")
    written = {found for each in FILES for found in name.findall(text_of(each.root))}
    assert len(written) > 20
    assert written - OF_AZURE <= settings_variables()


def test_what_is_secret_comes_from_the_vault_and_nothing_else_does() -> None:
    for module in ("gateway", "orchestrator", "lightWorker", "serveInternal"):
        given = MAIN.module(module)[1]
        plain = {literal(entries(each)["name"]) for each in MAIN.items(given["variables"])}
        secret = {literal(entries(each)["variable"]) for each in MAIN.items(given["secrets"])}
        assert secret <= secret_variables()
        assert not plain & secret_variables()


def test_who_is_given_a_secret_may_read_it() -> None:
    allowed = {(process, name) for process, _, kind, name in granted() if kind == "secret"}
    needed = set()
    for process, modules in PROCESSES.items():
        for module in modules:
            given = MAIN.module(module)[1]
            for each in MAIN.items(given["secrets"]) if "secrets" in given else ():
                needed.add((process, literal(entries(each)["secret"])))
    assert needed == allowed


def test_the_commands_of_the_containers_exist() -> None:
    known = set(commands(get_command(app)))
    for module in chain.from_iterable(PROCESSES.values()):
        words = [text_of(each).strip("'") for each in MAIN.items(MAIN.module(module)[1]["arguments"])]
        assert any(" ".join(words[:count]) in known for count in (1, 2, 3)), words


def test_the_queues_are_those_of_the_platform_and_have_its_rules() -> None:
    names = {MAIN.known(each) for each in MAIN.items(MAIN.module("messaging")[1]["queueNames"])}
    assert names == {"orchestrator-jobs", "functionapp-tasks", "container-tasks"}
    messaging = file("messaging.bicep")
    queue = entries(entries(messaging.body(messaging.declared("resource")["queues"]))["properties"])
    rules = {name: text_of(value).strip("'") for name, value in queue.items()}
    assert (rules["lockDuration"], rules["maxDeliveryCount"], rules["defaultMessageTimeToLive"]) == (
        "PT5M",
        "10",
        "P1D",
    )
    assert rules["requiresDuplicateDetection"] == "false"
    assert "disableLocalAuth: true" in text_of(messaging.root)


def test_the_accounts_have_no_keys_and_nothing_public() -> None:
    for name in ("storage.bicep", "functions.bicep"):
        body = text_of(file(name).root)
        for rule in ("allowBlobPublicAccess: false", "allowSharedKeyAccess: false", "minimumTlsVersion: 'TLS1_2'"):
            assert rule in body, (name, rule)
    zones = {name: _names(MAIN.module(name)[1]["containerNames"]) for name in ("bronze", "silver", "external")}
    assert zones == {"bronze": ["bronze"], "silver": ["silver", "outputs"], "external": ["external"]}
    defaults = {name: Settings.model_fields[f"{name}_container"].default for name in ("silver", "external")}
    assert defaults == {"silver": "silver", "external": "external"}


def _names(array: Node) -> list[str]:
    return [literal(each) for each in MAIN.items(array)]


def test_the_database_allows_the_extensions_that_the_schema_makes_and_no_passwords() -> None:
    made = re.findall(r"CREATE EXTENSION IF NOT EXISTS (\w+)", _script("prepare.sql") + pgstac.script())
    database = file("database.bicep")
    properties = entries(entries(database.body(database.declared("resource")["extensions"]))["properties"])
    assert literal(properties["value"]).split(",") == sorted({name.upper() for name in made})
    assert "passwordAuth: 'Disabled'" in text_of(database.root)


def test_processes_are_probed_where_they_tell_how_they_are() -> None:
    paths = {text_of(each) for each in descendants(file("process.bicep").root) if each.type == "string_content"}
    assert {"/livez", "/readyz"} <= paths
