"""The table of Gluon's operations: what the installed Triton has of it, what is derived from it, and that Gluon's names stand nowhere else."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from dataclasses import replace
from pathlib import Path

import own_modules
import pytest
import triton
from gluonize.gluon.layout_names import Variant
from gluonize.gluon.trees.function import parsed
from gluonize.gluon.trees.references import References
from gluonize.loops.specialized.partitions import take_apart
from gluonize.loops.specialized.split import CannotSplit
from gluonize.product.cli.doctor import other_parameters
from gluonize.rules import gluon
from gluonize.trace.model.layouts import Blocked
from gluonize.triton_api import jit_functions, row
from gluonize.triton_api.row import place_in
from gluonize.write.function.dead_variants import without_dead_variants
from test_partition_text import SPLIT, TEXT
from triton.experimental.gluon import language as gl

pytestmark = pytest.mark.versions
ROOT = Path(__file__).resolve().parent.parent.parent
FAMILIES = ("cdna3", "cdna4", "cdna5", "rdna3", "rdna4")
# Rows of `rules/builtins.py` for what is not in `gl`: Triton's own library, the device library, what is spelled `tl.NAME`, methods.
IN_MODULES = [op for op in gluon.OPS if not {"gl", gluon.METHOD, gluon.MEMORY} & set(op.home)]
OF_GL = [
    op for op in gluon.OPS if op.home == ("gl",) and op.name not in gluon.BUILTIN_NAMES and op.name != gluon.IDENTITY
]


def _modules(home: str) -> list[object]:
    """The modules of the installed Gluon that stand for one of the table, of every family that has it."""
    found = []
    for family in FAMILIES:
        path = gluon.MODULES[home].path_in(triton.__version__).format(family=family)
        owner, _, name = path.rpartition(".")
        if not path:
            continue
        try:
            found.append(importlib.import_module(path))
        except ImportError:
            try:
                found.append(getattr(importlib.import_module(owner), name))
            except (ImportError, AttributeError):
                continue
    return found


@pytest.mark.parametrize("op", [*IN_MODULES, *OF_GL], ids=lambda op: f"{op.home[0]}.{op.name}")
def test_the_installed_triton_has_what_the_table_says(op: gluon.Op):
    name = op.name_in(triton.__version__)
    if "." in name:
        return  # it is written through `triton.language`, or as a method
    has = [hasattr(module, name or op.name) for home in op.home for module in _modules(home)]
    assert any(has) == bool(name), f"{op.home} {op.name}: add what this Triton calls it to `spelled`"


@pytest.mark.parametrize("op", [op for op in gluon.OPS if gluon.MEMORY in op.home], ids=lambda op: op.name)
def test_places_in_lds_have_the_methods_of_the_table(op: gluon.Op):
    name = op.name_in(triton.__version__)
    assert hasattr(gl.shared_memory_descriptor, name or op.name) == bool(name)


def test_entries_hold_from_their_version_on():
    op = gluon.Op("stop", ("gl",), spelled=(("3.7", "halt"), ("3.10", "hold"), ("3.12", "")))
    said = {v: op.name_in(v) for v in ("3.7.1", "3.8.0", "3.9.0", "3.10.0+git12", "3.11", "3.12.0")}
    assert list(said.values()) == ["halt", "halt", "stop", "hold", "hold", ""]
    assert replace(op, spelled=(("3.9", "rest"),)).name_in("3.9.0") == "rest"  # the vocabulary's own version, patched


# Nothing is pure because nobody knew it --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["buffer_fetch", "gl.fetch", "cdna4.wmma_sparse", "load", "max", "sum", "allocate_shared_memory"]
)
def test_what_has_an_effect_or_is_unknown_is_not_pure(name: str):
    assert not gluon.is_pure(name)


def test_a_partition_does_not_make_again_what_a_renamed_function_gives():
    text = TEXT.replace("    first = i * n", "    first = gl.arange(0, 64, layout=rows) + 0 * {call}")
    text = text.replace("tdm.async_load(a_desc, [0, first + k],", "async_copy.global_to_shared(a_desc + first + k,")
    take_apart(parsed(text.format(call="gl.exp2(i)")), replace(SPLIT, tensors=SPLIT.tensors | {"first"}), "kernel")
    for call in ("gl.fetch(i)", "gl.load(i)", "gl.max(i, 0)"):
        with pytest.raises(CannotSplit, match="comes from memory or a function"):
            take_apart(parsed(text.format(call=call)), replace(SPLIT, tensors=SPLIT.tensors | {"first"}), "kernel")


def test_a_definition_by_a_renamed_function_is_not_dropped():
    trees = References()
    variant = trees.identifier(Variant("p", Blocked((1,), (64,), (4,), (0,)), "full"))
    for call, kept in (("gl.exp2(a)", False), ("gl.relay_out(a)", True)):
        function = trees.function(f"def f(a):\n    p = a + 1\n    {variant} = {call}\n    use(p)")
        assert (call in without_dead_variants(function).text) == kept


# Gluon's names stand in the table, and in text that is written -------------------------------------------------------

# What has a Gluon-like name and is something else.
ELSEWHERE = {
    "translator/gluon/layout_names.py": "what layouts of products are called in outputs",
    "translator/write/products/scaled_dots.py": "what layouts of products are called in outputs",
    "translator/search/candidates.py": "kinds of matrix instructions, of rules/architecture.py",
    "translator/search/confirm.py": "kinds of matrix instructions, of rules/architecture.py",
    "translator/output/kept/layout_counterparts.py": "kinds of matrix instructions, of rules/architecture.py",
    "translator/loops/planner/specialize.py": "the keyword of tl.range",
    "translator/write/function/rewriter.py": "the keyword of tl.range",
    "translator/judge/lower/metrics.py": "an instruction of the assembly",
    "translator/judge/emulator/instructions/buffers.py": "the emulator's names of instruction sets",
    "translator/read/evaluate/bodies/module_run.py": "decorators of Triton's",
    "translator/raised/operations.py": "how each operation of a module is spelled",
    "translator/raised/table.py": "how each operation of a module is spelled",
    "translator/product/cli/review/layout.py": "a default that help shows",
    "translator/product/cli/apps/review.py": "a default that help shows",
    "translator/judge/machine/stages.py": "what a pass is called in messages of MLIR",
    "translator/product/editor/shown/hints.py": "constructors of layouts, said in a few words",
    "translator/product/report/layouts/expression.py": "any target: a map does not depend on it",
}
OF_GLUON_ALONE = {op.name for op in gluon.OPS} - gluon.BUILTIN_NAMES - set(
    "load store gather scatter index slice permute reshape to split trans sum init arrive wait prefetch jit tuple broadcast_to expand_dims"
    " constexpr barrier num_warps num_ctas pointer_type full_like reinterpret inline_asm".split()
)  # fmt: skip


@functools.cache
def _texts(path: Path) -> list[tuple[ast.Constant, str]]:
    """The text constants of a module that are no docstrings."""
    every = own_modules.nodes(path)
    alone = {id(n.value) for n in every if isinstance(n, ast.Expr)}
    return [
        (n, n.value) for n in every if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in alone
    ]


def test_no_name_of_gluon_or_of_a_target_is_asked_for_in_code():
    name = re.compile(rf"(?:{'|'.join(sorted(OF_GLUON_ALONE))}|gfx\d\w+|[cr]dna\d)")
    found = {}
    for path in own_modules.modules("translator"):
        for node, text in () if path.parent.name == "triton_api" else _texts(path):  # rows as well
            words = re.split(r"[\s|]+", text.strip())
            if any(name.fullmatch(word) for word in words) and all(re.fullmatch(r"\w+", word) for word in words):
                if len(words) == 1 or len(words) > 3:  # a name, or a list of them
                    found.setdefault(path.relative_to(ROOT).as_posix(), []).append((node.lineno, text))
    assert {path: what for path, what in found.items() if path not in ELSEWHERE} == {}
    assert set(ELSEWHERE) <= set(found), "an exception that is none any more"


def test_every_operation_that_is_written_has_a_row():
    known = {op.name for op in gluon.OPS} | {name for name in dir(gl) if isinstance(getattr(gl, name), gl.dtype)}
    known |= set(gluon.MODULES) | {"tensor", "distributed_type", "dtype", "PropagateNan", "extra"}
    known |= {"allocate_mbarrier"}  # of NVIDIA's, which a kernel that keeps its structure calls (rules/nvidia.py)
    written = re.compile(r"(?<![\w.])(?:gl|gl\.amd|gluon|async_copy|tdm|mbarrier|cluster|hint|[cr]dna\d)\.(\w+)")
    for path in own_modules.modules("translator"):
        for node, text in _texts(path):
            unknown = {n for n in written.findall(text) if n not in known and not n.startswith("_")}
            unknown -= {n for n in unknown if text.endswith(f".{n}") and any(name.startswith(n) for name in known)}
            assert not unknown or "experimental" in text, f"{path}:{node.lineno}: {unknown}"


def test_parameters_and_their_defaults_are_those_of_the_installed_triton():
    assert [said for op in gluon.OPS if (said := other_parameters(op))] == []


def test_a_parameter_that_is_called_otherwise_or_has_another_default_is_found():
    op = next(op for op in gluon.OPS if op.name == "wait_group")
    assert other_parameters(replace(op, operands=("count",))) == "wait_group has no parameter count"
    came = replace(op, added=(("3.8", "num_outstanding", 1), ("99.0", "hint", None)))
    assert other_parameters(came) == "wait_group has num_outstanding=0 and not 1"
    assert other_parameters(replace(op, added=(("99.0", "hint", None),))) == ""


def test_a_module_that_moved_is_one_row_for_all_that_is_in_it(monkeypatch):
    monkeypatch.setattr(row, "MOVED", (("triton.runtime.jit", "3.10", "triton.runtime.functions"),))
    places = {r.name: {v: r.place(v) for v in ("3.9.0", "3.10.1")} for r in jit_functions.ROWS}
    assert places["JITFunction"] == {
        "3.9.0": "triton.runtime.jit:JITFunction",
        "3.10.1": "triton.runtime.functions:JITFunction",
    }
    assert places["KernelParam"]["3.10.1"] == "triton.runtime.functions:KernelParam"
    assert set(places["Autotuner"].values()) == {"triton.runtime:Autotuner"}
    assert place_in(jit_functions.ROWS, "JITCallable", "3.10.0") == ("triton.runtime.functions", "JITCallable")
