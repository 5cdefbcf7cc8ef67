"""What the templates of a workflow mention must exist, and must be there when the template is rendered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from graticule.dag.compiling.drafts import Draft, Written
from graticule.dag.compiling.upstream import Upstream
from graticule.dag.language.references import Reference
from graticule.dag.problems import Problems, did_you_mean
from graticule.dag.templates import TemplateError, condition_references, references

NAMES: Final = frozenset({"inputs", "nodes", "job", "env", "stages"})
PER_ITEM: Final = frozenset({"item", "index"})
_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "nodes": frozenset({"output", "status"}),
    "stages": frozenset({"results"}),
}
_JOB: Final = frozenset({"job_id", "workflow_id"})


@dataclass(slots=True)
class Mentions:
    """Checks the templates of one workflow."""

    drafts: Mapping[str, Draft]
    inputs: frozenset[str]
    stages: Mapping[str, str]  # the node that has the results of each stage
    upstream: Upstream | None  # None: the graph has cycles, and nobody can tell
    problems: Problems
    _told: set[tuple[str, str]] = field(default_factory=set)

    def check(self) -> None:
        """Check every template of every node."""
        for draft in self.drafts.values():
            for written in draft.written:
                self._check(draft, written)

    def _check(self, draft: Draft, written: Written) -> None:
        try:
            found = condition_references(written.text) if written.is_expression else references(written.text)
        except TemplateError as error:
            message = f"The expression `{written.text}` in {written.where} cannot be used: {error.reason}."
            self._error(draft, written, "bad_template", message)
            return
        for reference in sorted(found.found, key=str):
            self._check_reference(draft, written, reference)

    def _check_reference(self, draft: Draft, written: Written, reference: Reference) -> None:
        root, key = reference.root, reference.key
        if root in PER_ITEM:
            if not written.per_item:
                message = f"'{root}' in {written.where} exists only in 'task' and 'key' of a fan_out."
                self._error(draft, written, "no_item", message)
        elif root not in NAMES:
            hint = did_you_mean(root, NAMES | (PER_ITEM if written.per_item else frozenset()))
            self._error(draft, written, "unknown_name", f"'{root}' in {written.where} is not defined.", hint)
        elif root == "inputs" and key is not None and key not in self.inputs:
            message = f"'inputs.{key}' in {written.where} is not declared under 'inputs'."
            self._error(draft, written, "unknown_input", message, did_you_mean(key, self.inputs))
        elif root == "job" and key is not None and key not in _JOB:
            message = f"'job.{key}' in {written.where} does not exist."
            self._error(draft, written, "unknown_name", message, did_you_mean(key, _JOB))
        elif root in _FIELDS:
            self._check_result(draft, written, reference)

    def _check_result(self, draft: Draft, written: Written, reference: Reference) -> None:
        """Check `nodes.x.output` and `stages.x.results`."""
        root, key, known = reference.root, reference.key, self._known(reference.root)
        if key is None:
            message = f"'{root}' in {written.where} must be followed by a name, such as '{root}.prepare'."
            self._error(draft, written, "unnamed", message)
        elif key not in known:
            message = f"'{root}.{key}' in {written.where} does not exist."
            self._error(draft, written, "unknown_node", message, did_you_mean(key, known))
        elif reference.field is not None and reference.field not in _FIELDS[root]:
            message = f"'{root}.{key}.{reference.field}' in {written.where} does not exist."
            hint = did_you_mean(reference.field, _FIELDS[root])
            self._error(draft, written, "unknown_name", message, hint)
        else:
            self._check_order(draft, written, reference, known[key])

    def _known(self, root: str) -> Mapping[str, str]:
        return self.stages if root == "stages" else {node_id: node_id for node_id in self.drafts}

    def _check_order(self, draft: Draft, written: Written, reference: Reference, node_id: str) -> None:
        if self.upstream is None:
            return
        name = f"{reference.root}.{reference.key}"
        if not self.upstream.may_precede(node_id, draft.node_id):
            message = f"'{name}' in {written.where} does not run before it."
            self._error(draft, written, "not_upstream", message)
        elif not (_may_be_absent(reference) or self.upstream.always_precedes(node_id, draft.node_id)):
            message = f"'{name}' in {written.where} does not run before it on every way from the start."
            hint = f"Give the value that stands for it then: {{{{ {name}.output.… | default(…) }}}}."
            self._error(draft, written, "not_always_upstream", message, hint)

    def _error(self, draft: Draft, written: Written, code: str, message: str, hint: str | None = None) -> None:
        """Note a problem once for each node: a field stands in the condition of every branch."""
        told = message.replace(written.where, "")
        if (draft.node_id, told) not in self._told or not written.is_expression:
            self._told.add((draft.node_id, told))
            self.problems.error(code, message, written.line, draft.node_id, hint)


def _may_be_absent(reference: Reference) -> bool:
    """Tell whether a mention has an answer for a node that was skipped: it has a status, too."""
    return reference.optional or reference.field == "status"
