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

Slices are whole tiles of the matrix layout: taking them apart before the loop and joining them after it moves nothing. A product with
scales has its scales read with the parts that they are for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from gluonize.decide.choices.chosen import Choices
from gluonize.facts import callees
from gluonize.facts.function import FunctionFacts
from gluonize.facts.products import products
from gluonize.facts.products import scaled as scaled_products
from gluonize.facts.products.scaled import ScaledProduct
from gluonize.facts.variables.definitions import assigned_fact
from gluonize.facts.webs import Web
from gluonize.gluon.code import as_lines, assignment, code_of
from gluonize.gluon.layout_names import LayoutNames
from gluonize.gluon.nodes import NONE, Code, Name, Named, Node, Part, Product, walk
from gluonize.gluon.written import Written, literal
from gluonize.gluon.written import name as variable
from gluonize.loops.loop.loop import LoopPass, PipelinedLoop
from gluonize.loops.loop.site import LoopSite
from gluonize.loops.passes.stages import StagePlan, Statements
from gluonize.loops.plan.plan import PipelinePlan
from gluonize.trace.model.language import DTYPES
from gluonize.trace.model.layouts import Layout, Mfma, Wmma
from gluonize.trace.model.shared_layouts import Padded, Swizzled
from gluonize.write.products import dots, packed_scales, scaled_dots
from gluonize.write.state.edits import Made
from gluonize.write.state.relations import Wants
from gluonize.write.state.site import Site, Spot
from gluonize.write.state.writing import StateOf


@dataclass(frozen=True)
class SlicedDot:
    """`parts` of M and N of the accumulator `web`, which only `statement` changes; shape: of one slice.

    names: of the slices, by row; operands: of the parts of either operand, scales: of their scales. product: with scales, None for
    one without.
    """

    statement: ast.stmt
    dot: ast.Call
    web: Web
    parts: tuple[int, int]
    shape: tuple[int, int]
    names: tuple[tuple[str, ...], ...]
    operands: tuple[tuple[str, ...], tuple[str, ...]]
    scales: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    product: ScaledProduct | None = None


@dataclass(frozen=True)
class Slices(LoopPass):
    """The accumulator of the loop's product in slices."""

    dot: SlicedDot

    def statements(self) -> tuple[ast.stmt, ...]:
        return (self.dot.statement,)

    def wants(self, spot: Spot, s: ast.stmt) -> Wants | None:
        return wants(spot, self.dot) if s is self.dot.statement else None

    def statement(self, site: LoopSite, s: ast.stmt) -> list[Code] | None:
        return accumulate(site, self.dot) if s is self.dot.statement else None

    def before(self, site: LoopSite, loop: PipelinedLoop) -> tuple[Node, ...]:
        m, n = self.dot.parts
        site.record.choose(f"`{self.dot.web.name}` is kept in {m} x {n} slices")
        return as_lines(take_apart(site.facts, site.state, self.dot))

    def after(self, site: LoopSite, loop: PipelinedLoop) -> list[Made]:
        return join(site.facts, site.names, site.plain.conversions_after, self.dot)


def asked(facts: FunctionFacts, choices: Choices, loop: PipelinedLoop, sliced: SlicedDot | None) -> LoopPass | None:
    """The product in slices, where it has them."""
    return Slices(sliced) if sliced is not None else None


def sliced_dot(
    facts: FunctionFacts, choices: Choices, plan: PipelinePlan, fresh: Callable[[str], str]
) -> SlicedDot | None:
    """The loop's one dot in the slices that choices ask for; None where they ask for none, or it has no such ones."""
    parts = choices.value("accumulator-slices", facts.kernel.target)
    if parts == "1x1" or facts.kernel.num_ctas > 1:
        return None
    return plan_slices(facts, plan, (int(parts[0]), int(parts[2])), fresh)


