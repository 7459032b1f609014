"""Whether the launches that stand in host code are served by a translation: each is bound as Triton would, and judged by the text that
was written, however its launches were found."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from gluonize.diagnostics import Diagnostic
from gluonize.judge.inputs.inputs import Inputs
from gluonize.judge.verdict.launch_check import NO_ANSWER, launch_check
from gluonize.read.launches.bound.binding import LaunchBinding
from gluonize.read.launches.bound.completed import BoundLaunch, shown
from gluonize.read.spec.launch import compiled_as
from gluonize.read.text.parsed import parsed_text

STATUSES = ("served", "served-in-part", "not-served", "refused", "unread")


# Options of a launch that a translation asserts.
_ASSERTED_OPTIONS = ("num_warps", "num_ctas")


@dataclass(frozen=True)
class HostLaunch:
    """What is said of one launch in host code. status: of `STATUSES`; where: what has to hold of arguments that host code does not
    show; reason: why it is not served or not read; place: `line 42`, with the file where it is not the kernel's. left: in how many further
    ways it is reached, by other parameters of a test and so on, that nobody looked at."""

    kernel: str
    file: str
    line: int
    place: str
    status: str
    where: tuple[str, ...] = ()
    reason: str = ""
    left: int = 0

    def __str__(self) -> str:
        """One line for people, without the kernel's name."""
        return f"launch at {self.place}: {self.words}"

    @property
    def words(self) -> str:
        where = f" where {_listed(self.where)}" if self.where else ""
        more = f"; {self.left} more way{'s' * (self.left != 1)} to it not looked at" if self.left else ""
        words = {
            "served": f"served{where}",
            "served-in-part": f"served but {self.reason}",
            "not-served": f"not served: {self.reason}",
            "refused": f"not served: Triton refuses it: {self.reason}",
            "unread": f"cannot be read: {self.reason}",
        }
        return words[self.status] + more

    def as_json(self) -> dict:
        return {**asdict(self), "where": list(self.where)}


@dataclass(frozen=True)
class Finding:
    """What becomes of a bound launch: `served`, `not-served` or `refused` with why, or `unread`."""

    bound: BoundLaunch
    status: str
    reason: str = ""


def findings(
    bound: Iterable[BoundLaunch],
    by_text: Mapping[str, Diagnostic | None],
    by_source: Mapping[str, Diagnostic | None],
    text: WrittenText,
) -> list[Finding]:
    """by_text, by_source: why the front end refuses a launch (`compiled_as`) of the text or of the source; what is in neither is
    accepted."""
    return [_finding(way, by_text, by_source, text) for way in bound]


def _finding(way: BoundLaunch, by_text: Mapping, by_source: Mapping, text: WrittenText) -> Finding:
    key = compiled_as(way.spec.as_json())
    theirs, ours = by_source.get(key), by_text.get(key)
    if ours is None and (refusal := text.refusal(way)):
        return Finding(way, "not-served", refusal)
    if ours is None:
        return Finding(way, "served")
    hidden = [name for name in way.unknown if way.binding.arguments[name].kind in ("", "*")]
    if theirs is not None and not hidden:
        return Finding(way, "refused", _reason(theirs))
    if theirs is not None:
        return Finding(way, "unread", f"{_listed(hidden)} {'is' if len(hidden) == 1 else 'are'} not known")
    said = f"{ours.message} {ours.why}"
    named = [text for name, text in way.differs if _names(said, name)] or [text for _, text in way.differs]
    return Finding(way, "not-served", _listed(named[:3]) if named else _reason(ours))


def host_launches(
    bindings: Sequence[LaunchBinding], found: Sequence[Finding], source: str, asserted: Mapping[str, frozenset[str]],
    untranslated: Mapping[str, str],
) -> tuple[HostLaunch, ...]:  # fmt: skip
    """One for each launch site, in the order of the bindings. asserted: the arguments that the assertions of a kernel in the text speak
    of; untranslated: why a kernel has no translation."""
    sites: dict[tuple[str, str, int], list[LaunchBinding]] = {}
    for binding in bindings:
        sites.setdefault((binding.kernel, binding.path, binding.line), []).append(binding)
    out = []
    for (kernel, path, line), own in sites.items():
        same_file = os.path.realpath(path) == os.path.realpath(source)
        place = f"line {line}" if same_file else f"{os.path.basename(path)}:{line}"
        launch = HostLaunch(kernel, path, line, place, "served", left=sum(binding.left for binding in own))
        mine = [finding for finding in found if any(finding.bound.binding is binding for binding in own)]
        if unread := next((binding for binding in own if binding.problem), None):
            behind = f" (line {unread.problem_line})" if unread.problem_line not in (0, line) else ""
            out.append(replace(launch, status="unread", reason=f"{unread.problem}{behind}"))
        elif kernel in untranslated:
            out.append(replace(launch, status="not-served", reason=untranslated[kernel]))
        elif mine:
            out.append(_of_site(launch, mine, asserted.get(kernel, frozenset())))
    return tuple(out)


