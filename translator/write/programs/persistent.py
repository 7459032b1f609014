"""Programs that stay: each does one tile after another, and as many are launched as the GPU holds at once.

@gluon.jit
def kernel_tile(tile, tiles, x_ptr, N):               the kernel of the source, `tile` for its number
    ...

@gluon.jit
def kernel(x_ptr, N, tiles=None):
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        kernel_tile(tile, tiles, x_ptr, N)

Host code launches the grid of the source. What stands around the `run` of the jit function takes fewer programs along the first axis, and
gives the kernel the number of tiles; a launch that gives none has a program for each.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst
from gluonize.decide.choices.chosen import Choices
from gluonize.facts.integers.operations import operation_of
from gluonize.facts.kernel import KernelFacts
from gluonize.facts.programs.single_tiles import single_tile
from gluonize.facts.refusals import refuse
from gluonize.gluon.trees.function import JIT, Block, GluonFunction, Statement, call_in_block, statements
from gluonize.gluon.trees.long_lines import with_long_lines_wrapped
from gluonize.gluon.written import Written
from gluonize.numbered import numbered
from gluonize.trace.front.trace import ConstFact
from gluonize.write.state.unit import Tiles
from gluonize.write.state.writing import Writing

_VALUES = {"persistent": 1, "persistent-2": 2}


def tiles_of(kernel: KernelFacts, choices: Choices, strategy: str | None) -> Tiles | None:
    """The names of a kernel whose programs do several tiles, None where each does one. Raises: TranslationError `persistent`."""
    per_unit = next((n for value, n in _VALUES.items() if choices.asks("programs", value)), 0)
    if not per_unit:
        return None
    frame = kernel.trace.frames[0]
    tree = ast.parse(frame.fn.src).body[0]
    message = f"programs of `{frame.fn.__name__}` cannot go from tile to tile"
    if kernel.num_ctas > 1 or strategy == "warp-specialized":
        what = "are clusters" if kernel.num_ctas > 1 else "have warps with loops of their own"
        help = "leave out the cluster" if kernel.num_ctas > 1 else "leave --strategy out"
        raise refuse(frame, tree, "persistent", message, f"they {what}, which are started for one tile", help)
    if (obstacle := single_tile(kernel)) is not None:
        raise refuse(frame, obstacle.node, "persistent", message, obstacle.why, obstacle.help)
    taken = {n.id for f in kernel.trace.frames for n in ast.walk(ast.parse(f.fn.src)) if isinstance(n, ast.Name)}
    taken |= {p.name for p in frame.fn.params}
    names = (numbered(name, taken.__contains__) for name in ("tile", "tiles"))
    return Tiles(*names, per_unit)


def own_number(writing: Writing, node: ast.Call, number: Written) -> tuple[Written, str]:
    """What a program has for its number, `number` where it has one; and how many numbers there are."""
    tiles = writing.decided.tiles
    operation = operation_of(node, writing.facts.fact(node.func))
    axis = writing.facts.fact(operation.first) if operation is not None and operation.first is not None else None
    if tiles is None or not isinstance(axis, ConstFact) or axis.value != 0:
        return number, "gl.num_programs(0)"
    return Written(tiles.tile, ast.Name), tiles.count


def for_tiles(function: GluonFunction, tiles: Tiles | None) -> GluonFunction:
    """A function that is given the number of its tile, and how many there are, before all else; and returns at its end alone."""
    if tiles is None:
        return function
    given = function.node.params
    added = [cst.Param(cst.Name(name), comma=_COMMA) for name in (tiles.tile, tiles.count)]
    made = function.with_node(function.node.with_changes(params=given.with_changes(params=[*added, *given.params])))
    return with_long_lines_wrapped(made.with_statements(made.constants, _without_returns(made.body)), function.text)


def persistent(function: GluonFunction, tiles: Tiles, taken: set[str]) -> tuple[Block, GluonFunction]:
    """The function of one tile, and the kernel that goes from tile to tile in the place of `function`. taken: names of the file, to which that
    of the former comes."""
    own = numbered(f"{function.name}_tile", taken.__contains__)
    taken.add(own)
    one = for_tiles(function.called(own), tiles)
    head = [*statements(f'"""One tile of {function.name}."""'), *one.constants]
    block = one.block.with_changes(body=[*head, *one.body])
    one = one.with_node(one.node.with_changes(body=block))
    count = numbered("count", function.bound.__contains__)
    lines = [
        f"# Each program has every `gl.num_programs(0)`-th tile. Where a launch does not give {tiles.count}, each has one.",
        f"{count} = gl.num_programs(0) if {tiles.count} is None else {tiles.count}",
        f"for {tiles.tile} in range(gl.program_id(0), {count}, gl.num_programs(0)):",
        call_in_block(one.name, [tiles.tile, count, *function.handed_on()]),
        "    # All warps are done with this tile's LDS before the next one fills it.",
        "    gl.barrier()",
    ]
    kernel = function.with_statements(statements("\n".join(lines) + "\n"))
    return (one.defined(JIT),), kernel.with_node(_with_count(kernel.node, tiles.count))


def _without_returns(body: Sequence[Statement]) -> list[Statement]:
    """Statements of a function with what is behind a branch that returns as its other branch: a call of a function that returns early is not
    inlined in a loop."""
    for n, s in enumerate(body):
        if not isinstance(s, cst.If) or s.orelse is not None or not (ending := _returning(s.body)):
            continue
        rest = _without_returns(body[n + 1 :])
        first = s.body.body[:-1] if isinstance(s.body, cst.IndentedBlock) else ()
        if not first and rest and (opposite := _negated(s.test)) is not None:  # it does nothing but return
            said = [*s.leading_lines, *getattr(ending, "leading_lines", ())]
            return [*body[:n], s.with_changes(test=opposite, body=cst.IndentedBlock(rest), leading_lines=said)]
        passing = ending.with_changes(body=[cst.Pass()])
        kept = [*s.body.body[:-1], passing] if isinstance(s.body, cst.IndentedBlock) else [cst.Pass()]
        other = cst.Else(cst.IndentedBlock(rest)) if rest else None
        return [*body[:n], s.with_changes(body=s.body.with_changes(body=kept), orelse=other)]
    return list(body)


_OPPOSITE = {cst.Equal: cst.NotEqual, cst.NotEqual: cst.Equal, cst.Is: cst.IsNot, cst.IsNot: cst.Is}


def _negated(test: cst.BaseExpression) -> cst.BaseExpression | None:
    """The opposite of a comparison, or of what is negated; None of others, which need not be of one bit."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    if not isinstance(test, cst.Comparison) or len(test.comparisons) > 1:
        return None
    (target,) = test.comparisons
    if type(target.operator) in _OPPOSITE:
        return test.with_changes(comparisons=[target.with_changes(operator=_OPPOSITE[type(target.operator)]())])
    grouped = test if test.lpar else test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.UnaryOperation(cst.Not(), grouped)


def _returning(block: cst.BaseSuite) -> cst.CSTNode | None:
    """The line of a block that returns at its end, or the block itself where it is that line; None where it does not."""
    last = block.body[-1] if isinstance(block, cst.IndentedBlock) else block
    line = last.body if isinstance(last, cst.SimpleStatementLine | cst.SimpleStatementSuite) else ()
    return last if len(line) == 1 and isinstance(line[0], cst.Return) else None


_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
_BARE = cst.SimpleWhitespace("")


def _with_count(node: cst.FunctionDef, name: str) -> cst.FunctionDef:
    """The definition with a parameter more behind the others that may be given by position."""
    *others, last = node.params.params
    between = others[-1].comma if others and isinstance(others[-1].comma, cst.Comma) else _COMMA
    added = last.with_changes(
        name=cst.Name(name), annotation=None, default=cst.Name("None"), equal=cst.AssignEqual(_BARE, _BARE)
    )
    params = [*others, last.with_changes(comma=between), added]
    return node.with_changes(params=node.params.with_changes(params=params))


__all__ = ["for_tiles", "own_number", "persistent", "tiles_of"]