def plan_slices(
    facts: FunctionFacts, plan: PipelinePlan, parts: tuple[int, int], fresh: Callable[[str], str]
) -> SlicedDot | None:
    """The loop's one dot in `parts`; None where it does more than accumulate, or has no such slices.

    fresh: gives a name that the function does not use.
    """
    found = [(a, n) for a in plan.atoms for n in ast.walk(a) if multiplies(facts, n)]
    if len(found) != 1:
        return None
    statement, dot = found[0]
    web = accumulator_of(facts, plan, statement, dot)
    if web is None or facts.tensor(dot).rank != 2:
        return None
    scaled = scaled_products.is_scaled_product(facts, dot)
    made = scaled_products.scaled_product(facts, dot) if scaled else products.DotPlan(facts, dot)
    if made is None or not isinstance(made.result, (Mfma, Wmma)):
        return None
    if not (_scales_fit if scaled else _types_fit)(facts, plan, made, parts):
        return None
    cut = [(node, own) for own, node in enumerate((made.a, made.b)) if parts[own] > 1]
    if not all(_cuttable(facts, plan, node, own, parts[own]) for node, own in cut):
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
    if not scaled:
        return SlicedDot(statement, dot, web, parts, shape, names, operands)
    scales = tuple(
        tuple(named(node.id, (i, which)) for i in range(parts[which])) if parts[which] > 1 and node is not None else ()
        for which, node in enumerate(made.scales)
    )
    return SlicedDot(statement, dot, web, parts, shape, names, operands, scales, made)


def multiplies(facts: FunctionFacts, node: ast.AST) -> bool:
    """Whether `node` is a product, with scales or without."""
    return callees.is_dot(facts, node) or scaled_products.is_scaled_product(facts, node)


def _types_fit(facts: FunctionFacts, plan: PipelinePlan, made: products.DotPlan, parts: tuple[int, int]) -> bool:
    """Whether operands and accumulator are of the types that the instruction takes."""
    pairs = [(facts.tensor(n), element) for n, element in ((made.a, made.a_element), (made.b, made.b_element))]
    pairs.append((facts.tensor(made.node), made.acc_element))
    return all(products.DTYPE.get(fact.dtype) == DTYPES[element] for fact, element in pairs)


