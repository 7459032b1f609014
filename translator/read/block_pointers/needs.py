"""What of each block pointer is needed where, through helpers and loops: a fixpoint over the webs of all functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from gluonize.read.block_pointers.block_webs import PTRS, Function, Functions, Part, Use, Web
from gluonize.read.block_pointers.builtin_calls import arguments_of, given, refuse
from gluonize.read.block_pointers.reaching import Definition

_KEPT = ("ptrs", "offs", "size", "stride")  # what a block pointer has from another one
_EXTENT = re.compile(r"^(?:BLOCK_SIZE_|BLOCK_|BLK_|TILE_SIZE_|TILE_|B(?=[A-Z]))?(\w+?)(?:_BLOCK(?:_SIZE)?|_TILE)?$")
_ORDINAL = {1: ("",), 2: ("rows", "cols")}

Source = tuple[Definition, Web]


def find_needs(functions: Functions) -> None:
    """Fill in ranks, names of dimensions, signs and needs of all webs. Raises: TranslationError."""
    sources = {web: list(_sources(functions, web)) for web in functions.webs}
    _describe(sources)
    _signs(sources)
    for web in sources:
        web.needs |= set(_asked(web))
    changed = True
    while changed:
        changed = False
        for web, found in sources.items():
            for d, source in found:
                wanted = {part for part in web.needs if part[0] in _KEPT}
                if d.kind == "advance" and PTRS in web.needs:
                    wanted |= {("stride", n) for n, step in enumerate(steps(web.of, d)) if not is_zero(step)}
                if not wanted <= source.needs:
                    source.needs |= wanted
                    changed = True


def _sources(functions: Functions, web: Web) -> Iterator[Source]:
    """The block pointers that one has its parts from, by its definitions."""
    for d in web.definitions:
        if d.kind in ("advance", "copy"):
            yield d, web.of.before(d)
        elif d.kind == "parameter":
            for caller in functions.known_in_order:
                for call, callee in caller.calls:
                    if callee is web.of:
                        yield from (
                            (d, caller.web(n))
                            for name, n in arguments_of(callee.fn, call)
                            if name == d.name and caller.flow.is_pointer(n)
                        )
        elif d.kind == "call":
            callee = next(callee for call, callee in web.of.calls if call is d.value)
            yield from ((d, result) for result in callee.results[d.position])


def _describe(sources: dict[Web, list[Source]]) -> None:
    """Ranks and names of dimensions: from where block pointers are made to where they arrive."""
    for web in sources:
        for d in web.makes:
            shape = elements(web.of, d, "shape")
            block = elements(web.of, d, "block_shape")
            web.rank, web.dimensions = len(block), web.dimensions or dimension_names(block, shape)
    for _ in sources:
        for web, found in sources.items():
            for _, source in found:
                web.rank = web.rank or source.rank
                web.dimensions = web.dimensions or source.dimensions
    for web, found in sources.items():
        ranks = {source.rank for _, source in found} | {len(elements(web.of, d, "block_shape")) for d in web.makes}
        if len(ranks) > 1:
            node = web.uses[0].node if web.uses else web.of.tree
            why = f"it has {' or '.join(map(str, sorted(ranks)))} dimensions"
            raise refuse(
                web.of.fn, node, f"`{web.name}` is several kinds of block pointer", why, "give them different names"
            )
        web.nonnegative = [True] * web.rank


def _signs(sources: dict[Web, list[Source]]) -> None:
    """Which offsets are never negative: all are taken not to be until one definition says otherwise."""
    changed = True
    while changed:
        changed = False
        for web, found in sources.items():
            for n in range(web.rank):
                if web.nonnegative[n] and not _not_negative(web, n, found):
                    web.nonnegative[n], changed = False, True


def _not_negative(web: Web, n: int, found: list[Source]) -> bool:
    signs = web.of.signs
    made = all(signs.not_negative(elements(web.of, d, "offsets")[n]) for d in web.makes)
    advanced = all(signs.not_negative(steps(web.of, d)[n]) for d in web.definitions if d.kind == "advance")
    return made and advanced and all(source.nonnegative[n] for _, source in found)


def _asked(web: Web) -> Iterator[Part]:
    """What the uses of a block pointer ask for."""
    if any(d.kind in ("parameter", "call") for d in web.definitions):
        yield PTRS
    for use in web.uses:
        if use.kind in ("load", "store"):
            yield PTRS
            for dimensions in checks(web, use):
                if dimensions and web.pinned:
                    yield "mask", dimensions
                elif dimensions:
                    yield from (("offs", n) for n in dimensions)
                    yield from (("size", n) for n in dimensions)
        elif use.kind in ("attribute", "test", "return", "argument"):
            yield PTRS


def checks(web: Web, use: Use) -> list[tuple[int, ...]]:
    """The dimensions that an access checks, of each side of a condition."""
    assert use.call is not None
    return [checked_dimensions(web, leaf) for leaf in leaves(given(use.call).get("boundary_check"))]


def leaves(node: ast.expr | None) -> list[ast.expr | None]:
    """The values that an expression chooses from."""
    return [*leaves(node.body), *leaves(node.orelse)] if isinstance(node, ast.IfExp) else [node]


def checked_dimensions(web: Web, node: ast.expr | None) -> tuple[int, ...]:
    """The dimensions that a `boundary_check` names and that may end within a tile, in their order. Raises: TranslationError."""
    if node is None:
        return ()
    function, rank = web.of, web.rank
    nodes = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    found: list[int] = []
    for one in nodes:
        known = function.signs.constant(one)
        value = known[0] if known is not None else ...
        found += [] if value is None else value if isinstance(value, tuple) else [value]
    if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < rank for n in found):
        why = f"`{ast.unparse(node)}` is no list of numbers from 0 to {rank - 1}"
        raise refuse(
            function.fn, node, "the dimensions that are checked are not known", why, "give them as numbers: (0, 1)"
        )
    return tuple(n for n in sorted(set(found)) if not _is_whole(web, n))


def _is_whole(web: Web, n: int) -> bool:
    """Whether each tile has all of a dimension: from its start on, as many elements as there are."""
    for d in web.definitions:
        if d.kind == "make":
            size, extent, offset = (elements(web.of, d, name)[n] for name in ("shape", "block_shape", "offsets"))
            whole = is_zero(offset) and ast.unparse(size) == ast.unparse(extent)
        else:
            whole = d.kind == "none" or d.kind == "advance" and web.of.before(d) is web and is_zero(steps(web.of, d)[n])
        if not whole:
            return False
    return True


def elements(function: Function, d: Definition, name: str) -> list[ast.expr]:
    """The elements of an argument of make_block_ptr or advance, as the call has them. Raises: TranslationError."""
    assert isinstance(d.value, ast.Call)
    node = given(d.value).get(name)
    if not isinstance(node, ast.Tuple | ast.List) or any(isinstance(e, ast.Starred) for e in node.elts):
        text = "nothing" if node is None else f"`{ast.unparse(node)}`"
        why = f"{name} is {text}: as many dimensions as it has must be seen"
        raise refuse(
            function.fn, node or d.value, f"{name} of a block pointer is not written out", why, "write it as a tuple"
        )
    block = given(d.value).get("block_shape", node)
    if len(node.elts) != len(getattr(block, "elts", ())):
        why = f"{len(node.elts)} {name} for {len(getattr(block, 'elts', ()))} dimensions"
        raise refuse(
            function.fn, node, "the parts of a block pointer have different lengths", why, "give one for each dimension"
        )
    return node.elts


def steps(function: Function, d: Definition) -> list[ast.expr]:
    """How far an advance goes along each dimension. Raises: TranslationError."""
    found, rank = elements(function, d, "offsets"), function.web_of[d].rank
    if len(found) != rank:
        why = f"{len(found)} steps for {rank} dimensions"
        raise refuse(
            function.fn,
            d.value,
            "a block pointer is advanced along other dimensions",
            why,
            "give one for each dimension",
        )
    return found


def is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def dimension_names(block: Collection[ast.expr], shape: Collection[ast.expr]) -> tuple[str, ...]:
    """Names for the dimensions of tiles, after their extents or the sizes: `m` for BLOCK_M, `t` for BT, `k` for 64 of K."""
    if len(block) == 1:
        return ("",)
    names = tuple(_extent(b) or _size(s) for b, s in zip(block, shape))
    if "" not in names and len(set(names)) == len(names):
        return names
    names = tuple(_size(s) for s in shape)
    if "" not in names and len(set(names)) == len(names):
        return names
    return _ORDINAL.get(
        len(names), ("outer", *(f"middle_{n}" for n in range(len(names) - 3)), "rows", "cols")[: len(names)]
    )


def _extent(node: ast.expr) -> str:
    found = _EXTENT.match(node.id) if isinstance(node, ast.Name) else None
    return found[1].lower().strip("_") if found else ""


def _size(node: ast.expr) -> str:
    return node.id.lower().strip("_") if isinstance(node, ast.Name) else ""


__all__ = ["checked_dimensions", "checks", "dimension_names", "elements", "find_needs", "is_zero", "steps"]
