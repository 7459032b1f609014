"""A whole output file without the source's host code: header, imports, constants, helpers, kernels, launch checks."""

from __future__ import annotations

import ast
import os
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
from gluonize.gluon.imports import in_order
from gluonize.gluon.trees.function import BLANK, JIT, Block, definitions, formatted, with_lines_above
from gluonize.gluon.trees.origins import Printed
from gluonize.numbered import numbered
from gluonize.output.contracts.launch_checks import SWITCH, Asked, Checks, asked_of
from gluonize.output.file.author import apart
from gluonize.output.file.import_aliases import aliases
from gluonize.output.merging.helper_pool import HelperPool
from gluonize.output.merging.kernel_family import Family, KernelVersion, families_of
from gluonize.output.programs.runs import persistent_run, stream_k_run
from gluonize.read.files.generated_names import CHECKS
from gluonize.read.names.file_names import FileNames
from gluonize.read.spec.launch import LaunchSpec
from gluonize.read.text.style import DEFAULT_LINE_LENGTH
from gluonize.rules.targets import target as target_row
from gluonize.triton_api.differences import FP_FUSION
from gluonize.write.contracts.prelude import BASE_IMPORTS, Prelude

NUMERIC = (FP_FUSION, "allow_flush_denorm")  # options of launches that change numbers
_MORE = "#     "  # the start of a comment's further lines


@dataclass(frozen=True)
class SourceFacts:
    """Where the source is, a digest of its text, the target, the tool's version, what was assumed while reading, the
    columns that the output's lines may have, options that kernels are launched with by choice: (kernel, option, value),
    the version of Triton that the output is for, "" for that of the vocabulary, and whether that fuses products with sums where a launch
    does not say (`enable_fp_fusion`).
    """

    path: str
    digest: str
    target: str
    version: str
    assumptions: tuple[str, ...] = ()
    line_length: int = DEFAULT_LINE_LENGTH
    options: tuple[tuple[str, str, int | str], ...] = ()
    triton: str = ""
    fuses: bool = True


def names_in(versions: Sequence[KernelVersion]) -> set[str]:
    """The names that the kernels and helpers bind, or that they take from outside: a helper may not take these."""
    found = {v.emitted.kernel.name for v in versions}
    for version in versions:
        found |= set(version.emitted.record.globals_needed)
        found = found.union(*(f.function.bound for f in (version.emitted.kernel, *version.emitted.helpers)))
    return found


def standalone_module(versions: Sequence[KernelVersion], facts: SourceFacts) -> tuple[str, tuple[str, ...]]:
    """A file with the kernels and what they need, without the source's host code; -> text and notes."""
    prelude = Prelude()
    pool = HelperPool(lambda fn: fn.__name__, names_in(versions))
    families = families_of(versions, pool)
    for version in versions:
        for name, (value, user) in version.emitted.record.globals_needed.items():
            prelude.add(name, value, user)
        prelude.imports |= version.emitted.record.imports
    blocks = [*prelude.definitions, *(h.block for h in pool.helpers)]
    asked = [asked_by(family) for family in families]
    checks = checks_of(asked, pool.taken | prelude.names.keys(), facts)
    blocks += [definitions(formatted(checks.function()))] if checks else []
    for family, of_launches in zip(families, asked):
        blocks += [*family.before, (family.function.defined(JIT),)]
        if family.tiles is not None:
            blocks += [definitions(persistent_run(family.name, family.name, family.tiles))]
        if checks.arguments(of_launches):
            blocks += [definitions(formatted(checks.call(family.name, of_launches)))]
        if family.shared is not None:
            blocks += [definitions(stream_k_run(family.name, family.name, family.shared))]
        others = {v.spec.kernel.rpartition(".")[2] for v in family.versions} - {family.name}
        blocks += [definitions(f"{name} = {family.name}") for name in sorted(others)]
    notes = tuple(note for family in families for note in family.notes)
    return Printed.of(_laid_out(header(families, facts), prelude, blocks, facts.triton)), notes


def asked_by(family: Family) -> Asked:
    """What a kernel asks of launches."""
    return asked_of(family.contract, family.loaded.fn, [version.spec for version in family.versions])


def checks_of(asked: Sequence[Asked], taken: Collection[str], facts: SourceFacts, returns: bool = False) -> Checks:
    """The launch checks of a file. taken: names that it has already; returns: whether what installs them is a decorator of some kernel."""
    fusion = ((FP_FUSION, facts.fuses),)
    return Checks(tuple(asked), numbered(CHECKS, taken.__contains__), facts.line_length, returns, fusion)


def _laid_out(header: str, prelude: Prelude, blocks: Sequence[Block], triton: str) -> cst.Module:
    """A file of imports, constants and definitions, in the words of a Triton."""
    new = [*prelude.constants, *(s for block in blocks for s in block)]
    needed = in_order({*BASE_IMPORTS, *prelude.imports})
    given = aliases(needed, new, FileNames(ast.Module([], [])), triton)
    imports = [line.statement for line in given.imported(needed)]
    constants = [given.within(s) for s in prelude.constants]
    gaps = [with_lines_above(part[0], (BLANK,)) for part in (imports, constants) if part]
    parts = [*gaps[:1], *imports[1:], *gaps[1:], *constants[1:]]
    parts += [given.within(s) for block in blocks for s in apart(block)]
    return cst.Module(parts, header=[cst.EmptyLine(comment=cst.Comment(line)) for line in header.split("\n")])


_CHECKED = f"A launch that breaks an assumption is refused; with {SWITCH}=0 in the environment none is checked."
_SERVED = "runs as an earlier launch: device code does not see num_stages"


