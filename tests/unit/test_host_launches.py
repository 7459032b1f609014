"""Launches that stand in host code: what is known of them, and whether a translation serves them."""

import json
from dataclasses import replace

import pytest
from gluonize.product.cli.edge import run
from gluonize.product.project.launches.judge import WrittenText, findings, host_launches
from gluonize.read.launches.bound.binding import BoundConfig, BoundValue, LaunchBinding
from gluonize.read.launches.bound.completed import asked_launches, bound_launches
from gluonize.read.launches.bound.launches import launch_bindings
from gluonize.read.launches.derivation import derive_kernel
from gluonize.read.spec.launch import LaunchSpec, compiled_as
from gluonize.trace.acceptance import FrontEndJudge

HEAD = "import torch\nimport triton\nimport triton.language as tl\nraise SystemExit\n"
KERNEL = """
@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)
"""


def read(tmp_path, host, kernel=KERNEL, head=HEAD):
    path = tmp_path / "m.py"
    path.write_text(head + kernel + host)
    return launch_bindings(str(path), ["k"])


def known(binding):
    found = {n: v.value if v.kind == "constexpr" else v.kind for n, v in binding.arguments.items()}
    return {name: value for name, value in found.items() if value != ""}


def test_what_callers_pass_is_known(tmp_path):
    host = """
def run(x, block=64):
    y = torch.empty_like(x, dtype=torch.float16)
    k[(1,)](x, y, x.shape[1], BLOCK=block, num_warps=8)

if __name__ == "__main__":
    run(torch.randn(4, 1000, dtype=torch.bfloat16), 128)
"""
    (found,) = read(tmp_path, host)
    assert known(found) == {"x_ptr": "*bf16", "y_ptr": "*fp16", "n": "i32", "BLOCK": 128}
    assert found.options == {"num_warps": 8, "num_stages": 2} and found.caller.startswith("called from line")
    assert found.arguments["n"] == BoundValue("i32", divisible=False, number=1000, text="x.shape[1]")


def test_what_depends_on_sizes_and_branches_that_nobody_knows_is_not_known(tmp_path):
    host = """
def run(x):
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[0])
    warps = 8 if x.is_sparse else 4
    k[(1,)](x, y, 64 if x.shape[0] > 7 else 32, BLOCK=block, num_warps=warps)
"""
    (found,) = read(tmp_path, host)
    assert known(found) == {"x_ptr": "*", "y_ptr": "*", "n": "i32"} and found.options == {"num_stages": 2}
    assert found.arguments["n"].number is None


def test_each_value_that_a_test_is_given_is_a_way(tmp_path):
    host = """
@pytest.mark.parametrize("dtype, block", [(torch.float16, 64), (torch.float32, 256)])
def test_k(dtype, block):
    x = torch.ones(8, dtype=dtype)
    k[(1,)](x, torch.empty_like(x), 8, BLOCK=block)
"""
    found = read(tmp_path, host)
    assert [(b.arguments["x_ptr"].kind, b.arguments["BLOCK"].value) for b in found] == [("*fp16", 64), ("*fp32", 256)]
    assert found[1].caller == "with dtype = torch.float32, block = 256"


def test_several_decorators_of_a_test_give_all_their_combinations(tmp_path):
    host = """
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("n", [64, 100, 8])
@pytest.mark.parametrize("block", {blocks})
def test_k(dtype, n, block):
    x = torch.ones(n, dtype=dtype)
    k[(1,)](x, torch.empty_like(x), n, BLOCK=block)
"""

    def seen(blocks):
        found = read(tmp_path, host.format(blocks=blocks))
        held = [(b.arguments["x_ptr"].kind, b.arguments["n"].number, b.arguments["BLOCK"].value) for b in found]
        return held, [b.left for b in found]

    held, left = seen([64, 128])
    every = {(x, n, block) for x in ("*fp16", "*fp32") for n in (64, 100, 8) for block in (64, 128)}
    assert set(held) == every and len(held) == 12 and not any(left)
    held, left = seen([2**i for i in range(5, 12)])
    # Each value of each is there; the rest of the combinations is counted.
    assert {x for x, *_ in held} == {"*fp16", "*fp32"} and {n for _, n, _ in held} == {64, 100, 8}
    assert {block for *_, block in held} == {2**i for i in range(5, 12)}
    assert left[0] + len(held) == 2 * 3 * 7 and not any(left[1:])
    assert said(binding(left=24)) == "launch at line 42: served; 24 more ways to it not looked at"