def _scales_fit(facts: FunctionFacts, plan: PipelinePlan, made: ScaledProduct, parts: tuple[int, int]) -> bool:
    """Whether the scales of what is cut can be cut with it: they have a row for each of its rows or columns."""
    for node, layout, count in zip(made.scales, made.scale_layouts, parts):
        if count == 1 or node is None:
            continue
        if (
            not _cuttable(facts, plan, node, 0, count)
            or scaled_products.first_rows(layout, facts.tensor(node).shape[0] // count) is None
        ):
            return False
    return True


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
        given = callees.bound(facts, dot).get("acc")
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
    state.home = state.home or _result(facts, sliced)
    m, n = sliced.shape
    return [
        f"{name} = gl.amd.slice({sliced.web.name}, [{m}, {n}], [{i * m}, {j * n}])"
        for i, row in enumerate(sliced.names)
        for j, name in enumerate(row)
    ]


def _result(facts: FunctionFacts, sliced: SlicedDot) -> Layout:
    return sliced.product.result if sliced.product is not None else products.DotPlan(facts, sliced.dot).result


def wants(site: Spot, sliced: SlicedDot) -> Wants:
    """What the dot's statement wants of operands that are not cut; the others are read from LDS in parts."""
    whole = [which for which in (0, 1) if sliced.parts[which] == 1]
    if (scaled := sliced.product) is not None:
        return {n: l for which in whole for n, l in packed_scales.wants(site, scaled, which).items()}
    made = products.DotPlan(site.facts, sliced.dot)
    operands = (made.a, made.a_element, made.a_layout), (made.b, made.b_element, made.b_layout)
    own = [dots.operand_wants(site, *operands[which], sliced.dot) for which in whole]
    return {node: layout for wanted in own for node, layout in wanted.items()}


def accumulate(site: Site, sliced: SlicedDot) -> list[Code]:
    """In the loop, for the dot's statement: each slice, with the parts of the operands read when they are first needed."""
    lines: list[Code] = []
    parts = _ScaledParts(site, sliced, lines) if sliced.product is not None else _Parts(site, sliced, lines)
    for i, row in enumerate(sliced.names):
        for j, name in enumerate(row):
            a, b = parts.of(0, i), parts.of(1, j)
            value = parts.product(a, b, variable(name))
            lines.append(_assigned(site, name, value, frozenset({name, *(x.as_name for x in (*a, *b) if x.is_name)})))
    return lines


def _assigned(site: Site, name: str, value: Written, reads: frozenset[Name]) -> Code:
    return site.statement(assignment(name, value, reads))


class _Parts:
    """Parts of the operands of a product, read when they are first needed; lines: to which the reads are added."""

    def __init__(self, site: Site, sliced: SlicedDot, lines: list[Code]):
        self.site, self.sliced, self.lines = site, sliced, lines
        self.known: dict[tuple[str, int], Written] = {}
        self.prepare()

    def prepare(self) -> None:
        self.made = products.DotPlan(self.site.facts, self.sliced.dot)
        dots._suggest_names(self.site.facts, self.site.names, self.made)

    def of(self, which: int, i: int) -> tuple[Written, ...]:
        """What the product takes of part `i` of an operand."""
        node = (self.made.a, self.made.b)[which]
        layout = (self.made.a_layout, self.made.b_layout)[which]
        if self.sliced.parts[which] == 1:
            element = (self.made.a_element, self.made.b_element)[which]
            return (dots._operand(self.site, node, self.site.facts.tensor(node), element, layout, self.sliced.dot),)
        return (self.read(node, layout, self.sliced.operands[which][i], i, self.sliced.shape[which], which),)

    def read(self, node: ast.Name, layout: Layout, name: str, i: int, size: int, dimension: int) -> Written:
        """The variable of a part, which is read from LDS where it was not yet."""
        if (name, i) not in self.known:
            tile = Part(Named(node.id), i * size, size, dimension)
            read = self.site.staged[self.site.facts.webs.reaching[node][0].value]
            self.lines.append(_assigned(self.site, name, read.text(self.site, layout, tile), NONE))
            self.known[name, i] = variable(name)
        return self.known[name, i]

    def product(self, a: tuple[Written, ...], b: tuple[Written, ...], acc: Written) -> Written:
        facts = self.site.facts
        return dots._instruction(
            self.site, self.made, facts.tensor(self.made.a), facts.tensor(self.made.b), *a, *b, acc
        )


class _ScaledParts(_Parts):
    """Parts of operands and of their scales. What is not cut is read once, where it is first needed, as a part of its own."""

    def prepare(self) -> None:
        self.scaled = self.sliced.product

    def of(self, which: int, i: int) -> tuple[Written, ...]:
        made, size = self.scaled, self.sliced.shape[which]
        if self.sliced.parts[which] == 1:
            return packed_scales.read(self.site, made, which)
        node, scale = made.operands[which], made.scales[which]
        operand = self.part(which, node, self.sliced.operands[which][i], i, which)
        if scale is None:
            return operand, literal(None)
        layout = packed_scales.scale_layout(self.site, made, which, size)
        self.site.names.suggest(layout, f"{scale.id.lower()}_operand", 1, made.node.lineno)
        return operand, self.part(which, scale, self.sliced.scales[which][i], i, 0)

    def part(self, which: int, node: ast.Name, name: str, i: int, dimension: int) -> Written:
        """The variable of part `i` of an operand or of its scales, cut along a dimension."""
        size, shape = self.sliced.shape[which], list(self.site.facts.tensor(node).shape)
        shape[dimension] = size
        layout = packed_scales.layout_of_read(self.site, self.scaled, which, node, tuple(shape))
        return self.read(node, layout, name, i, size, dimension)

    def product(self, a: tuple[Written, ...], b: tuple[Written, ...], acc: Written) -> Written:
        sides = [
            packed_scales.in_turn(self.site, self.scaled, which, side, self.sliced.shape[which])
            for which, side in enumerate((a, b))
        ]
        text = scaled_dots.instruction(self.site, self.scaled, *sides, acc)
        reads = self.site.reads(self.sliced.dot)
        return self.site.expression(Product(text.code, reads), text)


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
    facts: FunctionFacts, names: LayoutNames, conversions_after: Callable[..., list[Code]], sliced: SlicedDot
) -> list[Made]:
    """After the loop: one accumulator again."""
    m, n = sliced.shape
    rows = [
        _joined(list(row), n, lambda x, y, size: f"gl.join({x}, {y}).permute(0, 2, 1).reshape({m}, {size})")
        for row in sliced.names
    ]
    width = n * sliced.parts[1]
    whole = _joined(rows, m, lambda x, y, size: f"gl.join({x}, {y}).permute(2, 0, 1).reshape({size}, {width})")
    layout = names.spell(_result(facts, sliced))
    name = sliced.web.name
    lines: list[Made] = [
        "# The slices are registers of one accumulator: nothing moves.",
        code_of(f"{name} = gl.convert_layout({whole}, ", layout, ", assert_trivial=True)"),
    ]
    return lines + conversions_after(sliced.statement, ast.Name(id=name))


def _joined(texts: list[str], size: int, pair) -> str:
    while len(texts) > 1:
        size *= 2
        texts = [pair(x, y, size) for x, y in zip(texts[::2], texts[1::2])]
    return texts[0]