def header(families: Sequence[Family], facts: SourceFacts) -> str:
    """Comment lines: tool, source, target, the launches and what the code relies on."""
    row = target_row(facts.target)
    lines = [
        f"# Generated by gluonize {facts.version} from {os.path.basename(facts.path)} (sha256 {facts.digest})",
        f"# for {facts.target} ({row.architecture}, wave{row.warp_size}), {FP_FUSION}={facts.fuses}.",
    ]
    for family in families:
        told: set[int] = set()
        for i, version in enumerate(family.versions):
            if version.like is not None or version.apart or i in told:
                continue  # told with the launch that it is like, or with its layouts
            near = [j for j, v in enumerate(family.versions) if j > i and j not in told and _near(version, v, family)]
            told |= {*near}
            lines.append(f"# {family.name}: {describe_launch(version)}")
            beside = told_beside(version.spec, family.versions, [family.versions[j].spec for j in near])
            lines += [f"#   and {beside} as well"] if beside else []
            lines += [f"#   {_SERVED}"] if version.spec.id in family.untold else []
        lines += [f"#   assumes {line}" for line in family.contract.lines()]
        lines += dict.fromkeys(
            f"#   {line}" for version in family.versions for line in version.emitted.record.explained
        )
    lines += [f"# {_CHECKED}"] if any(family.contract for family in families) else []
    lines += [f"# {line}" for line in facts.assumptions]
    return "\n".join(part for line in lines for part in _wrapped(line, facts.line_length))


def _wrapped(line: str, width: int) -> list[str]:
    """A comment of at most `width` columns, broken between its parts; a part that is longer, between its words."""
    out, current = [], ""
    for part in line.split(", "):
        if current and len(current) + len(part) + 7 > width:
            out.append(current + ",")
            current = _MORE + part
        else:
            current = f"{current}, {part}" if current else part
    filled = textwrap.TextWrapper(width, subsequent_indent=_MORE, break_long_words=False, break_on_hyphens=False)
    return [piece for row in (*out, current) for piece in (filled.wrap(row) if len(row) > width else [row])]


def describe_launch(version: KernelVersion) -> str:
    """`4 warps, num_stages=2, x_ptr *fp16, BLOCK=1024`."""
    spec = version.spec
    stages = spec.options.get("num_stages")
    kinds: dict[str, list[str]] = {}
    for name, kind in spec.signature.items():
        if isinstance(kind, str) and (kind.startswith("*") or kind.startswith("tensordesc")):
            kinds.setdefault(kind, []).append(name)
    pointers = [f"{', '.join(names)} {kind}" for kind, names in kinds.items()]
    values = [f"{n}={value}" for n, v in spec.constexprs.items() if (value := _value(v)) is not None]
    ctas = spec.options.get("num_ctas", 1)
    warps = [f"{version.num_warps} warps", *([f"num_stages={stages}"] if stages is not None else [])]
    warps += [f"num_ctas={ctas}"] if ctas > 1 else []
    warps += [f"{name}={spec.options[name]}" for name in ("waves_per_eu", "llvm_fn_attrs") if spec.options.get(name)]
    warps += [f"{name}={spec.options[name]}" for name in NUMERIC if spec.options.get(name) is not None]
    return ", ".join([*warps, *pointers, *values])


def _value(given: Any) -> str | None:
    """A constexpr of a launch in a line of text: a number, a text, the name of a function or a type; None for what takes more words."""
    if isinstance(given, dict):
        word = given.get("$jit", given.get("$dtype"))
        return None if word is None else str(word).rpartition(":")[2]
    return str(given) if given is None or isinstance(given, (int, bool, str)) else None


def _near(version: KernelVersion, other: KernelVersion, family: Family) -> bool:
    """Whether a launch is told by what it has instead of what another one has: other types, or one other value."""
    if other.like is not None or other.apart or {version.spec.id, other.spec.id} & {*family.untold}:
        return False
    if other.num_warps != version.num_warps or other.spec.options != version.spec.options:
        return False
    types = [name for name, kind in other.spec.signature.items() if kind != version.spec.signature.get(name)]
    values = len([*changes(version.spec, other.spec)]) - len(types)
    return bool(types) and values == 0 or values == 1 and not types


def told_beside(spec: LaunchSpec, versions: Sequence[KernelVersion], near: Sequence[LaunchSpec] = ()) -> str:
    """`a_ptr, b_ptr *bf16, *fp32; CAUSAL=False`: what those of the versions that are like a launch have instead, and launches near it; ""
    where none is."""
    told: dict[str, list[str]] = {}
    for other in (*near, *(version.spec for version in versions if version.like == spec)):
        names = [name for name, kind in other.signature.items() if kind != spec.signature.get(name)]
        kinds = {other.signature[name] for name in names}
        if len(kinds) == 1 and other.constexprs == spec.constexprs:
            told.setdefault(", ".join(names), []).append(kinds.pop())
        else:
            told[", ".join(changes(spec, other))] = []
    return "; ".join(f"{what} {', '.join(kinds)}" if kinds else what for what, kinds in told.items())


def changes(spec: LaunchSpec, other: LaunchSpec) -> Iterator[str]:
    """`CAUSAL=False`, `bias_ptr *fp16`: what another launch has instead of what `spec` has."""
    for name, kind in other.signature.items():
        if kind != spec.signature.get(name) and kind != "constexpr":
            yield f"{name} {kind}"
    for name, value in other.constexprs.items():
        if name not in spec.constexprs or value != spec.constexprs[name]:
            yield f"{name}={value}"
