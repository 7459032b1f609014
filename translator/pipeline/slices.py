"""An accumulator kept in slices, so that fewer operands are in registers at a time.

Before:                                     After, in two slices of M:
    a = tl.load(...)                            a = a_smem.index(slot)
    b = tl.load(...)                            b = load_shared_relaxed(b_smem.index(slot), b_operand)
    acc = tl.dot(a, b, acc)                     a_0 = load_shared_relaxed(a.slice(0, 64, 0), a_operand)
                                                acc_0 = cdna4.mfma(a_0, b, acc_0)
                                                a_1 = load_shared_relaxed(a.slice(64, 64, 0), a_operand)
                                                acc_1 = cdna4.mfma(a_1, b, acc_1)

Where two groups of warps alternate, one reads the parts for a slice while the other multiplies; each of these stages is short, so that
a group is little behind the other, and copies have most of an iteration to land.

Slices are whole tiles of the matrix layout: taking them apart before the loop and joining them after it moves nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from translator.facts import products
from translator.facts.function import FunctionFacts
from translator.facts.definitions import assigned_fact
from translator.gluon.tree import NONE, Assign, Named, Part, Product, walk
from translator.gluon.written import Written, name as variable
from translator.layout.names import LayoutNames
from translator.pipeline.body import StagePlan, Statements
from translator.pipeline.plan import PipelinePlan
from translator.facts import callees
from translator.rewrite import dots
from translator.rewrite.site import Site
from translator.facts.webs import Web
from translator.rewrite.writing import StateOf
from translator.ttgir.layouts import Layout, Mfma, Wmma
from translator.ttgir.shared_layouts import Padded, Swizzled


@dataclass(frozen=True)
class SlicedDot:
    """`parts` of M and N of the accumulator `web`, which only `statement` changes; shape: of one slice.

    names: of the slices, by row; operands: of the parts of either operand.
    """

    statement: ast.stmt
    dot: ast.Call
    web: Web
    parts: tuple[int, int]
    shape: tuple[int, int]
    names: tuple[tuple[str, ...], ...]
    operands: tuple[tuple[str, ...], tuple[str, ...]]


def plan_slices(
    facts: FunctionFacts, plan: PipelinePlan, parts: tuple[int, int], fresh: Callable[[str], str]
) -> SlicedDot | None:
    """The loop's one dot in `parts`; None where it does more than accumulate, or has no such slices.

    fresh: gives a name that the function does not use.
    """
    found = [(a, n) for a in plan.atoms for n in ast.walk(a) if callees.is_dot(facts, n)]
    if len(found) != 1:
        return None
    statement, dot = found[0]
    web = accumulator_of(facts, plan, statement, dot)
    if web is None or facts.tensor(dot).rank != 2:
        return None
    made = products.DotPlan(facts, dot)
    if not isinstance(made.result, (Mfma, Wmma)):
        return None
    for node, element, own, count in zip((made.a, made.b), (made.a_element, made.b_element), range(2), parts):
        fact = facts.tensor(node)
        if (
            products.DTYPE.get(fact.dtype) != products.ELEMENT[element]
            or count > 1
            and not _cuttable(facts, plan, node, own, count)
        ):
            return None
    if products.DTYPE[facts.tensor(dot).dtype] != products.ELEMENT[made.acc_element]:
        return None
    sizes = facts.tensor(dot).shape
    shape = (sizes[0] // parts[0], sizes[1] // parts[1])
    tile = layout_tile(made.result)
    if any(size % extent for size, extent in zip(shape, tile)) or 0 in shape:
        return None

    def named(name: str, *which: tuple[int, int]) -> str:
        """`name` with the number of the slice in each dimension that is cut."""
        return fresh("_".join([name, *(str(i) for i, dimension in which if parts[dimension] > 1)]))

    names = tuple(tuple(named(web.name, (i, 0), (j, 1)) for j in range(parts[1])) for i in range(parts[0]))
    operands = tuple(
        tuple(named(node.id, (i, which)) for i in range(parts[which])) if parts[which] > 1 else ()
        for which, node in enumerate((made.a, made.b))
    )
    return SlicedDot(statement, dot, web, parts, shape, names, operands)


def layout_tile(layout: Layout) -> tuple[int, int]:
    """Rows and columns of the result that all warps together make with one instruction each."""
    if isinstance(layout, Mfma):
        tiles = layout.tiles_per_warp or (1, 1)
        return tuple(s * w * t for s, w, t in zip(layout.instr_shape[:2], layout.warps_per_cta, tiles))
    extents = [1, 1]
    for basis in (*layout.warp_bases, *layout.reg_bases):
        extents = [max(e, 2 * x) for e, x in zip(extents, basis)]
    return extents[0] * layout.instr_shape[0], extents[1] * layout.instr_shape[1]


def accumulator_of(facts: FunctionFacts, plan: PipelinePlan, s: ast.stmt, dot: ast.Call) -> Web | None:
    """The variable of `acc = tl.dot(a, b, acc)` or `acc += tl.dot(a, b)` that nothing else in the loop uses."""
    if isinstance(s, ast.AugAssign):
        if s.value is not dot or not isinstance(s.op, ast.Add) or not isinstance(s.target, ast.Name):
            return None
        if not products.can_accumulate(facts, dot, s.target, assigned_fact(facts, s)):
            return None
        name = s.target.id
    else:
        given = callees.bind(facts, dot, callees.callee_of(facts, dot)).get("acc")
        if not isinstance(s, ast.Assign) or s.value is not dot or not isinstance(s.targets[0], ast.Name):
            return None
        if not isinstance(given, ast.Name) or given.id != s.targets[0].id:
            return None
        name = given.id
    web = facts.webs.of_definition[(s, name)]
    inside = set(ast.walk(s))
    others = [n for n, loops in web.uses if plan.loop in loops and n not in inside]
    defined = [d for d in web.definitions if plan.loop in d.in_loop and d.node is not s]
    return None if others or defined or web.is_parameter else web


def _cuttable(facts: FunctionFacts, plan: PipelinePlan, node: ast.expr, dimension: int, count: int) -> bool:
    """Whether an operand is a name of a staged tile, used for nothing else, whose LDS layout can be cut there.

    Gluon cuts a swizzled tile between rows only, and where the pattern begins anew.
    """
    if not isinstance(node, ast.Name) or len(facts.webs.of_use[node].uses) != 1:
        return False
    made, staged = facts.webs.definition_of(node), {load.call: load.staged for load in plan.loads}
    if made is None or made.value not in staged or not isinstance(made.node, ast.Assign):
        return False
    found = staged[made.value]
    if isinstance(found.shared, Swizzled):
        rows = found.shape[dimension] // count
        return dimension != found.shared.order[0] and rows % (found.shared.per_phase * found.shared.max_phase) == 0
    return isinstance(found.shared, Padded)


def take_apart(facts: FunctionFacts, state_of: StateOf, sliced: SlicedDot) -> list[str]:
    """Before the loop: the slices of what the accumulator starts with."""
    state = state_of(sliced.web)
    state.home = state.home or products.DotPlan(facts, sliced.dot).result
    m, n = sliced.shape
    return [
        f"{name} = gl.amd.slice({sliced.web.name}, [{m}, {n}], [{i * m}, {j * n}])"
        for i, row in enumerate(sliced.names)
        for j, name in enumerate(row)
    ]


def accumulate(site: Site, sliced: SlicedDot) -> list[Written]:
    """In the loop, for the dot's statement: each slice, with the parts of the operands read when they are first needed."""
    made = products.DotPlan(site.facts, sliced.dot)
    dots._suggest_names(site.facts, site.names, made)
    lines: list[Written] = []
    known: dict[tuple[int, int], str] = {}
    layouts, elements = (made.a_layout, made.b_layout), (made.a_element, made.b_element)

    def assign(name: str, value: Written, reads: frozenset[str]) -> None:
        lines.append(site.hole(Assign(name, site.holes.code(f"{name} = {value}"), name, reads)))

    def part(which: int, i: int) -> Written:
        node = (made.a, made.b)[which]
        if sliced.parts[which] == 1:
            return dots._operand(site, node, site.facts.tensor(node), elements[which], layouts[which], sliced.dot)
        if (which, i) not in known:
            size = sliced.shape[which]
            tile = Part(Named(node.id), i * size, size, which)
            read = site.staged[site.facts.webs.reaching[node][0].value]
            known[which, i] = sliced.operands[which][i]
            assign(known[which, i], read.text(site, layouts[which], tile), NONE)
        return variable(known[which, i])

    fa, fb = site.facts.tensor(made.a), site.facts.tensor(made.b)
    for i, row in enumerate(sliced.names):
        for j, name in enumerate(row):
            a, b = part(0, i), part(1, j)
            value = dots._instruction(site, made, fa, fb, a, b, variable(name))
            assign(name, value, frozenset({name, *(x for x in (a, b) if x.is_name)}))
    return lines


