"""The edits of functions: parts in the place of block pointers, in accesses, in calls of helpers and in what these take and return."""

from __future__ import annotations

import ast
import inspect

from gluonize.read.block_pointers.block_webs import PTRS, Function, Functions, Part, Use, Web
from gluonize.read.block_pointers.builtin_calls import arguments_of, given, refuse
from gluonize.read.block_pointers.needs import checked_dimensions
from gluonize.read.block_pointers.part_texts import PartTexts, in_order
from gluonize.read.block_pointers.reaching import Definition
from gluonize.read.text.source_text import Edit, edit_function
from gluonize.triton_api.jit_functions import JITFunction, KernelParam


def write(functions: Functions) -> None:
    """Give each function its new text, in place."""
    texts = {function: PartTexts(function) for function in functions.known_in_order}
    writers = [_FunctionEdits(function, functions, texts) for function in texts]
    for writer, edits, parameters in [(w, w.edits(), w.parameters()) for w in writers]:
        if edits:
            edit_function(writer.fn, writer.source, edits)
        if writer.function.pointers:
            _take(writer.fn, parameters)


class _FunctionEdits:
    def __init__(self, function: Function, functions: Functions, texts: dict[Function, PartTexts]):
        self.function, self.functions, self.fn, self.all_texts = function, functions, function.fn, texts
        self.texts = texts[function]
        self.source = self.texts.source

    def edits(self) -> list[Edit]:
        found: list[Edit] = []
        replaced: list[ast.stmt] = []
        for web in self.function.webs:
            for d in web.definitions:
                if d.kind == "call":
                    found += self.target(web, d)
                elif d.kind != "parameter":
                    assert d.statement is not None
                    replaced.append(d.statement)
                    found += self.replacement(d.statement, self.texts.defined(web, d))
        inside = {n for s in replaced for n in ast.walk(s)}
        for web in self.function.webs:
            for use in web.uses:
                if use.node in inside:
                    continue
                if use.kind in ("load", "store"):
                    found += self.access(web, use)
                elif use.kind == "attribute":
                    found.append(self.type_of(web, use.node))
                elif use.kind == "test":
                    found.append((*self.source.span(use.node), self.texts.text(web, PTRS)))
                elif use.kind == "return":
                    wanted = self.results(self.function, use.position)
                    found.append((*self.source.span(use.node), ", ".join(self.texts.handed(web, wanted))))
        for call, callee in self.function.calls:
            found += self.arguments(call, callee)
        return found + self.signature()

    def type_of(self, web: Web, node: ast.Name) -> Edit:
        """`p.type.element_ty.element_ty`: to a block pointer the first is the type of its tile, and the second that of its elements."""
        parents = self.function.parents
        part: ast.AST = parents[node]
        text = f"{self.texts.text(web, PTRS)}.{part.attr}"  # type: ignore[attr-defined]
        for _ in range(2):
            above = parents.get(part)
            if not isinstance(above, ast.Attribute) or above.attr != "element_ty":
                break
            part, text = above, f"{self.texts.text(web, PTRS)}.dtype.element_ty"
        return (*self.source.span(part), text)

    def replacement(self, s: ast.stmt, lines: list[str]) -> list[Edit]:
        start, end = self.source.span(s)
        if lines:
            return [(start, end, f"\n{self.source.indent(s)}".join(lines))]
        parent = self.function.parents[s]
        block = next(b for f in ("body", "orelse") if s in (b := getattr(parent, f, [])))
        gone = {d.statement for w in self.function.webs for d in w.definitions if not self.texts.kept(w)}
        if all(other in gone for other in block):
            return [(start, end, "pass")]
        line = self.source.starts[s.lineno - 1]
        stop = self.source.line_end(s)
        if self.source.text[end:stop].strip():
            return [(start, end, "pass")]
        return [(line, min(stop + 1, len(self.source.text)), "")]

    def results(self, function: Function, position: int | None) -> list[Part]:
        """The parts that a function returns of a block pointer: all that its callers ask for, those that are text included."""
        asked = {PTRS}
        for caller in self.functions.known_in_order:
            calls = [call for call, callee in caller.calls if callee is function]
            for web in caller.webs:
                if any(d.kind == "call" and d.value in calls and d.position == position for d in web.definitions):
                    asked |= {part for part in web.needs if part[0] != "mask"}
        return in_order(asked)

    def target(self, web: Web, d: Definition) -> list[Edit]:
        """The names of the parts that a call returns."""
        callee = next(callee for call, callee in self.function.calls if call is d.value)
        wanted = self.results(callee, d.position)
        assert isinstance(d.statement, ast.Assign)
        (target,) = d.statement.targets
        node = target if d.position is None else target.elts[d.position]  # type: ignore[attr-defined]
        return [(*self.source.span(node), ", ".join(self.texts.variable(web, part) for part in wanted))]

    def access(self, web: Web, use: Use) -> list[Edit]:
        """The edits of a load or a store."""
        call = use.call
        assert call is not None
        arguments = given(call)
        for name in ("mask", "other"):
            node = arguments.get(name)
            if node is not None and not (isinstance(node, ast.Constant) and node.value is None):
                why = "its own bounds say which elements there are"
                raise refuse(self.fn, node, f"{use.kind} of a block pointer has `{name}`", why, "use boundary_check")
        padding = self.padding(arguments.get("padding_option"))
        mask, other = self.condition(web, arguments.get("boundary_check"), padding)
        added = [f"mask={mask}"] if mask is not None else []
        added += [f"other={other}"] if other is not None and use.kind == "load" else []
        gone = [arguments[n] for n in ("mask", "other", "boundary_check", "padding_option") if n in arguments]
        return [(*self.source.span(use.node), self.texts.text(web, PTRS)), *self.without(call, gone, added)]

    def without(self, call: ast.Call, gone: list[ast.expr], new: list[str]) -> list[Edit]:
        """The edits that leave arguments out of a call and put others in the place of the first of them."""
        items: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        items.sort(key=lambda n: self.source.span(n)[0])
        edits: list[Edit] = []
        for n, item in enumerate(items):
            value = item.value if isinstance(item, ast.keyword) else item
            if value not in gone:
                if n > 0 and not isinstance(item, ast.keyword) and any(v in gone for v in items[:n]):
                    name = next(k for k, v in given(call).items() if v is item)
                    start = self.source.span(item)[0]
                    edits.append((start, start, f"{name}="))
                continue
            start, end = self.source.span(item)
            if new:
                before = self.source.text[self.source.starts[item.lineno - 1] : start]
                edits.append((start, end, (", " if before.strip() else f",\n{before}").join(new)))
                new = []
            else:
                edits.append((self.source.span(items[n - 1])[1], end, ""))
        return edits

    def condition(self, web: Web, node: ast.expr | None, padding: str) -> tuple[str | None, str | None]:
        """The mask of an access and what is read where it is false; None for neither."""
        if isinstance(node, ast.IfExp):
            test = self.texts.spelled(node.test)
            sides = [self.condition(web, side, padding) for side in (node.body, node.orelse)]
            if sides[0] == sides[1]:
                return sides[0]
            (mask, other), (no_mask, no_other) = sides
            other, no_other = (f"({o})" if o is not None and " if " in o else o for o in (other, no_other))
            chosen = other if other == no_other else f"{other} if {test} else {no_other}"
            return f"{mask} if {test} else {no_mask}", chosen
        dimensions = checked_dimensions(web, node)
        if not dimensions:
            return None, None
        return (
            self.texts.variable(web, ("mask", dimensions)) if web.pinned else self.texts.mask(web, dimensions)
        ), padding

    def padding(self, node: ast.expr | None) -> str:
        """What is read out of bounds."""
        known = ("",) if node is None else self.function.signs.constant(node)
        if known is None:
            return f'float("nan") if {self.texts.factor(node)} == "nan" else 0'  # type: ignore[arg-type]
        if known[0] not in (None, "", "zero", "nan"):
            raise refuse(self.fn, node, f"padding_option {known[0]!r}", 'it is "zero" or "nan"', 'use "zero"')  # type: ignore[arg-type]
        return 'float("nan")' if known[0] == "nan" else "0"

    def arguments(self, call: ast.Call, callee: Function) -> list[Edit]:
        """The edits of a call of a helper: parts in place of block pointers."""
        edits: list[Edit] = []
        for name, node in arguments_of(callee.fn, call):
            if name not in callee.pointers:
                continue
            wanted = _parameter_parts(callee, name)
            if self.function.flow.is_pointer(node):
                texts = self.texts.handed(self.function.web(node), wanted)
            else:
                texts = ["None"] * len(wanted)
            keyword = next((k for k in call.keywords if k.value is node), None)
            if keyword is None:
                edits.append((*self.source.span(node), ", ".join(texts)))
                continue
            names = self.parameter_names(callee, name)
            edits.append((*self.source.span(keyword), ", ".join(f"{n}={t}" for n, t in zip(names, texts))))
        return edits

    def parameter_names(self, function: Function, name: str) -> list[str]:
        """The parameters in the place of one of a function that is a block pointer."""
        web = _web_of(function, name)
        return [self.all_texts[function].variable(web, part) for part in _parameter_parts(function, name)]

    def signature(self) -> list[Edit]:
        """The edits that put parts of block pointers in the place of the parameters that were these."""
        edits: list[Edit] = []
        for arg in (
            n for n in ast.walk(self.function.tree) if isinstance(n, ast.arg) and n.arg in self.function.pointers
        ):
            plain = self.fn.signature.parameters[arg.arg].default is inspect.Parameter.empty
            edits.append(
                (
                    *self.source.span(arg),
                    (", " if plain else "=None, ").join(self.parameter_names(self.function, arg.arg)),
                )
            )
        return edits

    def parameters(self) -> list[inspect.Parameter]:
        """The parameters of the function with the parts of block pointers in the place of these."""
        found: list[inspect.Parameter] = []
        for name, parameter in self.fn.signature.parameters.items():
            if name in self.function.pointers:
                bare = parameter.replace(annotation=inspect.Parameter.empty)
                found += [bare.replace(name=n) for n in self.parameter_names(self.function, name)]
            else:
                found.append(parameter)
        return found


def _take(fn: JITFunction, parameters: list[inspect.Parameter]) -> None:
    """Have Triton's object of a helper know of the parameters that it has now."""
    fn.signature = inspect.Signature(parameters)
    fn.params = [KernelParam(n, p, False, False) for n, p in enumerate(parameters)]
    fn.arg_names = [p.name for p in fn.params]
    fn.constexprs = [p.num for p in fn.params if p.is_constexpr]


def _parameter_parts(function: Function, name: str) -> list[Part]:
    """What a function wants of a block pointer that is one of its parameters."""
    return in_order(p for p in _web_of(function, name).needs if p[0] != "mask")


def _web_of(function: Function, name: str) -> Web:
    """The block pointer that a parameter is."""
    return next(w for w in function.webs for d in w.definitions if d.kind == "parameter" and d.name == name)


__all__ = ["write"]
