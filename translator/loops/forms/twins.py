"""Copies of the syntax that fetches tiles, for the tiles ahead."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass

from gluonize.facts.function import FunctionFacts
from gluonize.facts.loops.loop_range import is_index
from gluonize.facts.syntax import target_of
from gluonize.facts.webs import Definition, Web, Webs
from gluonize.loops.loop.index_loads import Guard
from gluonize.loops.loop.loop import Ring
from gluonize.loops.loop.moved_twice import name_ahead, start_of
from gluonize.loops.plan.partition_schedule import Partitions
from gluonize.loops.plan.plan import PipelinePlan
from gluonize.loops.plan.schedule import Once
from gluonize.trace.front.trace import ConstFact
from gluonize.write.state.fresh_names import LoopNames
from gluonize.write.state.function_loops import FunctionLoops
from gluonize.write.state.unit import Decided
from gluonize.write.state.writing import StateOf


@dataclass(frozen=True)
class Planning:
    """What planning the loops of a function takes, and where what it finds is kept.

    moving: as in Unit. loops: what becomes of them. guards: of loads for tiles ahead, by call. pushed: expressions that are computed
    in the layout that is wanted. added_parameters: constexpr parameters with their defaults. make_cheap: has a variable made anew in
    each layout.
    """

    facts: FunctionFacts
    decided: Decided
    moving: dict[tuple[str, str], bool]
    loops: FunctionLoops
    guards: dict[ast.AST, Guard]
    pushed: set[ast.AST]
    added_parameters: dict[str, str]
    loop_names: LoopNames
    state: StateOf
    make_cheap: Callable[..., None]


class Twins:
    """Copies of the producer's syntax for the tiles ahead, in which what moves has names of its own.

    renamed: index of a variable on both sides -> its twin. made: node -> its copy. The others as of PipelinedLoop.
    """

    def __init__(self, planning: Planning, plan: PipelinePlan):
        self.plan, self.facts, self.names = plan, planning.facts, planning.loop_names
        self.renamed: dict[int, Web] = {}
        self.made: dict[ast.AST, ast.AST] = {}
        self.index_names: list[ast.Name] = []
        self.own_names: list[tuple[ast.Name, Web]] = []
        self.ahead_of: dict[ast.stmt, ast.stmt] = {}
        self.doubled: list[tuple[Web, Web]] = []
        self.looped: set[ast.AST] = set()
        self.uses: dict[ast.Name, Web] = {}
        self.reaching: dict[ast.Name, list[Definition]] = {}
        self.definitions: dict[tuple[ast.AST, str], Web] = {}
        self.starts = Webs()
        first = len(self.facts.webs.all)
        for web in plan.runs.on_both_sides:
            name = f"{web.name}_copied" if isinstance(plan.schedule, Partitions) else name_ahead(web.name)
            twin = Web(first + len(self.renamed), self.names.fresh(name, plan.loop))
            if web in plan.runs.doubled:
                definition, webs = start_of(self.facts, plan.loop, web, twin)
                twin.definitions.append(definition)
                self.starts = self.starts.with_more(webs)
                self.doubled.append((web, twin))
            self.renamed[web.index] = twin

    def of(self, node: ast.AST) -> ast.AST:
        """A copy of `node` at the same place in the source, in which moving names are those of the tile ahead."""
        facts, made = self.facts, copy.deepcopy(node)
        for old, new in zip(ast.walk(node), ast.walk(made)):
            self.made[old] = new
            if old in facts.looped:
                self.looped.add(new)
            if (web := facts.webs.of_use.get(old)) is not None:
                self.reaching[new] = facts.webs.reaching[old]
                if is_index(facts, self.plan.loop, old):
                    self.index_names.append(new)
                else:
                    web = self.renamed.get(web.index, web)
                    new.id = web.name
                self.uses[new] = web
        return made

    def add_statements(self) -> None:
        """The producer's statements for the tile ahead."""
        plan = self.plan
        for s in plan.runs.producer:
            made = self.of(s)
            target = target_of(made)
            original = self.facts.webs.of_definition[(s, target.id)]
            web = self.renamed.get(original.index, original)
            if web is not original:
                target.id = web.name
                web.definitions.append(
                    Definition(web.name, made, made.value, 1, (plan.loop,), isinstance(s, ast.AugAssign))
                )
            if not isinstance(s, ast.AugAssign) and original not in plan.runs.carried:
                self.own_names.append((target, web))
            self.definitions[made, web.name] = web
            self.ahead_of[s] = made

    @property
    def webs(self) -> Webs:
        """The variables of all copies."""
        return self.starts.with_more(Webs(tuple(self.renamed.values()), self.uses, self.definitions, self.reaching))

    def rings(self) -> list[Ring]:
        """For each load a ring of LDS buffers, or tiles that wait in registers."""
        plan, made = self.plan, []
        stems: set[str] = set()
        for load in plan.loads:
            wanted = f"{load.name}_last" if isinstance(plan.schedule, Once) else load.name
            stem = _ring_stem(self.facts, self.names, wanted, plan.loop, stems)
            stems.add(stem)
            smem, *others = (
                self.names.fresh(f"{stem}_{part}", plan.loop) for part in ("smem", "next", "tiles", "desc")
            )
            made.append(Ring(load, smem, self.of(load.call), *others))
        return made


def _ring_stem(facts: FunctionFacts, loop_names: LoopNames, stem: str, loop: ast.For, others: set[str]) -> str:
    """A stem for the names of a ring that no other ring of the loop has. Loops share it only where they follow one
    another in the same block: what a branch or a loop assigns keeps the type that it has before or on the other branch.
    """
    block = _run_time_block(facts, loop)
    return loop_names.stem(stem, block, others)


def _run_time_block(facts: FunctionFacts, node: ast.AST) -> tuple:
    """The branches and loops around a node, those decided while compiling left out."""

    def around(body: list[ast.stmt], block: tuple) -> tuple | None:
        for s in body:
            if s is node:
                return block
            decided = isinstance(s, ast.With) or isinstance(s, ast.If) and isinstance(facts.fact(s.test), ConstFact)
            for side in ("body", "orelse"):
                inner = block if decided else (*block, (id(s), side))
                if (found := around(getattr(s, side, []), inner)) is not None:
                    return found
        return None

    return around(facts.tree.body, ()) or ()