def test_an_annotation_is_the_type_whatever_the_number(tmp_path):
    kernel = KERNEL.replace("n, BLOCK", "n: tl.int64, BLOCK")
    (found,) = read(tmp_path, "\nk[(1,)](torch.ones(8), torch.ones(8), 1, BLOCK=64)\n", kernel)
    assert found.arguments["n"].kind == "i64"


def test_what_cannot_be_read_says_what(tmp_path):
    (found,) = read(tmp_path, "\ndef run(*rest):\n    k[(1,)](*rest, BLOCK=64)\n")
    assert found.problem.startswith("what `*rest` passes is not known") and found.problem_line == found.line
    launch = "k[(1,)](torch.ones(8), torch.ones(8), **{'n': 8}, **options)"
    (found,) = read(tmp_path, f"\ndef run(options):\n    {launch}\n")
    assert found.problem == "of `**{'n': 8}`, `**options` not all is known, and it has no value for BLOCK"


@pytest.mark.parametrize("kernel", ["wrap(k)", "{1: k}[1]", "(k if n else other)"])
def test_a_kernel_may_be_named_in_other_ways(tmp_path, kernel):
    (found,) = read(tmp_path, f"\ndef run(x, n):\n    {kernel}[(1,)](x, x, 8, BLOCK=64)\n")
    assert not found.problem and found.arguments["BLOCK"].value == 64


SPEC = LaunchSpec(
    "k", "k", "m.py", {"x_ptr": "*fp16", "y_ptr": "*fp16", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64},
    {"x_ptr": "DS", "y_ptr": "DS", "n": "D"}, {"num_warps": 4},
)  # fmt: skip
TEXT = """
def k(x_ptr, y_ptr, n, BLOCK):
    gl.static_assert(y_ptr.dtype.element_ty == gl.float16, "k is translated for y_ptr fp16")
    gl.static_assert(x_ptr.dtype.element_ty != gl.int1, "k is not translated for bool x_ptr")


def _check_k(x_ptr, y_ptr, n, *_, **__):
    if n % 16:
        raise ValueError(f"k: n is no multiple of 16")


k.add_pre_run_hook(_check_k)
"""


def said(binding, refuse=lambda spec: None, refuse_source=lambda spec: None, served=(SPEC,)):
    """The line for one binding; refuse: why the front end refuses a launch of the text."""
    bound = bound_launches([binding], served)
    asked = asked_launches(bound, served)
    by_text = {compiled_as(s.as_json()): refuse(s) for s in asked}
    by_source = {compiled_as(s.as_json()): refuse_source(s) for s in asked}
    text = WrittenText(TEXT)
    found = findings(bound, by_text, by_source, text)
    (line,) = host_launches([binding], found, "m.py", {"k": text.asserted("k")}, {})
    return str(line)


def binding(configs=(), left=0, **changed):
    arguments = {
        "x_ptr": BoundValue("*fp16"), "y_ptr": BoundValue("*fp16"), "n": BoundValue("i32", divisible=True, number=64),
        "BLOCK": BoundValue("constexpr", 64, is_constexpr=True),
    }  # fmt: skip
    return LaunchBinding("k", "m.py", 42, arguments=arguments | changed, configs=configs, left=left)


def refusal(spec, why="k is translated for y_ptr fp16"):
    from gluonize.diagnostics import Diagnostic

    return Diagnostic("compiler-error", "k does not compile", "m.py", 7, 1, why)


def test_a_contract_that_contradicts_the_launch_is_not_served():
    assert said(binding()) == "launch at line 42: served"
    wrong = binding(y_ptr=BoundValue("*bf16"), BLOCK=BoundValue("constexpr", 128, is_constexpr=True))
    assert said(wrong) == "launch at line 42: served"  # where the text accepts it, it is
    assert said(wrong, refusal) == "launch at line 42: not served: y_ptr is bf16 there"


def test_the_check_before_a_launch_counts_as_an_assertion_does():
    wrong = binding(n=BoundValue("i32", divisible=False, number=100))
    assert said(wrong) == "launch at line 42: not served: n is no multiple of 16"


