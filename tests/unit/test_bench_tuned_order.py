"""The bench that compares published fastest configurations with estimates."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

from bench.tuned_order import TABLES, in_words, launches_of, orders, problems_of, value_of

KERNEL = {
    "name": "product",
    "source": "product.py",
    "kernel": "product",
    "target": "gfx942",
    "columns": ["BLOCK", "num_warps"],
    "signature": {"x": "*fp16", "M": "i32", "N": "i32"},
    "constexprs": {"BLOCK": "BLOCK"},
    "attrs": {"x": "DS"},
    "values": {"M": "M", "N": "n"},
    "grid": "cdiv(M, BLOCK) * cdiv(n, BLOCK)",
    "bytes": "2 * M * N",
    "launches": [{"n": "N"}, {"n": "2 * N"}],
    "tables": [{"given": {"N": 64}, "configurations": [[16, 4], [64, 8]], "fastest": {"16": 0, "4096": 1}}],
}


def estimates(source, specs, target, path):
    """Small tiles are slow in proportion to the grid, large ones take a while however few there are."""
    return [SimpleNamespace(microseconds=max(s.grid[0], 4.0 * (s.constexprs["BLOCK"] - 16))) for s in specs]


class Pool:
    """Answers at once. jobs: what it was asked for."""

    def __init__(self):
        self.jobs: list = []

    def submit(self, job: str, source, specs, target, path) -> Future:
        self.jobs.append(specs)
        future: Future = Future()
        future.set_result(estimates(source, specs, target, path))
        return future


def test_expressions_are_of_problems_and_configurations():
    assert value_of("cdiv(M, BLOCK) * 2", {"M": 65, "BLOCK": 64}) == 4
    assert value_of(3, {}) == 3 and value_of(None, {}) is None


def test_a_problem_is_launched_with_each_configuration():
    (small, fastest, configs), _ = problems_of(KERNEL, KERNEL["tables"][0])
    assert (small, fastest) == ({"M": 16, "N": 64}, 0)
    first, second = launches_of(KERNEL, small | configs[0], Path("packages"))
    assert (first.grid, second.grid) == ((4,), (8,)) and second.values == {"M": 16, "N": 128}
    assert first.source == "packages/product.py" and first.options == {"num_warps": 4}


def test_each_configuration_is_compiled_once_and_pairs_are_counted():
    pool = Pool()
    (found,) = orders(pool, KERNEL, Path("packages"))
    assert [len(specs) for specs in pool.jobs] == [4, 4]
    assert (found.problems, found.ordered, found.misordered, found.alike, found.excess) == (2, 2, 0, 0, 0.0)
    swapped = KERNEL | {"tables": [KERNEL["tables"][0] | {"fastest": {"16": 1, "4096": 0}}]}
    (wrong,) = orders(pool, swapped, Path("packages"))
    assert (wrong.ordered, wrong.misordered) == (0, 2) and wrong.excess > 1
    assert "2 of 2 pairs ordered" in in_words([found])


def test_the_tables_name_configurations_that_they_have():
    for kernel in json.loads(TABLES.read_text())["kernels"]:
        assert kernel["from"]
        for table in kernel["tables"]:
            assert set(table["fastest"].values()) == set(range(len(table["configurations"])))
            assert all(len(row) == len(kernel["columns"]) for row in table["configurations"])
