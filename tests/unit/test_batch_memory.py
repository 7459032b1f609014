"""What a process keeps from one kernel to the next is bounded: memory does not grow with the number of kernels."""

import gc
import weakref

from gluonize.decide.layouts import inferred
from gluonize.read.files.modules import parse_file
from gluonize.rules.targets import target
from gluonize.trace.model.layouts import Blocked


def test_few_syntax_trees_are_kept(tmp_path):
    alive = []
    for i in range(200):
        (tmp_path / f"m{i}.py").write_text(f"x = {i}\n")
        alive.append(weakref.ref(parse_file(str(tmp_path / f"m{i}.py")).tree))
    gc.collect()
    assert sum(tree() is not None for tree in alive) <= 64


def test_a_module_for_questions_is_made_anew(monkeypatch):
    monkeypatch.setattr(inferred, "MAX_QUESTIONS", 4)
    inferred._infer.cache_clear()
    inferred._scratch.cache_clear()
    layout = Blocked((1, 1), (1, 64), (4, 1), (1, 0))
    most, found = 0, []
    for rows in (4, 8, 16, 32, 64, 128, 256, 512):
        found.append(inferred.infer(target("gfx950"), 4, "permute", (rows, 64), layout, (1, 0)))
        most = max(most, inferred._scratch("gfx950", 4, 64, 1).questions)
    assert most == 4 and set(found) == {Blocked((1, 1), (64, 1), (1, 4), (0, 1))}