def test_what_host_code_does_not_show_is_said_where_the_text_asserts_it():
    open_ones = binding(x_ptr=BoundValue("*"), y_ptr=BoundValue("*"), n=BoundValue("i32"))
    # What is only excluded, as `x_ptr.dtype.element_ty != gl.int1`, is no condition.
    assert said(open_ones) == "launch at line 42: served where y_ptr is fp16"


def test_what_triton_refuses_too_is_refused_with_its_line():
    wrong = binding(y_ptr=BoundValue("*bf16"))
    why = lambda spec: refusal(spec, "no such thing")  # noqa: E731
    assert said(wrong, refusal, why) == "launch at line 42: not served: Triton refuses it: no such thing (line 7)"
    unknown = binding(y_ptr=BoundValue("*bf16"), BLOCK=BoundValue("", is_constexpr=True))
    assert said(unknown, refusal, why) == "launch at line 42: cannot be read: BLOCK is not known"


def test_configurations_that_are_not_served_are_named_by_what_they_alone_have():
    configs = tuple(BoundConfig({"BLOCK": b}, {"num_warps": w}) for b in (64, 128, 256) for w in (4, 8))
    refuse = lambda spec: refusal(spec) if spec.constexprs["BLOCK"] == 256 else None  # noqa: E731
    assert said(binding(configs), refuse) == "launch at line 42: served but for BLOCK 256"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GLUONIZE_CACHE_DIR", str(tmp_path / "cache"))
    host = (
        "\ndef run():\n    x = torch.ones(64, dtype=torch.float16)\n    k[(1,)](x, torch.empty_like(x), 64, BLOCK=64)\n"
    )
    (tmp_path / "m.py").write_text(HEAD + KERNEL + host)
    return tmp_path


COMMAND = ("translate", "m.py", "-t", "gfx942", "--no-validate", "--no-parity", "-o", "out.py", "--json", "r.json")


