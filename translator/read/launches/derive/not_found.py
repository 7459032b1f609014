"""Why no launch of a kernel is accepted: the cause, its line, and what helps against it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from gluonize.diagnostics import Diagnostic
from gluonize.read.files.depth import LESS_DEEP, TOO_DEEP
from gluonize.read.files.moved_lines import file_line
from gluonize.read.kernels.load import says_missing
from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.proposal.revise import ONE_OF
from gluonize.read.launches.derive.proposal.verdict import Verdict

_NAMES = 4  # arguments that are named
_WRAPPED = re.compile(r"""^(?:NameError|AttributeError)\((['"])(.*)\1\)$""")
_GONE = re.compile(r"(been|was|were) removed|no longer|deprecated|NotImplementedError|has no attribute", re.I)
CAPTURE = "record its launches with gluonize capture"


def not_found(evidence: Evidence, verdict: Verdict | None, settings: Mapping[str, Any] = {}) -> Diagnostic:
    """The refusal of a kernel that the front end takes in no launch, by what it said of the one that got furthest. settings: those without
    which there is one."""
    what = f"{evidence.name}: no launch was found that Triton accepts"
    message = _plain(verdict.message if verdict is not None else "")
    home = evidence.loaded.path, evidence.node.lineno, evidence.node.col_offset + 1
    place = _place(evidence, verdict) or home
    for (_, name), known in evidence.loaded.unresolved.items():
        if says_missing(message, name) and "NameError" not in known.why:
            return Diagnostic("spec-not-found", what, *place, known.why or message, known.help)
    if settings:
        said = " and ".join(f"{name}={value}" for name, value in settings.items())
        help = f"there is a launch without --set {said}: give another value"
    elif "is not defined" in message:
        help = "no value of an argument helps: define the name in the file, or import it from a module that can be read"
    elif found := re.search(r"Cannot access global variable (\w+)", message):
        message = f"{found[1]} is a plain number of the module: a kernel sees only what is a tl.constexpr"
        help = f"no value of an argument helps: bind {found[1]} to tl.constexpr(...) in the source"
    elif "extra.hip.libdevice" in message:
        help = "no value of an argument helps: Triton's device library for AMD GPUs does not have it"
    elif ONE_OF in message and _writes(evidence, verdict, message.rpartition(" ")[2]):
        help = "no value of an argument helps: Triton does not have it on this target; write one of those that it has"
    elif message == TOO_DEEP:
        help = LESS_DEEP
    elif _GONE.search(message):
        help = "no value of an argument helps: this version of Triton does not have it"
    else:
        help = f"give values with --set{_named(evidence, verdict)}, or {CAPTURE}"
    return Diagnostic("spec-not-found", what, *place, message, help)


def _plain(message: str) -> str:
    """The first line of what the front end says, without the name of Python's error around it."""
    first = message.strip().splitlines()[0] if message.strip() else ""
    found = _WRAPPED.match(first)
    return found[2].replace("\\'", "'") if found else first.removeprefix("AttributeError: ")


def _place(evidence: Evidence, verdict: Verdict | None) -> tuple[str, int, int] | None:
    """Where in which file the front end stops: lines of functions are counted from their own first one."""
    if verdict is None or verdict.place is None:
        return None
    source, (_, line, column, *_) = verdict.place
    for fn in (evidence.loaded.fn, *(helper.value for helper in evidence.loaded.helpers)):
        if fn.src == source:
            return fn.file_name or evidence.loaded.path, file_line(fn, line), column + 1
    return None


def _named(evidence: Evidence, verdict: Verdict | None) -> str:
    """The arguments that the value at the place comes from, as examples of what to set."""
    found = [
        origin.name
        for inner in _parts(evidence, verdict)
        for origin in sorted(evidence.flow.of(inner).origins, key=lambda origin: origin.name)
        if origin.name in evidence.parameters
    ]
    names = list(dict.fromkeys(found))[:_NAMES]
    return f" (it comes from {', '.join(names)})" if names else ""


def _writes(evidence: Evidence, verdict: Verdict | None, text: str) -> bool:
    """Whether a text is written out at the place, so that no argument changes it."""
    return any(isinstance(part, ast.Constant) and part.value == text for part in _parts(evidence, verdict))


def _parts(evidence: Evidence, verdict: Verdict | None) -> list[ast.AST]:
    """The expression at the place, and all in it."""
    if verdict is None or verdict.place is None or verdict.place[0] not in evidence.flow.functions:
        return []
    function, (_, *key) = evidence.flow.functions[verdict.place[0]], verdict.place[1]
    return [
        inner
        for node in ast.walk(function.node)
        if hasattr(node, "lineno") and [node.lineno, node.col_offset, node.end_lineno, node.end_col_offset] == key
        for inner in ast.walk(node)
    ]
