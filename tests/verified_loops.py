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

    def checked(rw, loop):
        finish(rw, loop)
        found = [] if loop.form.splits else problems(loop.round.tree)
        assert not found, f"line {loop.plan.loop.lineno}: {found}"
        trees.append(loop.round.tree)

    def pass_checked(loop, body, fresh):
        before = tuple(s for step in body.steps for s in step.statements)
        made = passed(loop, body, fresh)
        found = moved(before, passes.tree_of(loop, made, ""))
        assert not found, f"line {loop.plan.loop.lineno}: {found}"
        return made

    with mock.patch.object(pipelined, "finish_loop", checked), mock.patch.object(passes, "passed", pass_checked):
        yield trees
