"""A partner's own field names, and the domain's: translated by the row of the registry alone."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from graticule.core.asset_names import RefValue
from graticule.core.errors import InvalidInput, fault_message
from graticule.core.exchange import ACCESS_LEVEL, PlatformSubmission, rename_access_level
from graticule.core.models.platform import Platform

DOMAIN_FIELDS: Final = tuple(PlatformSubmission.model_fields)
REFS: Final = "platform_refs"
LABEL: Final = "version_label"
MOST_NAMES: Final = 30  # that a message repeats
LONGEST_NAME: Final = 64

Words = Mapping[str, tuple[str, ...]]  # the fields of a form, and where each has its place in the domain's


class PartnerRefs(NamedTuple):
    """The refs of a submission: what identifies the dataset, and what is kept beside it."""

    identity: dict[str, RefValue]
    kept: dict[str, RefValue]


def split_refs(platform: Platform, refs: Mapping[str, RefValue]) -> PartnerRefs:
    """Tell the refs that identify a dataset from the optional ones; one that is missing or unknown is refused."""
    known = [*platform.required_refs, *platform.optional_refs]
    if unknown := [name for name in refs if name not in known]:
        raise InvalidInput(
            f"{platform.platform_id} has no ref {_listed(unknown)}. Its refs are {_listed(known)}.",
            hint=f"The version is no ref: send it as {LABEL}." if platform.version_ref in unknown else None,
        )
    if missing := [name for name in platform.required_refs if name not in refs]:
        raise InvalidInput(f"What identifies a dataset of {platform.platform_id} is missing: {_listed(missing)}.")
    return PartnerRefs(
        {name: refs[name] for name in platform.required_refs},
        {name: refs[name] for name in platform.optional_refs if name in refs},
    )


def translate(platform: Platform, body: Mapping[str, Any]) -> dict[str, Any]:
    """Give a submission in the domain's words, whether it came in these or in the partner's own flat form.

    What comes out is a valid `PlatformSubmission`; what is wrong is told in the words that were sent.
    """
    if body.get("platform_id", platform.platform_id) != platform.platform_id:
        raise InvalidInput(f"platform_id is not {platform.platform_id}.")
    own = _own_words(platform)
    body = body if ACCESS_LEVEL in own else _with_clearance_level(body)
    words = {name: (name,) for name in DOMAIN_FIELDS} if REFS in body else own
    _refuse_mixture(platform, body, own)
    if unknown := [name for name in body if name not in words]:
        raise InvalidInput(f"There is no field {_listed(unknown)} here. The fields are {_listed(words)}.")
    submission = _placed(body, words)
    if isinstance(refs := submission[REFS], Mapping):
        split_refs(platform, refs)
    _check({"platform_id": platform.platform_id, **submission}, words)
    return {"platform_id": platform.platform_id, **submission}


def _with_clearance_level(body: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return rename_access_level(body)
    except ValueError as error:
        raise InvalidInput(f"{error}.") from error


def _own_words(platform: Platform) -> dict[str, tuple[str, ...]]:
    """Give the fields of the partner's flat form; of the domain's it has those that have nothing to do with names."""
    refs = {name: (REFS, name) for name in (*platform.required_refs, *platform.optional_refs)}
    shared = {name: (name,) for name in DOMAIN_FIELDS if name not in {*refs, REFS, LABEL}}
    return {**refs, platform.version_ref: (LABEL,), **shared}


def _refuse_mixture(platform: Platform, body: Mapping[str, Any], own: Words) -> None:
    if REFS in body:
        strange = [name for name in body if name in own and name not in DOMAIN_FIELDS]
    else:
        strange = [LABEL] if LABEL in body and LABEL not in own else []
    if strange:
        raise InvalidInput(
            f"The body mixes two forms: {_listed(strange)} has no place beside "
            f"{REFS if REFS in body else f'the fields of {platform.platform_id}'}.",
            hint=f"Send {REFS} with {LABEL}, or {_listed([*platform.required_refs, platform.version_ref])}.",
        )


def _placed(body: Mapping[str, Any], words: Words) -> dict[str, Any]:
    """Put each field where the domain has it."""
    placed: dict[str, Any] = {} if REFS in body else {REFS: {}}
    for name, value in body.items():
        match words[name]:
            case (_, ref):
                placed[REFS][ref] = value
            case (field,):
                placed[field] = value
    return placed


def _check(submission: Mapping[str, Any], words: Words) -> None:
    """Refuse what is no submission, and name the fields as they were sent."""
    try:
        PlatformSubmission.model_validate(submission)
    except ValidationError as error:
        faults: dict[str, list[str]] = {}
        for fault in error.errors(include_url=False, include_context=False, include_input=False):
            faults.setdefault(_sent_as(fault["loc"], words), []).append(fault_message(fault))
        told = [": ".join(filter(None, (name, ", or: ".join(said)))) for name, said in faults.items()]
        raise InvalidInput(f"The submission is not valid. {'; '.join(told[:MOST_NAMES])}.") from error


def _sent_as(place: tuple[int | str, ...], words: Words) -> str:
    """Give the name of the field at a place of the domain's form, in the words of the form that was sent."""
    for name, field in words.items():
        if place[: len(field)] == field:
            deeper = [str(step) for step in place[len(field) : len(field) + 1]] if name == REFS else []
            return _listed([".".join([name, *deeper])])
    return ""


def _listed(names: Iterable[object]) -> str:
    """Write names that may have come from anyone: printable, and of bounded length."""
    told = [str(name)[:LONGEST_NAME].encode("unicode_escape").decode("ascii") for name in names]
    return ", ".join(told[:MOST_NAMES]) + (", …" if len(told) > MOST_NAMES else "")
