"""Every pipelined loop that is written is verified, as long as `verified` lasts: what its passes moved, and its waits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

from gluonize.gluon.verify import moved, problems
from gluonize.loops.forms import pipelined
from gluonize.loops.passes import passes


@contextlib.contextmanager
def verified() -> Iterator[list]:
    """-> the trees of the loops that were written."""
    trees: list = []
    finish, passed = passes.finish_loop, passes.passed
    given: list = []

    def checked(rw, loop, parts):
        made = finish(rw, loop, parts)
        body = passes.tree_of(loop, parts, loop.trips.nodes(loop, made.body), "")
        found = moved(given.pop(), body)
        assert not found, f"line {loop.plan.loop.lineno}: {found}"
        found = [] if loop.form.splits else problems(made.tree)
        assert not found, f"line {loop.plan.loop.lineno}: {found}"
        trees.append(made.tree)
        return made

    def pass_checked(loop, body, fresh):
        given.append(tuple(s for step in body.steps for s in step.statements))
        return passed(loop, body, fresh)

    with mock.patch.object(pipelined, "finish_loop", checked), mock.patch.object(passes, "passed", pass_checked):
        yield trees
