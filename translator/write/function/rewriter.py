"""Rewrite one traced function to Gluon: every tensor expression in a known layout, the author's text otherwise.

`FunctionRewriter.emit(node, want)` returns the Gluon expression for `node` in the layout `want`. Which layouts are wanted has been found before,
by a walk that writes nothing (`write/layouts/demand_walk.py`): a definition is emitted once per layout that its uses demand where it is cheap,
else once, with conversions.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import Any

from gluonize.facts.function import FunctionFacts
from gluonize.facts.reading import read_function
from gluonize.facts.refusals import refuse
from gluonize.facts.syntax import target_of
from gluonize.facts.variables.definitions import names_read
from gluonize.facts.webs import Definition, UnrolledLoop, written_nodes
from gluonize.gluon.code import Lined, code_of, ended, indented, joined, lines_of
from gluonize.gluon.nodes import Code, Named, Read, Slot
from gluonize.gluon.printer import opened, printed
from gluonize.gluon.trees.origins import Place as Origin
from gluonize.gluon.trees.origins import marked
from gluonize.gluon.trees.function import GluonFunction
from gluonize.gluon.written import Written, literal, name
from gluonize.read.text.moved_lines import file_line
from gluonize.read.text.source_text import Edit, SourceText, dedented
from gluonize.trace.front.trace import ConstFact, Frame
from gluonize.trace.model.layouts import Layout
from gluonize.write.accesses import moving_parameters
from gluonize.write.calls import calls, instance_layouts
from gluonize.write.calls.kind import Place
from gluonize.write.contracts import contracts
from gluonize.write.descriptors import host
from gluonize.write.function import shared_texts
from gluonize.write.function.assignments import Assignments
from gluonize.write.function.dead_variants import without_dead_variants
from gluonize.write.function.written import WrittenFunction
from gluonize.write.layouts.demand_walk import DemandWalk
from gluonize.write.products import invariant
from gluonize.write.state.edits import Edits
from gluonize.write.state.site import Site
from gluonize.write.state.unit import Record, Unit
from gluonize.write.state.writing import Writing

# Which parameters of a function the code that ran depends on; one that the translation does not name is fixed in it.
#
# `tl.load(p, mask, other=PAD)` with `PAD` 0 needs no `other`: the translation is then right for that value only.

# Arguments that say how to get a result, not which.
_HINTS = frozenset(
    ("eviction_policy", "cache_modifier", "num_stages", "loop_unroll_factor", "flatten", "warp_specialize")
)
_HINTS |= frozenset(("disallow_acc_multi_buffer", "disable_licm", "max_num_imprecise_acc"))


def parameters_read(facts: FunctionFacts, body: list[ast.stmt]) -> set[str]:
    """Names of parameters in the statements of `body` that ran; hints to the compiler are left out."""
    arguments = facts.tree.args
    parameters = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.stmt) and not facts.taken(node):
            return
        if isinstance(node, ast.keyword) and node.arg in _HINTS:
            return
        if isinstance(node, ast.Name) and node.id in parameters:
            found.add(node.id)
        for child in ast.iter_child_nodes(node):
            visit(child)

    for s in body:
        visit(s)
    return found


# Constexpr parameters that a translation adds to a function, and defaults that its text would not give any more.


def with_parameters(source: SourceText, args: ast.arguments, added: Mapping[str, str]) -> Edit:
    """The edit that adds parameters with their defaults after the author's own, so that launches keep working."""
    parameters = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    ends = [source.span(n)[1] for n in [*parameters, *args.defaults, *args.kw_defaults] if n is not None]
    end = max(ends, default=source.text.index("(") + 1)
    texts = [f"{name}: gl.constexpr = {default}" for name, default in added.items()]
    rest, _, more = source.text[end:].partition("\n")
    comma, rest = rest[:1], rest[1:].strip()
    if comma == "," and more and (not rest or rest.startswith("#")):
        # One parameter or more per line, with a trailing comma.
        at = source.text.index("\n", end)
        line = source.text[source.text.rfind("\n", 0, end) + 1 : end]
        indent = line[: len(line) - len(line.lstrip())]
        return at, at, "".join(f"\n{indent}{text}," for text in texts)
    return end, end, (", " if ends else "") + ", ".join(texts)


