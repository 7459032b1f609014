"""Assignments of a function: a tensor once per layout that its uses demand, tuples with their elements' layouts."""

from __future__ import annotations

import ast

from gluonize.facts import callees
from gluonize.facts.desugar import Promotion
from gluonize.facts.loops.unscaled import Unscaled
from gluonize.facts.syntax import loads, target_of
from gluonize.facts.variables.definitions import assigned_fact, keeps
from gluonize.facts.webs import Web
from gluonize.gluon import written
from gluonize.gluon.code import assignment, code_of, indented, joined, lines_of, without_indent
from gluonize.gluon.nodes import NONE, Assign, Authored, Code, Name, Product, beside, walk
from gluonize.gluon.written import Assigned, Operation, Written, operand, times
from gluonize.trace.front.trace import TensorFact, TupleFact
from gluonize.trace.model.layouts import Layout
from gluonize.write.accesses import pointer_variables
from gluonize.write.calls import calls
from gluonize.write.calls.tuples import flat_targets
from gluonize.write.function.expressions import Expressions
from gluonize.write.layouts import needed_statements
from gluonize.write.products import dots, lds_operands, moved_once
from gluonize.write.state.edits import Edits
from gluonize.write.state.variables import WebState


def promoted(variable: Name, value: Written) -> Assigned:
    """`x += t` for `x = x + t`, where both are the same variable."""
    if isinstance(value, Operation) and value.left == variable and value.sign in ("+", "-"):
        return Assigned(variable, value.right, value.sign)
    return Assigned(variable, value)


