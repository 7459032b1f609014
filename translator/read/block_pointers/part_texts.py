"""The text of a function with its block pointers as tensors of pointers, offsets and masks.

before: a_block = tl.make_block_ptr(a_ptr, (M, K), (stride_am, 1), (pid * BLOCK_M, 0), (BLOCK_M, BLOCK_K), (1, 0))
        for k in range(0, K, BLOCK_K):
            a = tl.load(a_block, boundary_check=(0, 1))
            a_block = tl.advance(a_block, (0, BLOCK_K))
after:  a_offs_m = pid * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
        a_offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
        a_ptrs = a_ptr + a_offs_m[:, None] * stride_am + a_offs_k[None, :]
        for k in range(0, K, BLOCK_K):
            a = tl.load(a_ptrs, mask=(a_offs_m[:, None] < M) & (a_offs_k[None, :] < K), other=0)
            a_offs_k += BLOCK_K
            a_ptrs += BLOCK_K

Block pointers count in 64 bits: an offset of 32 bits is widened before the tile's own indices, and a stride, meet it.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable

from gluonize.numbered import numbered
from gluonize.read.block_pointers.block_webs import PTRS, Function, Part, Web
from gluonize.read.block_pointers.builtin_calls import given, name_of, refuse
from gluonize.read.block_pointers.needs import elements, is_zero, steps
from gluonize.read.block_pointers.reaching import Definition
from gluonize.read.text.source_text import SourceText
from gluonize.triton_api.language import tl as language

_STEM = re.compile(r"^(?:p_|ptr_)?(\w+?)(?:_block_ptrs?|_block|_blk|_bptr|_bp|_ptrs?|_p)?$")
_PURE = ("cdiv", "min", "max", "minimum", "maximum")
_ADDENDS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_ORDER = ("offs", "size", "stride", "ptrs", "mask")


class PartTexts:
    """Names and texts of the parts of all block pointers of one function."""

    def __init__(self, function: Function):
        self.function, self.fn = function, function.fn
        self.source = SourceText(function.fn.src)
        nodes = list(ast.walk(function.tree))
        made = {(d.statement, d.name) for w in function.webs for d in w.definitions}
        kept = {
            n.id
            for n in nodes
            if isinstance(n, ast.Name) and not function.flow.is_pointer(n) and (self._statement(n), n.id) not in made
        }
        self.taken = kept | {n.arg for n in nodes if isinstance(n, ast.arg) and n.arg not in function.pointers}
        self.names: dict[tuple, str] = {}
        self.stems: dict[str, str] = {}
        self.stores = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.loops = [n for n in nodes if isinstance(n, ast.For | ast.While)]

    def _statement(self, n: ast.Name) -> ast.stmt | None:
        """The statement that a name is assigned in."""
        node: ast.AST | None = n if isinstance(n.ctx, ast.Store) else None
        while node is not None and not isinstance(node, ast.stmt):
            node = self.function.parents.get(node)
        return node

    # Names --------------------------------------------------------------------------------------------------------

    def stem(self, web: Web) -> str:
        """What the parts of a block pointer begin with."""
        if web.name not in self.stems:
            found = _STEM.match(web.name)
            short = found[1] if found and found[1].strip("_") else web.name
            self.stems[web.name] = web.name if short in self.stems.values() else short
        return self.stems[web.name]

    def name(self, web: Web, kind: str, dimension: str = "") -> str:
        """The variable of a part: `a_offs_m`, `a_ptrs`."""
        key = web.name, kind, dimension
        if key not in self.names:
            text = "_".join(part for part in (self.stem(web), kind, dimension) if part)
            used = self.taken | set(self.names.values())
            self.names[key] = numbered(text, lambda n: n in used or n in self.fn.__globals__)
        return self.names[key]

    def variable(self, web: Web, part: Part) -> str:
        kind, which = part
        if kind == "ptrs":
            return self.name(web, "ptrs")
        if kind == "mask":
            several = sum(k == "mask" for k, _ in web.needs) > 1
            partial = several and len(which) < web.rank
            return self.name(web, "mask", "_".join(web.dimensions[n] for n in which) if partial else "")
        return self.name(web, kind, web.dimensions[which])

    def text(self, web: Web, part: Part) -> str:
        """A part where it is read: its variable, or a size or a stride as the author wrote it."""
        node = self.inline(web, part)
        return self.variable(web, part) if node is None else self.spelled(node)

    def inline(self, web: Web, part: Part) -> ast.expr | None:
        """A size or a stride that is the same expression wherever the block pointer is used."""
        kind, which = part
        if kind not in ("size", "stride"):
            return None
        roots = [d for d in web.definitions if not (d.kind in ("advance", "copy") and web.of.before(d) is web)]
        if len(roots) == 1 and roots[0].kind in ("advance", "copy"):
            node = self.inline(web.of.before(roots[0]), part)
            return node if node is not None and self.is_stable(node, roots[0], web) else None
        if not roots or any(d.kind != "make" for d in roots):
            return None
        nodes = [elements(web.of, d, "shape" if kind == "size" else "strides")[which] for d in roots]
        same = len({ast.unparse(n) for n in nodes}) == 1
        return nodes[0] if same and all(self.is_stable(n, d, web) for n, d in zip(nodes, roots)) else None

    def is_stable(self, node: ast.expr, d: Definition, web: Web) -> bool:
        """Whether an expression of a definition has the same value in all uses of the block pointer."""
        if any(isinstance(n, ast.Call) and name_of(n) not in _PURE for n in ast.walk(node)):
            return False
        at = d.statement.lineno, d.statement.col_offset  # type: ignore[union-attr]
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        uses = [(u.node.lineno, u.node.col_offset) for u in web.uses]
        for store in (s for s in self.stores if s.id in names):
            if (store.lineno, store.col_offset) >= at:
                return False
            around = [l for l in self.loops if _holds(l, store) and _holds(l, d.statement)]
            if any(_position(l) <= use < at for l in around for use in uses):
                return False
        return True

    # Text ---------------------------------------------------------------------------------------------------------

    def spelled(self, node: ast.expr) -> str:
        text = self.source.of(node)
        return ast.unparse(node) if "\n" in text else text

    def factor(self, node: ast.expr) -> str:
        """An expression as an operand of a product."""
        text = self.spelled(node)
        simple = isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
        simple = simple or isinstance(node, ast.Constant) or text.startswith("(") and self.source.is_grouped(node)
        return text if simple else f"({text})"

    def addend(self, node: ast.expr) -> str:
        """An expression as an operand of a sum."""
        sum_ = isinstance(node, ast.BinOp) and isinstance(node.op, _ADDENDS)
        return self.spelled(node) if sum_ else self.factor(node)

    def compared(self, web: Web, n: int, d: Definition | None = None) -> str:
        """The size of a dimension in a comparison; d: where it is made, for what stands there."""
        node = self.inline(web, ("size", n)) if d is None else elements(self.function, d, "shape")[n]
        return self.variable(web, ("size", n)) if node is None else self.addend(node)

    def language(self, node: ast.AST | None = None) -> str:
        """What `triton.language` is called here, with a dot."""
        for call in (n for n in ast.walk(self.function.tree) if isinstance(n, ast.Call)):
            if name_of(call) in ("make_block_ptr", "load", "store", "advance") and isinstance(call.func, ast.Attribute):
                if not self.function.flow.is_pointer(call.func.value):
                    return f"{self.spelled(call.func.value)}."
        for name, value in self.fn.__globals__.items():
            if value is language:
                return f"{name}."
        why = "pointers and masks are made with `tl.arange`"
        raise refuse(
            self.fn, node or self.function.tree, "triton.language has no name here", why, "import triton.language as tl"
        )

    def indexed(self, web: Web, n: int) -> str:
        """The offsets of a dimension, broadcast against the others."""
        name = self.variable(web, ("offs", n))
        if web.rank == 1:
            return name
        return f"{name}[{', '.join(':' if d == n else 'None' for d in range(web.rank))}]"

    def mask(self, web: Web, dimensions: Iterable[int], d: Definition | None = None) -> str:
        """What says which elements there are; d: where the block pointer is made, if the mask is too."""
        parts = []
        for n in dimensions:
            at = self.indexed(web, n)
            parts += [] if web.nonnegative[n] else [f"{at} >= 0"]
            parts.append(f"{at} < {self.compared(web, n, d)}")
        return parts[0] if len(parts) == 1 else " & ".join(f"({part})" for part in parts)

    # Definitions --------------------------------------------------------------------------------------------------

    def kept(self, web: Web) -> list[Part]:
        """The parts of a block pointer that are variables, in the order in which they are written."""
        return in_order(p for p in web.needs if self.inline(web, p) is None)

    def handed(self, web: Web, wanted: list[Part]) -> list[str]:
        return [self.text(web, part) for part in wanted]

    def defined(self, web: Web, d: Definition) -> list[str]:
        """The statements in place of the one that makes a block pointer."""
        kept = self.kept(web)
        if not kept:
            return []
        if d.kind == "none":
            return [f"{self.variable(web, part)} = None" for part in kept]
        if d.kind == "make":
            return self.made(web, d, kept)
        before = self.function.before(d)
        moved = steps(self.function, d) if d.kind == "advance" else []
        by = {n: step for n, step in enumerate(moved) if not is_zero(step)}
        if before is web and d.kind == "copy":
            return []
        lines = []
        for part in kept:
            kind, n = part
            own, was = self.variable(web, part), self.text(before, part)
            if kind == "ptrs" and by:
                added = " + ".join(self.step(before, n, step) for n, step in by.items())
            elif kind == "offs" and n in by:
                added = self.spelled(by[n]) if own == was else self.addend(by[n])
            elif before is not web:
                lines.append(f"{own} = {was}")
                continue
            else:
                continue
            lines.append(f"{own} += {added}" if own == was else f"{own} = {was} + {added}")
        return lines

    def made(self, web: Web, d: Definition, kept: list[Part]) -> list[str]:
        call = d.value
        parts = {name: elements(self.function, d, name) for name in ("shape", "strides", "offsets", "block_shape")}
        tl, lines = self.language(), []
        read = {n for k, which in kept for n in ((which,) if k == "offs" else which if k == "mask" else ())}
        read |= set(range(web.rank)) if PTRS in kept else set()
        for n in sorted(read):
            lanes = f"{tl}arange(0, {self.spelled(parts['block_shape'][n])}).to({tl}int64)"
            offset = parts["offsets"][n]
            value = lanes if is_zero(offset) else f"{self.addend(offset)} + {lanes}"
            lines.append(f"{self.variable(web, ('offs', n))} = {value}")
        for part in kept:
            kind, n = part
            own = self.variable(web, part)
            if kind in ("size", "stride"):
                node = parts["shape" if kind == "size" else "strides"][n]
                alike = (
                    len(
                        {
                            ast.unparse(elements(self.function, m, "shape" if kind == "size" else "strides")[n])
                            for m in web.makes
                        }
                    )
                    == 1
                )
                lines.append(
                    f"{own} = {self.spelled(node)}" if alike else f"{own} = {tl}cast({self.spelled(node)}, {tl}int64)"
                )
            elif kind == "ptrs":
                terms = [self.addend(given(call)["base"])]  # type: ignore[arg-type]
                for n, stride in enumerate(parts["strides"]):
                    one = isinstance(stride, ast.Constant) and stride.value == 1
                    terms.append(self.indexed(web, n) if one else f"{self.indexed(web, n)} * {self.factor(stride)}")
                lines.append(f"{own} = {' + '.join(terms)}")
            elif kind == "mask":
                lines.append(f"{own} = {self.mask(web, n, d)}")
        return [*self.comments(d.statement), *lines]

    def step(self, web: Web, n: int, step: ast.expr) -> str:
        """How far pointers move for a step along a dimension, in 64 bits."""
        node = self.inline(web, ("stride", n))
        if isinstance(node, ast.Constant) and node.value == 1:
            return self.addend(step)
        stride = self.variable(web, ("stride", n)) if node is None else self.spelled(node)
        if node is None or not self.is_constant(node) or not self.is_constant(step):
            tl = self.language()
            return f"{self.factor(step)} * {tl}cast({stride}, {tl}int64)"
        return f"{self.factor(step)} * {self.factor(node)}"

    def is_constant(self, node: ast.expr) -> bool:
        """Whether an expression is made of compile-time constants alone, which Python multiplies without end."""
        constant = {
            a.arg for a in ast.walk(self.function.tree) if isinstance(a, ast.arg) and _is_constexpr(a.annotation)
        }
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        stored = {s.id for s in self.stores}
        calls = any(isinstance(n, ast.Call) for n in ast.walk(node))
        outside = {n for n in names if n not in self.fn.arg_names and n not in stored}
        return not calls and names - outside <= constant - stored

    def comments(self, s: ast.stmt | None) -> list[str]:
        """The comments within a statement that is replaced."""
        start, end = self.source.span(s)  # type: ignore[arg-type]
        text = self.source.text[start:end]
        if "#" not in text:
            return []
        tokens = tokenize.generate_tokens(io.StringIO(text + "\n").readline)
        return [t.string for t in tokens if t.type == tokenize.COMMENT]


def in_order(parts: Iterable[Part]) -> list[Part]:
    """Parts in the order in which they are written and handed on."""
    return sorted(parts, key=lambda p: (_ORDER.index(p[0]), str(p[1])))


def _is_constexpr(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).rpartition(".")[2] == "constexpr"


def _position(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _holds(loop: ast.stmt, node: ast.AST | None) -> bool:
    return any(n is node for n in ast.walk(loop))


__all__ = ["PartTexts", "in_order"]