def _of_site(launch: HostLaunch, found: list[Finding], asserted: frozenset[str]) -> HostLaunch:
    """What is said of a launch that is reached in several ways, or with several configurations."""
    for status in ("not-served", "refused"):
        wrong = [finding for finding in found if finding.status == status]
        if not wrong:
            continue
        served = [finding for finding in found if finding.status == "served"]
        callers = [{id(f.bound.binding) for f in part} for part in (wrong, served)]
        if served and callers[0] <= callers[1]:
            reason = f"for {_configs(wrong, served)}"
            return replace(launch, status="served-in-part", reason=reason)
        first = next(f for f in wrong if id(f.bound.binding) not in callers[1])
        caller = first.bound.binding.caller
        reason = f"{first.reason}, {caller}" if caller and served else first.reason
        return replace(launch, status=status, reason=reason)
    if unread := next((finding for finding in found if finding.status == "unread"), None):
        return replace(launch, status="unread", reason=unread.reason)
    return replace(launch, where=_where(found[0].bound, asserted))


def _where(way: BoundLaunch, asserted: frozenset[str]) -> tuple[str, ...]:
    """What the text asserts of arguments that host code does not show."""
    together: dict[str, list[str]] = {}
    for name in way.unknown:
        kind, known = way.spec.signature.get(name), way.binding.arguments[name]
        if kind == "constexpr" and (name in asserted or not known.is_constexpr):
            together.setdefault(shown(way.spec.constexprs.get(name)), []).append(name)
        elif isinstance(kind, str) and kind.startswith("*") and name in asserted:
            together.setdefault(kind[1:], []).append(name)
    for name in _ASSERTED_OPTIONS:
        if name in way.binding.open_options and name in way.spec.options:
            together.setdefault(str(way.spec.options[name]), []).append(name)
    return tuple(f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {value}" for value, names in together.items())


def _configs(wrong: list[Finding], served: list[Finding]) -> str:
    """The configurations that are not served: by the one value that they alone have, else one by one."""
    rows = [[{**f.bound.config.constexprs, **f.bound.config.options} for f in part] for part in (wrong, served)]
    for name in rows[0][0]:
        values = [[row.get(name) for row in part] for part in rows]
        if not any(value in values[1] for value in values[0]):
            return f"{name} {_listed([str(value) for value in dict.fromkeys(map(shown, values[0]))])}"
    varying = [n for n in rows[0][0] if len({repr(row.get(n)) for part in rows for row in part}) > 1]
    rows_shown = list(dict.fromkeys(" ".join(f"{n} {shown(row.get(n))}" for n in varying) for row in rows[0]))
    return f"{len(rows_shown)} configurations ({'; '.join(rows_shown[:2])}{'; ...' if len(rows_shown) > 2 else ''})"


class WrittenText:
    """What a text itself asks of launches, for those of its kernels."""

    def __init__(self, text: str):
        self.tree = parsed_text(text)
        self.kernels = {n.name: n for n in self.tree.body if isinstance(n, ast.FunctionDef)}

    def refusal(self, way: BoundLaunch) -> str:
        """What the check before a launch refuses of the numbers that host code shows; "" where it refuses nothing that is known."""
        numbers = {n: v.number for n, v in way.binding.arguments.items() if v.number is not None}
        numbers |= {n: _any_descriptor(k) for n, k in way.spec.signature.items() if str(k).startswith("tensordesc")}
        known = {n: v for n, v in way.spec.constexprs.items() if n not in way.unknown}
        check = launch_check(self.tree, way.spec.kernel, replace(way.spec, constexprs=known), {})
        said = check(Inputs(numbers))
        return "" if said.startswith(NO_ANSWER) else said.partition(": ")[2] or said

    def asserted(self, kernel: str) -> frozenset[str]:
        """The names of what a kernel of the text asserts a value of; what it only excludes (`!=`) is none."""
        node = self.kernels.get(kernel.rpartition(".")[2])
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)] if node is not None else []
        conditions = [c.args[0] for c in calls if ast.unparse(c.func).endswith("static_assert") and c.args]
        excluded = [c for condition in conditions for c in ast.walk(condition) if isinstance(c, ast.Compare)]
        excluded = [n for c in excluded if isinstance(c.ops[0], ast.NotEq) for n in ast.walk(c)]
        return frozenset(n.id for c in conditions for n in ast.walk(c) if isinstance(n, ast.Name) and n not in excluded)


def _any_descriptor(kind: Any) -> tuple:
    """Something in the place of a descriptor, which is given as (base, shape, strides): of zeros, which no check refuses."""
    rank = str(kind).count(",") + 1
    return None, (0,) * rank, (0,) * rank


def _reason(found: Diagnostic) -> str:
    """Why, with the line of the file."""
    lines = (found.why or found.message).splitlines()
    return f"{lines[0].strip()}{f' (line {found.line})' if found.line else ''}"


def _names(text: str, name: str) -> bool:
    words = "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
    return name in words


def _listed(items: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))