def bound_default(facts: FunctionFacts, default: ast.expr) -> Written | None:
    """The value that the name of a default had when `def` ran, where the name has another one when the module has been read."""
    fn, args = facts.frame.fn, facts.tree.args
    if not isinstance(default, ast.Name) or default.id not in fn.fn.__globals__:
        return None
    positional = [*args.posonlyargs, *args.args]
    paired = [*zip(reversed(positional), reversed(args.defaults)), *zip(args.kwonlyargs, args.kw_defaults)]
    argument = next(a.arg for a, value in paired if value is default)
    bound = next(p.default for p in fn.params if p.name == argument)
    same = fn.fn.__globals__[default.id] == bound
    return literal(bound) if type(bound) in (int, float, bool, str) and not same else None


class FunctionRewriter(Assignments):
    """Writes one function of a kernel, whose `facts` these are, when its layouts are found. walk: what finds them."""

    walk: type[DemandWalk] = DemandWalk

    def __init__(self, unit: Unit, facts: FunctionFacts, wants: Any = None, argument_homes=None):
        self.unit, self.facts = unit, facts
        self.layouts = self.walk(unit, facts, self.writer, wants, argument_homes)
        self.names = self.layouts.names
        self.redefined: frozenset[str] = frozenset()  # names with a `x = f(x)`

    def begin(self) -> None:
        """Nothing is written yet."""
        layouts = self.layouts
        layouts.begin_round()
        self.edits = Edits(self.facts.source)
        self.hoisted: dict[ast.AST, dict[str, Code]] = {}  # loop -> variable -> its line before the loop
        self.written_loops: list[Any] = []  # pipelined loops whose bodies are to be finished
        self._site: Site | None = None
        self.record = Record(self.facts.kernel.target.gluon_module)
        known = {**vars(layouts.asking), "record": self.record}
        self.writing = Writing(**known, emit=self.emit, splice=self.splice, convert=self.convert)
        self.record.obligations |= {o for s in layouts.states.values() if s.split is not None for o in s.split.assumed}

    def writer(
        self, frame: Frame, path: tuple[int, ...], wants: Any, argument_homes: dict[str, Any]
    ) -> FunctionRewriter:
        """Another function of the kernel, to be written for arguments that lie so."""
        return type(self)(self.unit, read_function(self.facts.kernel, frame, path), wants, argument_homes)

    def finish_loops(self, statements: list[ast.stmt]) -> None:
        """When the edits of all loops in `statements` are final: passes over those that are pipelined."""

    @property
    def site(self) -> Site:
        """The place that is being written."""
        known = self._site
        if known is None or known.loops is not self.layouts.loops or known.edits is not self.edits:
            own = dict(loops=self.layouts.loops, edits=self.edits, hoisted=self.hoisted, reads=self.reads)
            self._site = known = Site(**vars(self.writing), **own)
        return known

    @property
    def place(self) -> Place:
        """Where a call stands that is written now."""
        return Place(self.site, self.layouts.addressing, self.layouts.helpers)

    def reads(self, node: ast.AST, without: Collection[ast.AST] = ()) -> frozenset[str]:
        """The variables that `node` reads as rewritten, outside of `without`."""
        read = names_read(self.facts, node, {*self.layouts.of_loops.staged, *self.layouts.of_loops.held, *without})
        held = (self.layouts.of_loops.held[n].ring.next for n in ast.walk(node) if n in self.layouts.of_loops.held)
        unscaled = {
            x.name for n in ast.walk(node) if (x := self.layouts.unscaled.get(n)) is not None and n in x.reductions
        }
        return frozenset({n.id for n in read if n in self.facts.webs.of_use}.union(held, unscaled))

    def rewrite(self) -> WrittenFunction:
        """The function, whose layouts and helpers have no names yet."""
        self.layouts.prepare()
        # Names that prepare() made, of tiles ahead, are among them.
        self.redefined = frozenset(d.name for w in self.facts.webs.all for d in w.definitions if _reads_itself(d))
        self.layouts.find()
        self.begin()
        first, indent = host.first_line(self.facts), self.facts.source.indent(self.facts.tree.body[-1])
        self.edits.insert_above(first, host.take_tuples(self.writing), indent)
        self.edits.insert_above(
            first, moving_parameters.starts(self.facts, self.layouts.state, self.layouts.fresh), indent
        )
        self.signature()
        self.block(self.facts.tree.body)
        instance_layouts.insert(self.site, self.layouts.states, self.agreed())
        if not self.layouts.demanded.settled:
            raise self.layouts.unsettled(self.layouts.demanded.unforeseen(file_line(self.facts.frame.fn, 1)))
        self.finish_loops(self.facts.tree.body)
        self.record.reads = parameters_read(self.facts, self.facts.tree.body)
        function = without_dead_variants(self.tree())
        return self.finished(instance_layouts.chosen(self.unit.references, self.names, function))

    def tree(self) -> GluonFunction:
        """What the edits make of the function, with statements that know their lines of the file."""
        source, fn, out = self.facts.source, self.facts.frame.fn, []
        lines = lines_of(self.edits.code(0, len(source.text)))
        origins: list[int] = []
        for line, origin in zip(lines, self.edits.kept(0, len(source.text))):
            out.append(self.unit.references.text(printed(line)))
            origins += [origin] * (1 + out[-1].count("\n"))
        text, path = "\n".join(out), fn.file_name or ""

        def place(line: int) -> Origin | None:
            return (path, file_line(fn, origin)) if (origin := origins[line - 1]) else None

        module = self.unit.references.function(text).module
        return GluonFunction(module.with_changes(body=marked(module.body, ast.parse(text).body, place)))

    def agreed(self) -> set[Layout]:
        """The layouts that this function and the helpers it calls agree on with their callers."""
        helpers = [self.unit.helper_versions[i] for i in self.record.helpers]
        own = instance_layouts.agreed(self.layouts.argument_homes, self.layouts.wants, self.layouts.states)
        return own.union(*(instance_layouts.agreed(h.argument_homes, h.wants, h.states) for h in helpers))

    def finished(self, function: GluonFunction) -> WrittenFunction:
        """What is read of the work afterwards."""
        return WrittenFunction(
            self.facts,
            self.unit.decided,
            function,
            self.record,
            self.names,
            self.layouts.wants,
            self.layouts.argument_homes,
            self.layouts.locals,
            self.layouts.added_parameters,
            self.layouts.states,
            self.layouts.state,
            self.layouts.home,
            self.layouts.addressing,
            self.layouts.of_loops,
        )

    def signature(self) -> None:
        args = self.facts.tree.args
        for arg in [*args.args, *args.kwonlyargs]:
            if arg.annotation is not None:
                self.edits.replace(arg.annotation, self.emit(arg.annotation))
        for default in [*args.defaults, *(d for d in args.kw_defaults if d is not None)]:
            self.edits.replace(default, bound_default(self.facts, default) or self.emit(default))
        if self.facts.tree.returns is not None:
            self.edits.replace(self.facts.tree.returns, self.emit(self.facts.tree.returns))
        if self.layouts.added_parameters:
            self.edits.append(with_parameters(self.facts.source, self.facts.tree.args, self.layouts.added_parameters))

    def block(self, statements: list[ast.stmt], condition: str = "") -> None:
        """The statements of one block, which runs under the compile-time `condition` if there is one."""
        reached = max((i + 1 for i, s in enumerate(statements) if self.facts.taken(s)), default=0)
        if reached < len(statements):
            self.unreached(statements[reached:], condition if not reached else self.left(statements[reached - 1]))
        for i, statement in reversed(list(enumerate(statements[:reached]))):
            if statement in self.layouts.of_loops.dropped:
                self.drop(statement, all(s in self.layouts.of_loops.dropped for s in statements[:i]))
            else:
                self.statement(statement)

    def drop(self, s: ast.stmt, leads: bool) -> None:
        """Leave out the lines of `s`; leads: nothing before it in its block is left."""
        start, end = self.facts.source.starts[s.lineno - 1], self.facts.source.line_end(s)
        self.edits.append((start, end + 1, "") if leads else (start - 1, end, ""))

    def unreached(self, statements: list[ast.stmt], condition: str) -> None:
        """The rest of a block that this specialization does not run: compiling it is an error that says so."""
        start, end = self.facts.source.span(statements[0])[0], self.facts.source.span(statements[-1])[1]
        text = contracts.untranslated(self.facts.frame.fn, condition)
        if self.facts.source.text.startswith("elif", start):
            text = f"else:\n{self.facts.source.indent(statements[0])}    {text}"
        self.edits.append((start, end, text))

    def left(self, s: ast.stmt) -> str:
        """The condition for not having left the block in the compile-time conditional `s`."""
        if not (isinstance(s, ast.If) and isinstance(fact := self.facts.fact(s.test), ConstFact)):
            return ""
        return contracts.negated(self.facts.source.of(s.test)) if fact.value else self.facts.source.of(s.test)

    def statement_code(self, s: ast.stmt) -> Code:
        """A statement of a loop's producer, which stands elsewhere."""
        outer, self.edits = self.edits, Edits(self.facts.source)
        self.plain_statement(s)
        start, end = self.facts.source.span(s)
        target = target_of(s)
        if not any(a <= start for a, _, _ in self.edits):
            self.edits.replace(target, target.id)
        made, self.edits = self.edits.code(start, end), outer
        return made

    def statement(self, s: ast.stmt) -> None:
        self.plain_statement(s)

    def plain_statement(self, s: ast.stmt) -> None:
        if not self.facts.taken(s):
            self.untaken(s)
        elif isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self.assignment(s)
        elif isinstance(s, ast.If):
            self.conditional(s)
        elif isinstance(s, ast.For):
            self.for_loop(s)
        elif isinstance(s, ast.While):
            self.layouts.loops = (*self.layouts.loops, s)
            self.block(s.body)
            self.edits.replace(s.test, self.emit(s.test))
            self.layouts.loops = self.layouts.loops[:-1]
        elif isinstance(s, ast.Return):
            if s.value is not None:
                self.return_statement(s)
        elif isinstance(s, ast.Expr):
            if not isinstance(s.value, ast.Constant):
                self.edits.replace(s.value, calls.emit_statement_call(self.place, s.value))
        elif isinstance(s, ast.Assert):
            self.edits.replace(s.test, self.emit(s.test))
        elif isinstance(s, ast.With):
            self.block(s.body)
        elif not isinstance(s, (ast.Pass, ast.Import, ast.ImportFrom, ast.Global)):
            raise refuse(self.facts.frame, s, "statement", f"statement `{type(s).__name__}` is not translated")

    def untaken(self, s: ast.stmt) -> None:
        """Code that this specialization does not reach: names are translated, layouts are unknown."""
        for node in ast.walk(s):
            if isinstance(node, ast.Attribute) and (text := self.static_attribute(node)) is not None:
                self.edits.replace(node, text)

    def conditional(self, s: ast.If) -> None:
        test = self.facts.source.of(s.test)
        self.block(s.orelse, contracts.negated(test))
        self.block(s.body, test)
        if self.facts.fact(s.test) is not None:
            self.edits.replace(s.test, self.emit(s.test))
        edits = self.edits if self.site.pipelined else self.edits.last  # passes over a loop rewrite what is in it
        edits.extend(contracts.missing_side(self.facts, self.layouts.of_loops.statements, s))

    def unrolled_loop(self, s: UnrolledLoop) -> None:
        """One body after the other; a loop again where its shapes change and its text does not."""
        each = self.unrolled_bodies(s, s.target.id)
        body = shared_texts.one_body(self.unit, [x.code for x in each])
        indent = self.facts.source.indent(s)
        if body is not None:
            head = code_of(f"for {s.target.id} in ", calls.emit_iterator(self.writing, s.iter), ":\n")
            made = Lined(code_of(head, indented(body, indent + "    ")), (s.lineno, *each[0].lines))
            self.edits.replace(s, made)
            return
        note = f"# {self.facts.source.text[self.facts.source.span(s)[0]:self.facts.source.span(s.iter)[1]]}, written out: {s.why}"
        each = self.unrolled_bodies(s)
        code = code_of(note + "\n", indented(joined("\n", (body.code for body in each)), indent))
        lines = (0,) * (1 + note.count("\n")) + tuple(n for body in each for n in body.lines)
        self.edits.replace(s, Lined(code, lines))

    def unrolled_bodies(self, s: UnrolledLoop, index: str | None = None) -> list[Lined]:
        """Each iteration's body, in which the loop's variable stands as `index`, or as its value."""
        outer, start, end = (
            self.edits,
            self.facts.source.starts[s.body[0].lineno - 1],
            self.facts.source.span(s.body[-1])[1],
        )
        made = []
        for body, value in reversed(list(zip(s.bodies, s.values))):
            for node in (n for statement in body for n in written_nodes(statement) if isinstance(n, ast.Name)):
                if node.id == s.target.id:
                    node.literal = name(index) if index else literal(value)
            self.edits = Edits(self.facts.source)
            self.block(body)
            self.finish_loops(body)
            lines: list[Code] = []
            origins: list[int] = []
            for line, origin in zip(lines_of(self.edits.code(start, end)), self.edits.kept(start, end)):
                own = lines_of(opened(line, (Read, Slot, Named)))  # places in LDS, which passes have to see
                lines += own
                origins += [origin] * len(own)
            made.append(Lined(joined("\n", (_dedented(line, s.body[0].col_offset) for line in lines)), tuple(origins)))
        self.edits = outer
        return made[::-1]

    def for_loop(self, s: ast.For) -> None:
        if isinstance(s, UnrolledLoop):
            return self.unrolled_loop(s)
        self.layouts.loops = (*self.layouts.loops, s)
        self.block(s.body, contracts.loop_text(self.facts, s))
        self.layouts.loops = self.layouts.loops[:-1]
        self.edits.replace(s.iter, calls.emit_iterator(self.writing, s.iter))
        guard = contracts.idle_loop(self.facts, s, self.emit)
        if lines := [*guard, *invariant.lines_before(self.hoisted, s)]:
            at, indent = self.facts.source.offset(self.facts.source.first_line(s), 0), self.facts.source.indent(s)
            self.edits.append((at, at, ended(lines, indent)))

    def return_statement(self, s: ast.Return) -> None:
        self.edits.replace(s.value, self.emit(s.value, self.layouts.returned(s)))


def _dedented(line: Code, column: int) -> Code:
    """As `dedented`."""
    return code_of(dedented(line[0], column), *line[1:]) if isinstance(line[0], str) else line


def _reads_itself(d: Definition) -> bool:
    """Whether a definition is `x = f(x)`; what is augmented is the same variable on both sides."""
    if d.value is None or d.augmented:
        return False
    return any(isinstance(n, ast.Name) and n.id == d.name for n in ast.walk(d.value))