class Assignments(Expressions):
    """What writes assignments; the function that they are in adds statements and blocks."""

    edits: Edits

    def assignment(self, s: ast.stmt) -> None:
        target = target_of(s)
        if isinstance(s, ast.AnnAssign) and s.value is None:
            self.edits.replace(s.annotation, self.emit(s.annotation))
            return
        if isinstance(target, ast.Name):
            web = self.facts.webs.of_definition[(s, target.id)]
            fact = assigned_fact(self.facts, s)
            if isinstance(fact, TensorFact) and fact.shape:
                self.tensor_assignment(s, target.id, web)
                return
            if isinstance(fact, TensorFact) and fact.is_pointer and self.layouts.state(web).split is not None:
                made = pointer_variables.assign_scalar(
                    self.writing, self.layouts.addressing, s, self.layouts.state(web)
                )
                self.edits.replace(s, made.code)
                return
            if isinstance(s, ast.AnnAssign):
                self.edits.replace(s.annotation, self.emit(s.annotation))
            want = self.layouts.web_home(web) if isinstance(fact, TupleFact) else None
            self.edits.replace(s.value, self.emit(s.value, want))
            self.edits.insert_behind(s, self.scalar_variants(target.id, web))
            return
        wants = self.layouts.target_wants(s, target)
        self.edits.replace(s.value, self.emit(s.value, wants))
        self.edits.insert_behind(s, [line for name in flat_targets(target) for line in self.conversions_after(s, name)])

    def scalar_variants(self, name: str, web: Web) -> list[Code]:
        """A scalar given to a variable that is a tensor on another branch: it stands for each of the tensor's layouts."""
        state = self.layouts.states.get(web.index)
        if state is None or state.split is not None:
            return []
        names = [self.names.variant(name, layout) for layout in state.converted]
        if state.cheap:
            names += [self.variant_name(state, layout) for layout in state.variants]
        return [code_of(other, f" = {name}") for other in names if other != name]

    def conversions_after(self, s: ast.stmt, target: ast.AST) -> list[Code]:
        if not isinstance(target, ast.Name):
            return []
        web = self.facts.webs.of_definition.get((s, target.id))
        state = self.layouts.states.get(web.index) if web else None
        if state is None:
            return []
        kept = any(d.node is s and keeps(self.facts, d) for d in web.definitions)
        lines = [
            code_of(
                self.names.variant(target.id, layout),
                " = ",
                lds_operands.moved_through_lds(self.site, web, layout) or self.convert(written.name(target.id), layout),
            )
            for layout in ([] if kept else state.converted)
        ]
        lines += lds_operands.definitions(self.site, s, web)
        moved_once.definitions(self.site, s, web)
        return lines

    def tensor_assignment(self, s: ast.stmt, name: str, web: Web) -> None:
        state = self.layouts.state(web)
        if state.split:
            lines = [made.code for made in self.offsets(s, state)]
            self.edits.replace(s, self.joined(s, lines or [("pass",)]))
            return
        layouts = self.layouts.layouts_of(state, s)
        role = calls.role_of(self.facts, self.layouts.of_loops.staged, s.value, name)
        lines, last = [], []
        if (unscaled := self.layouts.unscaled.get(s)) is not None and s is unscaled.statement:
            lines.append(self.unscaled_product(s, unscaled, layouts[0]))
        for layout in layouts:
            if role:
                self.names.suggest(layout, *role, s.lineno)
            variant = self.variant_of(state, layout, layouts)
            # In `x = f(x)` a variant may be made of what the author's name still stands for: that name gets its value last.
            of_itself = variant == name and not isinstance(s, ast.AugAssign) and name in loads(s.value)
            code = self.needed_code(s, name, variant, layout) or self.assign_code(s, name, variant, layout)
            (last if of_itself else lines).append(code)
        lines += [*last, *self.conversions_after(s, ast.Name(id=name))]
        self.edits.replace(s, self.joined(s, lines))

    def unscaled_product(self, s: ast.stmt, unscaled: Unscaled, layout: Layout) -> Code:
        """The statement that gives a product its own name, before it is scaled."""
        self.record.obligations |= unscaled.assumed
        made = unscaled.product if s is unscaled.source else s.value
        value = self.emit(made, layout)
        if not self.site.pipelined:
            return code_of(f"{unscaled.name} = ", value)
        reads = self.reads(s.value, [made]) if s is unscaled.source else self.reads(made)
        return (assignment(unscaled.name, value, beside(reads, value.code)),)

    def scaled(self, s: ast.stmt, unscaled: Unscaled, layout: Layout) -> Written:
        """What a statement gives its variable, of which a maximum is taken before it is scaled."""
        if s is not unscaled.statement:
            return self.emit(unscaled.product, layout)
        factors = {factor: self.emit(factor) for factor in unscaled.factors}
        value, web = written.name(unscaled.name), self.facts.webs.of_definition[(s, target_of(s).id)]
        if layout != self.layouts.layouts_of(self.layouts.state(web), s)[0]:
            value = self.convert(value, layout)
        if s is unscaled.source:
            return self.splice(s.value, {unscaled.product: value} | factors)
        for factor in factors.values():
            value = times(value, operand(factor))
        return value

    def moves(self, s: ast.AugAssign) -> list[Assigned]:
        """What `x += c` becomes: one for each variable that stands for `x`."""
        sign = "+" if isinstance(s.op, ast.Add) else "-"
        web, fact = self.facts.webs.of_definition[(s, s.target.id)], assigned_fact(self.facts, s)
        if isinstance(fact, TensorFact) and fact.shape:
            state = self.layouts.state(web)
            if state.split:
                return self.offsets(s, state)
            layouts = self.layouts.layouts_of(state, s)
            return [
                Assigned(self.variant_of(state, layout, layouts), self.writing.operand_in(s.value, fact, layout), sign)
                for layout in layouts
            ]
        if isinstance(fact, TensorFact) and fact.is_pointer and self.layouts.state(web).split is not None:
            return [pointer_variables.assign_scalar(self.writing, self.layouts.addressing, s, self.layouts.state(web))]
        return [Assigned(s.target.id, self.emit(s.value), sign)]

    def offsets(self, s: ast.stmt, state: WebState) -> list[Assigned]:
        """The assignment of a pointer variable that is base and offsets."""
        return pointer_variables.assign(
            self.writing, self.layouts.addressing, s, state, self.layouts.split_layouts(s, state)
        )

    def variant_of(self, state: WebState, layout: Layout, layouts: list[Layout]) -> Name:
        """What the variable is called in one of the layouts in which it is assigned."""
        if state.cheap and state.variants:
            return self.variant_name(state, layout)
        return state.web.name if layout == layouts[0] else self.names.variant(state.web.name, layout)

    def assign_code(self, s: ast.stmt, name: str, variant: Name, layout: Layout) -> Code:
        """The assignment of one variant, as a statement that passes over pipelined loops can look into."""
        made_so = self.assigned(s, variant, layout)
        code = without_indent(made_so, self.facts.source.indent(s))
        if code is None or not self.site.pipelined:
            return made_so
        made = any(isinstance(n, Product) for n in walk(code))
        products = [n for n in ast.walk(s.value) if made and callees.is_dot(self.facts, n)]
        reads = self.reads(s.value, products) | ({name} if isinstance(s, ast.AugAssign) else NONE)
        if (unscaled := self.layouts.unscaled.get(s)) is not None and s is unscaled.statement:
            reads = frozenset({unscaled.name}).union(*map(self.reads, unscaled.factors))
        return (Assign(variant, code, name, beside(reads, code)),)

    def needed_code(self, s: ast.stmt, name: str, variant: Name, layout: Layout) -> Code | None:
        """A statement behind a branch (gluonize.write.layouts.needed_statements); None for one that is needed in any case."""
        found = needed_statements.needed(self.site, s, layout)
        if found is None or found.kept is not None and self.emit(found.kept, layout) != variant:
            return None
        moves = without_indent(self.assigned(s, variant, layout), self.facts.source.indent(s))
        if moves is None:
            return None
        code = code_of("if ", found.condition, ":\n", indented(moves, "    "))
        if not self.site.pipelined:
            return self.joined(s, lines_of(code))
        own = {name} if isinstance(s, ast.AugAssign) else NONE
        reads = self.reads(s.value).union(own, *map(self.reads, found.reads))
        return (Authored(code, beside(reads, code), frozenset({name, variant})),)

    def assigned(self, s: ast.stmt, variant: Name, layout: Layout) -> Code:
        target = target_of(s)
        if isinstance(s, ast.AugAssign):
            fact = assigned_fact(self.facts, s)
            dot = dots.accumulated_dot(self.site, s, variant, layout)
            if dot is not None:
                return Assigned(variant, dot).code
            value = self.writing.operand_in(s.value, fact, layout)
        elif (unscaled := self.layouts.unscaled.get(s)) is not None:
            value = self.scaled(s, unscaled, layout)
        else:
            value = self.emit(s.value, layout)
        if isinstance(s.value, Promotion) and not isinstance(s, ast.AugAssign):
            return promoted(variant, value).code
        children = {s.value: value}
        if variant != self.facts.source.of(target):
            children[target] = written.name(variant)
        if isinstance(s, ast.AnnAssign):
            children[s.annotation] = self.emit(s.annotation)
        return self.splice(s, children).code

    def joined(self, s: ast.stmt, lines: list[Code]) -> Code:
        return joined("\n" + self.facts.source.indent(s), lines)
