"""Whose definition of a workflow counts, when orchestrators have different files."""

import pytest

from graticule.core.ids import OwnerId, WorkflowHash, WorkflowId
from graticule.core.models.engine import DefinitionSource
from graticule.repositories.workflow_definitions import DefinitionKey, WorkflowHolder
from graticule.services.workflow_precedence import (
    ClusterView,
    LocalWorkflow,
    announcements_of_reload,
    announcements_of_start,
)

FLOW = WorkflowId("flow")
SHIPPED, FOLDER = DefinitionSource.SHIPPED, DefinitionSource.FOLDER
OLD, NEW = WorkflowHash("old"), WorkflowHash("new")


def key(
    content: WorkflowHash,
    *,
    is_current: bool = True,
    source: DefinitionSource = SHIPPED,
    release: str = "1.0",
    is_reload: bool = False,
) -> DefinitionKey:
    return DefinitionKey(
        workflow_id=FLOW,
        workflow_hash=content,
        is_current=is_current,
        source=source,
        program_version=release,
        is_reload=is_reload,
    )


def holder(content: WorkflowHash | None = None, release: str = "1.0") -> WorkflowHolder:
    return WorkflowHolder(
        owner_id=OwnerId("other"),
        hostname="host",
        program_version=release,
        workflows={} if content is None else {FLOW: content},
        workflow_problems=[],
        has_session=True,
    )


def superseded(content: WorkflowHash) -> DefinitionKey:
    return key(content, is_current=False)


STARTS = {
    "nobody announced it": ([], [], SHIPPED, "1.0", True),
    "it is the current one": ([key(OLD)], [], SHIPPED, "1.0", False),
    "its content is new": ([key(NEW)], [holder(NEW)], SHIPPED, "1.0", True),
    "it was superseded": ([key(NEW), superseded(OLD)], [holder(NEW)], SHIPPED, "1.0", False),
    "it was superseded, and the other is away": ([key(NEW), superseded(OLD)], [holder()], SHIPPED, "1.0", False),
    "an older release": ([key(NEW, release="1.10")], [holder(NEW, "1.10")], SHIPPED, "1.9", False),
    "a newer release": ([key(NEW, release="1.9"), superseded(OLD)], [holder(NEW, "1.9")], SHIPPED, "1.10", True),
    "a newer release, after a reload": (
        [key(NEW, release="1.9", is_reload=True), superseded(OLD)],
        [holder(NEW, "1.9")],
        SHIPPED,
        "1.10",
        False,
    ),
    "a release that was rolled back": ([key(NEW, release="1.1"), superseded(OLD)], [holder()], SHIPPED, "1.0", True),
    "a shipped one instead of a folder's": ([key(NEW, source=FOLDER)], [holder(NEW)], SHIPPED, "1.1", False),
    "a folder's instead of a shipped one": ([key(NEW, release="1.1")], [holder(NEW)], FOLDER, "1.0", True),
}


@pytest.mark.parametrize("case", STARTS)
def test_an_instance_that_starts_announces(case: str) -> None:
    keys, others, source, release, is_announced = STARTS[case]
    found = announcements_of_start({FLOW: LocalWorkflow(OLD, source)}, ClusterView(keys, others), release)
    assert (found.announced == {FLOW}, found.withdrawn) == (is_announced, frozenset())


@pytest.mark.parametrize(
    ("changed", "others", "is_announced"),
    [({FLOW}, [holder(NEW)], True), (set(), [holder(NEW)], False), (set(), [holder()], True)],
)
def test_a_reload_announces_what_changed_or_what_nobody_else_has(
    changed: set[str], others: list[WorkflowHolder], is_announced: bool
) -> None:
    view = ClusterView([key(NEW, source=FOLDER, release="9", is_reload=True), superseded(OLD)], others)
    found = announcements_of_reload({FLOW: LocalWorkflow(OLD, SHIPPED)}, view, changed=changed, broken=())
    assert (found.announced == {FLOW}) is is_announced


@pytest.mark.parametrize(
    ("others", "broken", "is_withdrawn"),
    [([], set(), True), ([holder(OLD)], set(), False), ([holder()], set(), True), ([], {FLOW}, False)],
)
def test_a_reload_withdraws_what_no_instance_has_any_more(
    others: list[WorkflowHolder], broken: set[str], is_withdrawn: bool
) -> None:
    found = announcements_of_reload({}, ClusterView([key(NEW)], others), changed=(), broken=broken)
    assert (found.withdrawn == {FLOW}) is is_withdrawn