def test_the_exit_status_and_the_last_line_say_what_a_planted_contract_does_not_serve(project, capsys):
    assert run(list(COMMAND)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "launch at line 13: served"
    assert run([*COMMAND, "--force", "--set", "num_warps=8"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "launch at line 13: not served: num_warps is 4 there"
    (found,) = json.loads((project / "r.json").read_text())["results"][0]["host_launches"]
    assert (found["status"], found["line"], found["reason"]) == ("not-served", 13, "num_warps is 4 there")
    assert (project / "out.py").exists()  # right for its own launches


def test_a_launch_that_triton_refuses_is_not_replaced_by_a_guess_in_silence(project, capsys):
    text = (project / "m.py").read_text().replace("* 2", "* (GONE if BLOCK == 64 else 2)")
    (project / "m.py").write_text(text)
    assert run([*COMMAND, "--set", "BLOCK=128"]) == 2
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("launch at line 13: not served: Triton refuses it: ") and last.endswith("(line 9)"), last


def test_what_autograd_keeps_has_the_sizes_that_are_supposed(tmp_path):
    host = """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        k[(1,)](x, dy, x.stride(0), BLOCK=64)
"""
    (found,) = read(tmp_path, host)
    assert found.arguments["x_ptr"].kind == "*" and found.arguments["n"].number is None


MANY = """
def run(x, out):
    k[(1,)](x, torch.empty_like(x, dtype=out), x.numel(), BLOCK=64)

def test_k():
    x = torch.ones(1000, dtype=torch.bfloat16)
    run(x, torch.float16)
    run(x, torch.float32)
    run(torch.ones(1024, dtype=torch.bfloat16), torch.float32)
    run(torch.ones(1040, dtype=torch.bfloat16), torch.float32)
"""


def derived(tmp_path, host, kernel=KERNEL, settings=None):
    path = tmp_path / "m.py"
    path.write_text(HEAD + kernel + host)
    return derive_kernel(str(path), "k", lambda loaded: FrontEndJudge(loaded, "gfx942"), settings=settings or {})


def test_each_launch_of_host_code_is_translated_for_once_as_triton_specializes(tmp_path):
    found = derived(tmp_path, MANY)
    kinds = [(s.signature["x_ptr"], s.signature["y_ptr"], s.attrs.get("n", "")) for s in found.launches]
    assert sorted(kinds) == [("*bf16", "*fp16", ""), ("*bf16", "*fp32", ""), ("*bf16", "*fp32", "D")]
    assert [spec.values["n"] for spec in found.launches if spec.attrs.get("n")] == [1024]
    assert len(found.bindings) == 4


def test_what_is_set_beats_the_launches_of_host_code(tmp_path):
    found = derived(tmp_path, MANY, settings={"y_ptr": "bf16"})
    assert {spec.signature["y_ptr"] for spec in found.launches} == {"*bf16"}


def test_heuristics_answer_for_the_numbers_of_each_launch(tmp_path):
    kernel = KERNEL.replace(
        "@triton.jit", '@triton.heuristics({"EVEN": lambda a: a["n"] % a["BLOCK"] == 0})\n@triton.jit'
    )
    kernel = kernel.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, EVEN: tl.constexpr")
    found = derived(tmp_path, MANY, kernel)
    assert {(s.values["n"], s.constexprs["EVEN"]) for s in found.launches} == {
        (1000, False),
        (1024, True),
        (1040, False),
    }


def test_more_launches_of_host_code_than_are_translated_for_are_said(tmp_path):
    calls = "".join(f"    k[(1,)](x, x, 8, BLOCK={2**i})\n" for i in range(12))
    found = derived(tmp_path, f"\ndef run(x):\n{calls}")
    assert len(found.launches) == 9
    assert "3 more launches in host code were not translated for; they may be served all the same" in found.notes


def test_each_item_of_a_loop_around_a_call_is_a_way(tmp_path):
    host = """
def run(x):
    k[(1,)](x, torch.empty_like(x), x.numel(), BLOCK=64)

if __name__ == "__main__":
    for dtype in [torch.float16, torch.bfloat16]:
        for n in (1000, 1024):
            run(torch.ones(n, dtype=dtype))
"""
    found = read(tmp_path, host)
    held = {(b.arguments["x_ptr"].kind, b.arguments["n"].number) for b in found}
    assert held == {("*fp16", 1000), ("*fp16", 1024), ("*bf16", 1000)}
    assert found[0].caller.endswith("with dtype = torch.float16, n = 1000")


def test_tests_that_stand_beside_a_file_launch_its_kernels(tmp_path):
    (tmp_path / "tests").mkdir()
    for name in ("m", "other"):
        call = f"from {name} import run\ndef test_run():\n    run(torch.ones(8, dtype=torch.float16))\n"
        (tmp_path / "tests" / f"test_{name}.py").write_text(f"import torch\n{call}")
    found = read(tmp_path, "\ndef run(x):\n    k[(1,)](x, x, 8, BLOCK=64)\n")
    assert [(b.arguments["x_ptr"].kind, b.caller) for b in found] == [("*fp16", "called from test_m.py:4")]


def test_a_type_looked_up_in_a_dict_is_known_where_that_of_the_tensor_is(tmp_path):
    kernel = KERNEL.replace("BLOCK:", "OUT: tl.constexpr, BLOCK:")
    host = """
def run(x):
    y = torch.empty_like(x)
    k[(1,)](x, y, 8, TYPES[y.dtype], BLOCK=64)

def test_run():
    run(torch.ones(8, dtype=torch.bfloat16))
"""
    types = "TYPES = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}\n"
    (found,) = read(tmp_path, host, kernel, HEAD.replace("raise", types + "raise"))
    assert found.arguments["OUT"].value == {"$dtype": "bf16"}
    (direct,) = read(tmp_path, host.replace("TYPES[y.dtype]", "y.dtype"), kernel)
    assert direct.arguments["OUT"].value == {"$torch": "bfloat16"}


AUTOGRAD = """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        flat = x.reshape(-1, x.shape[-1])
        ctx.save_for_backward(flat)
        return torch.empty_like(x, dtype=torch.float32)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        k[(1,)](x, dy, x.stride(0), BLOCK=64)

f = F.apply
f(torch.ones(2, 3, 40, dtype=torch.float16))
"""


def test_autograd_tells_the_backward_what_the_forward_had_and_returned(tmp_path):
    (found,) = read(tmp_path, AUTOGRAD)
    assert known(found) == {"x_ptr": "*fp16", "y_ptr": "*fp32", "n": "i32", "BLOCK": 64}
    assert found.arguments["n"].number == 40
    assert found.values["x_ptr"]["tensor"]["shape"] == [6, 40]


def test_calls_that_disagree_tell_the_backward_no_type(tmp_path):
    (found,) = read(tmp_path, AUTOGRAD + "f(torch.ones(2, 3, 40, dtype=torch.bfloat16))\n")
    assert found.arguments["x_ptr"].kind == "*" and found.arguments["y_ptr"].kind == "*fp32"


def test_a_descriptor_is_bound_with_its_tile(tmp_path):
    kernel = """
@triton.jit
def k(d, BLOCK: tl.constexpr):
    d.store([0, 0], d.load([0, 0]) * 2)
"""
    host = """
def run(x, block):
    k[(1,)](TensorDescriptor(x, x.shape, x.stride(), [16, block]), BLOCK=block)

def test_run():
    run(torch.ones(32, 64, dtype=torch.bfloat16), 64)
"""
    head = HEAD.replace("raise", "from triton.tools.tensor_descriptor import TensorDescriptor\nraise")
    (found,) = read(tmp_path, host, kernel, head)
    assert known(found) == {"d": "tensordesc<bf16[16, 64]>", "BLOCK": 64}
    served = LaunchSpec("k", "k", "m.py", {"d": "tensordesc<fp16[16, 64]>", "BLOCK": "constexpr"}, {"BLOCK": 64})
    (way,) = bound_launches([found], [served])
    assert way.spec.signature["d"] == "tensordesc<bf16[16, 64]>"
    assert way.differs == (("d", "d is tensordesc<bf16[16, 64]> there"),)


def test_a_guess_is_not_needed_beside_a_launch_that_goes_the_same_way(tmp_path):
    kernel = KERNEL.replace("BLOCK:", "FLAG: tl.constexpr, BLOCK:").replace(
        "tl.store", "n = n - 1 if FLAG else n\n    tl.store"
    )
    one = "\ndef run(x, flag=False):\n    k[(1,)](x, torch.empty_like(x), 64, flag, BLOCK=64)\n"
    call = "    run(torch.ones(64, dtype=torch.{}), {})\n"
    flags = lambda found: [(s.signature["x_ptr"], s.constexprs["FLAG"]) for s in found.launches]  # noqa: E731
    first = f"{one}\ndef test_k():\n{call.format('float32', False)}"
    assert flags(derived(tmp_path, first, kernel)) == [("*fp32", False), ("*fp32", True)]
    both = derived(tmp_path, first + call.format("float16", True), kernel)
    assert flags(both) == [("*fp32", False), ("*fp16", True)] and not both.others


def test_the_first_launch_is_one_of_host_code_not_one_of_parts_of_several(tmp_path):
    host = """
def run(x, out=None):
    k[(1,)](x, torch.empty_like(x, dtype=out or x.dtype), x.numel(), BLOCK=64)

def test_run():
    run(torch.ones(1000, dtype=torch.float16))
    run(torch.ones(1024, dtype=torch.bfloat16), torch.float32)
"""
    found = derived(tmp_path, host)
    kinds = [(s.signature["x_ptr"], s.signature["y_ptr"], s.values["n"]) for s in found.launches]
    assert kinds == [("*fp16", "*fp16", 1000), ("*bf16", "*fp32", 1024)]
    assert found.rows[1].value == "*fp16" and "called from" in found.rows[1].why


def test_the_addresses_of_the_kernel_tell_the_rank_where_no_caller_does(tmp_path):
    kernel = KERNEL.replace("tl.load(x_ptr + i", "tl.load(x_ptr + tl.program_id(1) * n + i")
    (found,) = read(tmp_path, "\ndef run(x):\n    k[(1,)](x, x, x.stride(1), BLOCK=64)\n", kernel)
    assert found.arguments["n"].kind != "constexpr"


MADE = "    y = torch.empty_like(x, dtype=torch.float16)\n"
FORMS = {
    "of a loop": f"def run(x):\n{MADE}    for kernel in (k,):\n        kernel[(1,)](x, y, 64, BLOCK=128)\n",
    "handed on": "def launch(kernel, grid, *args, **options):\n    kernel[grid](*args, **options)\n"
    f"def run(x):\n{MADE}    launch(k, (1,), x, y, 64, BLOCK=128)\n",
    "returned": f"def pick():\n    return {{2: k}}\ndef run(x):\n{MADE}    pick().get(2)[(1,)](x, y, 64, BLOCK=128)\n",
    "attribute": "class Layer:\n    def __init__(self):\n        self.kernel = k\n"
    f"    def forward(self, x):\n{''.join('    ' + MADE)}        self.kernel[(1,)](x, y, 64, BLOCK=128)\n",
    "default": "import sys\n"
    f"def run(x, name='k'):\n{MADE}    getattr(sys.modules[__name__], name)[(1,)](x, y, 64, BLOCK=128)\n",
    "by its text": f"def run(x):\n{MADE}    globals()['k'][(1,)](x, y, 64, BLOCK=128)\n",
    "partial of run": "import functools\n"
    f"def run(x):\n{MADE}    f = functools.partial(k.run, grid=(1,), warmup=False)\n    f(x, y, 64, BLOCK=128)\n",
    "spread": f"META = dict(BLOCK=128)\ndef run(x):\n{MADE}    args = (x, y, 64)\n    extra = {{**META, 'num_warps': 4}}\n    k[(1,)](*args, **extra)\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_launch(tmp_path, form):
    (found,) = read(tmp_path, FORMS[form])
    assert not found.problem
    assert known(found) == {"x_ptr": "*", "y_ptr": "*fp16", "n": "i32", "BLOCK": 128}


def test_an_option_that_host_code_does_not_show_is_said_where_the_text_asserts_it(tmp_path):
    host = (
        "def run(x, config):\n    y = torch.empty_like(x)\n    k[(1,)](x, y, 64, BLOCK=128, num_warps=config.warps)\n"
    )
    (found,) = read(tmp_path, host)
    assert found.open_options == ("num_warps",)
    assert "num_warps is 4" in said(replace(binding(), open_options=("num_warps",)))


def test_a_heuristic_may_give_an_option_of_the_launch(tmp_path):
    kernel = KERNEL.replace(
        "@triton.jit", '@triton.heuristics({"num_warps": lambda a: 8 if a["BLOCK"] > 512 else 4})\n@triton.jit'
    )
    found = derived(
        tmp_path, "def run(x):\n    y = torch.empty_like(x)\n    k[(1,)](x, y, x.numel(), BLOCK=1024)\n", kernel
    )
    assert [spec.options["num_warps"] for spec in found.launches] == [8]


def test_the_side_of_a_dot_is_guessed_so_that_it_fits(tmp_path):
    kernel = """
@triton.jit
def k(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))
"""
    found = derived(tmp_path, "", kernel)
    assert [spec.constexprs["N"] for spec in found.launches] == [64]


def test_a_type_that_the_front_end_asks_for_is_that_of_what_is_made_like_it_too(tmp_path):
    kernel = KERNEL.replace("tl.load(x_ptr + i, mask=i < n) * 2", "tl.erf(tl.load(x_ptr + i, mask=i < n))")
    found = derived(
        tmp_path, "def run(x):\n    y = torch.empty_like(x)\n    k[(1,)](x, y, x.numel(), BLOCK=64)\n", kernel
    )
    assert [(s.signature["x_ptr"], s.signature["y_ptr"]) for s in found.launches] == [("*fp32", "*fp32")]


def test_what_assembly_takes_in_a_register_of_fp32_is_fp32(tmp_path):
    kernel = KERNEL.replace(
        "tl.load(x_ptr + i, mask=i < n) * 2",
        'tl.inline_asm_elementwise("ex2.approx.f32 $0, $1;", "=f, f", [tl.load(x_ptr + i, mask=i < n)], tl.float32, True, 1)',
    )
    found = derived(tmp_path, "", kernel)
    assert [s.signature["x_ptr"] for s in found.launches] == ["*fp32"]


def test_what_neither_the_kernel_nor_triton_takes_is_named(tmp_path):
    host = (
        "def run(x):\n    y = torch.empty_like(x)\n    k[(1,)](x, y, 64, BLOCK=128, SIZE=3, num_warps=8, maxnreg=128)\n"
    )
    (found,) = read(tmp_path, host)
    assert found.problem == "SIZE is no argument of the kernel, and no option of Triton's"
