"""Configurations that have one text and one structure: one is validated in full, the others with two sets of inputs."""

from concurrent.futures import Future
from pathlib import Path

from gluonize.diagnostics import Diagnostic, TranslationError
from gluonize.judge.verdict.structure import structure_of
from gluonize.product.project.translate.validating import STRUCTURE, Validating
from gluonize.read.spec.launch import LaunchSpec
from gluonize.request import TranslateRequest

REQUEST = TranslateRequest("m.py", "gfx942")


def spec(name, block, kernel="k", **signature):
    return LaunchSpec(name, kernel, "m.py", {"n": "i32", "BLOCK": "constexpr", **signature}, {"BLOCK": block})


class Pool:
    """Answers at once, and keeps what it was asked. structures: of launches; wrong: launches that are not validated; proved: those that are, before
    they run."""

    def __init__(self, structures, wrong=(), proved=()):
        self.structures, self.wrong, self.proved, self.asked = structures, wrong, proved, []

    def submit(self, function, source, draft, spec, *_, what, **more):
        future = Future()
        if function != STRUCTURE:
            self.asked.append((spec.id, more.get("most")))
            status = "not_runnable" if spec.id in self.wrong else "validated"
            future.set_result({"status": status, "notes": [], "coverage": {"proved": spec.id in self.proved}})
        elif (found := self.structures[spec.id]) is None:
            future.set_exception(TranslationError(Diagnostic("compiler-error", "it does not compile")))
        else:
            future.set_result(found)
        return future


def validated(pool, *specs):
    running = Validating(REQUEST, "draft.py", specs, pool, "validate")
    running.go_on()
    return [running.found(each) for each in specs]


def test_the_first_of_each_structure_is_validated_in_full():
    pool = Pool({"a": "one", "b": "one", "c": "two", "d": "two", "e": None})
    found = validated(pool, *(spec(name, 2**i) for i, name in enumerate("abcde", 4)))
    assert pool.asked == [("a", None), ("b", 1), ("c", None), ("d", 1), ("e", None)]
    assert found[3]["notes"] == ["of the same structure as c: two sets of inputs were tried"] and not found[2]["notes"]


def test_launches_that_pass_something_else_are_no_configurations_of_one():
    pool = Pool({})
    validated(pool, spec("a", 64), spec("b", 64, n="i64"), spec("c", 64, kernel="other"))
    assert pool.asked == [("a", None), ("b", None), ("c", None)]


def test_where_the_one_that_stands_for_others_says_nothing_they_are_validated_in_full():
    pool = Pool({"a": "one", "b": "one"}, wrong=("a",))
    found = validated(pool, spec("a", 64), spec("b", 128))
    assert pool.asked == [("a", None), ("b", 1), ("b", None)] and found[1]["notes"] == []


def test_what_is_proved_needs_nobody_and_stands_for_nobody():
    pool = Pool({"a": "one", "b": "one", "c": "one"}, proved=("a", "b"))
    found = validated(pool, *(spec(name, 2**i) for i, name in enumerate("abc", 4)))
    assert pool.asked == [("a", None), ("b", 1), ("c", 1), ("c", None)]
    assert not found[1]["notes"] and not found[2]["notes"]


KERNEL = """import triton
import triton.language as tl


@triton.jit
def k(x_ptr, n, BLOCK: tl.constexpr, TWICE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if TWICE:
        x = x * 2
    tl.store(x_ptr + i, x, mask=i < n)
"""


def test_sizes_are_no_structure_and_other_statements_are(tmp_path):
    path = tmp_path / "m.py"
    Path(path).write_text(KERNEL)

    def structure(block, twice):
        kinds = {"x_ptr": "*fp16", "n": "i32", "BLOCK": "constexpr", "TWICE": "constexpr"}
        launch = LaunchSpec("k", "k", str(path), kinds, {"BLOCK": block, "TWICE": twice}, {"x_ptr": "DS"})
        return structure_of(str(path), str(path), launch, "gfx942")

    assert structure(512, False) == structure(1024, False) != structure(512, True)