def stages_of(sliced: SlicedDot) -> tuple[StagePlan, ...]:
    """What two groups of warps alternate in: parts of operands are read in a memory stage, and the slices that need no other part
    are multiplied in the next compute stage."""
    rows, columns = sliced.parts
    reads = [
        not (i or j) or (j == 0 and rows > 1) or (i == 0 and columns > 1) for i in range(rows) for j in range(columns)
    ]
    return (StagePlan("memory", ()), StagePlan("compute", ())) * sum(reads)


def stage_contents_of(steps: list[Statements], sliced: int) -> list[list[Statements]]:
    """What each of these stages holds. steps: of the body, one of which, `sliced`, is the dot's statement in slices: what is above
    it stands in the first stage, what is below it in the last one."""
    contents: list[list[Statements]] = [steps[:sliced]]
    for s in steps[sliced]:
        multiplies = any(isinstance(n, Product) for n in walk(s))
        if multiplies != (len(contents) % 2 == 0):
            contents.append([])
        contents[-1].append((s,))
    contents[-1] += steps[sliced + 1 :]
    return contents


def join(
    facts: FunctionFacts, names: LayoutNames, conversions_after: Callable[..., list[str]], sliced: SlicedDot
) -> list[str]:
    """After the loop: one accumulator again."""
    m, n = sliced.shape
    rows = [
        _joined(list(row), n, lambda x, y, size: f"gl.join({x}, {y}).permute(0, 2, 1).reshape({m}, {size})")
        for row in sliced.names
    ]
    width = n * sliced.parts[1]
    whole = _joined(rows, m, lambda x, y, size: f"gl.join({x}, {y}).permute(2, 0, 1).reshape({size}, {width})")
    layout = names.spell(products.DotPlan(facts, sliced.dot).result)
    name = sliced.web.name
    lines = [
        "# The slices are registers of one accumulator: nothing moves.",
        f"{name} = gl.convert_layout({whole}, {layout}, assert_trivial=True)",
    ]
    return lines + conversions_after(sliced.statement, ast.Name(id=name))


def _joined(texts: list[str], size: int, pair) -> str:
    while len(texts) > 1:
        size *= 2
        texts = [pair(x, y, size) for x, y in zip(texts[::2], texts[1::2])]
    return texts[0]
