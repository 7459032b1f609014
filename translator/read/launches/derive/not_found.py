"""Why no launch of a kernel is accepted: the cause, its line, and what helps against it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from gluonize.diagnostics import Diagnostic, did_you_mean
from gluonize.read.kernels.load import says_missing
from gluonize.read.launches.derive.evidence import Evidence
from gluonize.read.launches.derive.proposal.revise import ONE_OF
from gluonize.read.launches.derive.proposal.verdict import Verdict
from gluonize.read.text.depth import LESS_DEEP, TOO_DEEP
from gluonize.read.text.moved_lines import file_line
from gluonize.triton_api.language import tl

_NAMES = 4  # arguments that are named
_WRAPPED = re.compile(r"""^\w+(?:Error|Exception)\((['"])(.*)\1\)$""")
_NO = "no value of an argument helps"
_HOST = " belongs to the host: a kernel sees tl, what is a tl.constexpr, and @triton.jit functions"
_SYNTAX = re.compile(r"unsupported AST node type: (\w+)")
_SHAPES = re.compile(r"incompatible dimensions|equal reduction dimensions")
_KEYWORD = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_NO_NAME = re.compile(r"module 'triton\.language(?:\.core)?' has no attribute '(\w+)'")
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
            if "." in name and (meant := _in_triton(name)):
                return Diagnostic("spec-not-found", what, *place, name + _HOST, meant)
            return Diagnostic("spec-not-found", what, *place, known.why or message, known.help)
    if settings:
        said = " and ".join(f"{name}={value}" for name, value in settings.items())
        help = f"there is a launch without --set {said}: give another value"
    elif "is not defined" in message:
        help = f"{_NO}: define the name in the file, or import it from a module that can be read"
    elif found := re.search(r"Cannot access global variable (\w+)", message):
        message = f"{found[1]} is a plain number of the module: a kernel sees only what is a tl.constexpr"
        help = f"{_NO}: bind {found[1]} to tl.constexpr(...) in the source"
    elif found := _SYNTAX.search(message):
        message = f"Triton's language has no `{found[1].lower()}`"
        help = f"{_NO}: write it without, with a condition, a mask or tl.where"
    elif found := _KEYWORD.search(message):
        message = f"{found[1]} has no argument {found[2]}"
        help = did_you_mean(found[2], _parameters(found[1]), f"{_NO}: {found[1]} takes other arguments")
    elif found := _NO_NAME.search(message):
        help = did_you_mean(found[1], dir(tl), f"{_NO}: this version of Triton does not have it")
    elif ("'HostName' object" in message or "forget to add @triton.jit" in message) and (
        host := _of_host(evidence, verdict)
    ):
        message, help = host + _HOST, _in_triton(host) or f"{_NO}: write what Triton has for it"
    elif "extra.hip.libdevice" in message:
        help = f"{_NO}: Triton's device library for AMD GPUs does not have it"
    elif ONE_OF in message and _writes(evidence, verdict, message.rpartition(" ")[2]):
        help = f"{_NO}: Triton does not have it on this target; write one of those that it has"
    elif message == TOO_DEEP:
        help = LESS_DEEP
    elif verdict is not None and verdict.message.startswith("NotImplementedError"):
        help = f"{_NO}: Triton does not have it, write it otherwise"
    elif _SHAPES.search(message):
        help = f"the shapes of this statement do not fit: mend it, or give other sizes with --set, or {CAPTURE}"
    elif _GONE.search(message):
        help = f"{_NO}: this version of Triton does not have it"
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


def _parameters(function: str) -> tuple[str, ...]:
    """The arguments of a function of Triton's language; () where it has none of this name."""
    found = getattr(tl, function, None)
    return tuple(inspect.signature(found).parameters) if inspect.isfunction(found) else ()


def _in_triton(name: str) -> str:
    """What of Triton's language has the last name of `np.sqrt`, as a question; "" where nothing has."""
    last = name.rpartition(".")[2]
    return f"did you mean tl.{last}?" if hasattr(tl, last) else ""


def _of_host(evidence: Evidence, verdict: Verdict | None) -> str:
    """What belongs to a module that is not imported at the place, such as `torch.float16`; "" where nothing does."""
    for part in _parts(evidence, verdict):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            module = evidence.loaded.fn.__globals__.get(part.value.id)
            if isinstance(module, ModuleType) and not module.__name__.startswith("triton"):
                return ast.unparse(part)
    return ""


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
