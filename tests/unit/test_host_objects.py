"""Objects of host code: tensors and sizes that they hold."""

import pytest
from gluonize.read.launches.derivation import derive_kernel
from gluonize.trace.acceptance import FrontEndJudge
from test_host_launches import KERNEL, known, read

HEAD = """
import dataclasses
from dataclasses import dataclass, field
import torch
import triton
import triton.language as tl
raise SystemExit
"""
DATACLASS = """
@dataclass
class Args:
    x: torch.Tensor
    y: torch.Tensor
    n: int
    block: int = 512
    extra: list = field(default_factory=list)

def run(args: Args):
    k[(1,)](args.x, args.y, args.n, BLOCK=args.block)

def main():
    x = torch.randn(40, 7, dtype=torch.float16)
    run(Args(x, torch.empty_like(x, dtype=torch.float32), x.shape[1]))
"""
PLAIN = """
class Base:
    BLOCK = 512

    def __init__(self, n):
        self.n = n

class Buffers(Base):
    def __init__(self, n):
        super().__init__(n)
        self.x = torch.empty(self.n, dtype=torch.float16)
        self.y = self.x.float()

    @property
    def block(self):
        return self.BLOCK

class Runner:
    def __init__(self, n):
        self.buffers = Buffers(n)

    def run(self):
        self.launch(self.buffers)

    def launch(self, of):
        k[(1,)](of.x, of.y, of.n, BLOCK=of.block)

def main():
    Runner(7).run()
"""
MODULE = """
class Scale(torch.nn.Module):
    def __init__(self, n: int = 7):
        self.n, self.block = n, 512
        self.weight = torch.nn.Parameter(torch.ones(n, dtype=torch.float16))
        self.register_buffer("out", torch.zeros(n))

    def forward(self, x):
        k[(1,)](self.weight, self.out, self.n, BLOCK=self.block)
"""
PASSED = """
class Pair:
    def __init__(self, x, y):
        self.x, self.y = x, y

def run(of, n):
    k[(1,)](of.x, of.y, n, BLOCK=512)

def main():
    x = torch.empty(7, dtype=torch.float16)
    run(Pair(x, torch.empty(7)), 7)
"""
CONTEXT = """
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.half()
        y = torch.empty(7)
        ctx.save_for_backward(x, y)
        ctx.block, ctx.n = 512, 7
        return y

    @staticmethod
    def backward(ctx, dy):
        x, y = ctx.saved_tensors
        k[(1,)](x, y, ctx.n, BLOCK=ctx.block)
"""


@pytest.mark.parametrize("host", [DATACLASS, PLAIN, MODULE, PASSED, CONTEXT])
def test_what_objects_hold_is_known(tmp_path, host):
    path = tmp_path / "m.py"
    path.write_text(HEAD + KERNEL + host)
    for launch in derive_kernel(str(path), "k", lambda loaded: FrontEndJudge(loaded, "gfx950")).launches:
        assert launch.signature | launch.constexprs == {"x_ptr": "*fp16", "y_ptr": "*fp32", "n": "i32", "BLOCK": 512}
    (found,) = read(tmp_path, host, head=HEAD)
    assert known(found) == {"x_ptr": "*fp16", "y_ptr": "*fp32", "n": "i32", "BLOCK": 512}
    assert found.arguments["n"].number == 7


def test_what_an_object_holds_of_sizes_that_nobody_knows_is_not_known(tmp_path):
    host = """
class Held:
    def __init__(self, x):
        self.x = x
        self.block = triton.next_power_of_2(x.shape[0])

    def run(self):
        k[(1,)](self.x, self.x, self.x.shape[0], BLOCK=self.block)
"""
    (found,) = read(tmp_path, host, head=HEAD)
    assert "BLOCK" not in known(found) and found.arguments["n"].number is None
