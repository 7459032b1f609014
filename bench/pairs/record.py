"""Calls operations of an inference engine that has each one in Triton and by hand in Gluon: to be run under `gluonize capture`.

    gluonize capture --run none --from gfx950 bench/pairs/record.py -- gfx950 FOLDER

FOLDER: where tokenspeed-kernel and tokenspeed-kernel-amd are unpacked (`pip download --no-deps`), with `triton` in place of `tokenspeed_triton`,
a build of their own, in what they import. torch has to be there; one without a GPU will do.

Both sides of a pair get the same arguments; what one side refuses is said, and the next pair follows.
"""

from __future__ import annotations

import importlib
import sys
import traceback

arch, folder = sys.argv[1:3]
sys.path.insert(0, folder)

import torch  # noqa: E402
from tokenspeed_kernel.platform import ArchVersion, Platform, PlatformInfo  # noqa: E402

UNITS, LDS, VERSION = {"gfx950": (256, 160, (9, 5)), "gfx1250": (256, 320, (12, 5))}[arch]
Platform.override(PlatformInfo("amd", ArchVersion(*VERSION), arch, 1, 288 << 30, 8000.0, UNITS, 2048, LDS * 1024))
BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn


def made(*shape: int, dtype=BF16) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.float32).to(dtype).to("cuda")


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device="cuda")


def cached(heads: int, keys: int, head: int, dtype, length: int, page: int = 64, batch: int = 4) -> dict:
    """Of a decode: one query for each of `batch` sequences, and pages of a cache."""
    pages = length // page
    table = torch.arange(batch * pages, dtype=torch.int32).reshape(batch, pages).to("cuda")
    k, v = (made(batch * pages, page, keys, head, dtype=dtype) for _ in range(2))
    return dict(k_cache=k, v_cache=v, page_table=table, cache_seqlens=ints(*[length] * batch), max_seqlen_k=length)


def prefill(heads: int, keys: int, head: int, dtype=BF16, length: int = 2048, **more) -> dict:
    bounds = ints(0, length, 2 * length)
    q, k, v = (made(2 * length, n, head, dtype=dtype) for n in (heads, keys, keys))
    return dict(q=q, k=k, v=v, cu_seqlens=bounds, cu_seqlens_cpu=[0, length, 2 * length], max_seqlen=length, **more)


def decode(heads: int, keys: int, head: int, dtype=BF16, length: int = 4096, **more) -> dict:
    return dict(
        q=made(4, heads, head, dtype=more.pop("of_query", dtype)), **cached(heads, keys, head, dtype, length), **more
    )


def extend(heads: int, keys: int, head: int, dtype=BF16, new: int = 512, length: int = 4096, **more) -> dict:
    q = made(4 * new, heads, head, dtype=dtype)
    bounds = dict(cu_seqlens_q=ints(*range(0, 5 * new, new)), cu_seqlens_kv=ints(*range(0, 5 * length, length)))
    return dict(q=q, max_seqlen_q=new, is_causal=True, **bounds, **cached(heads, keys, head, dtype, length), **more)


MHA = "tokenspeed_kernel.ops.attention.mha"
SHAPES = [(32, 8, 128), (64, 8, 64), (16, 16, 128), (8, 1, 128), (64, 8, 128)]
PAIRS = [
    *((f"mha prefill {h}/{k} D{d}", MHA, "triton_mha_prefill", f"gluon_mha_prefill_{arch}", prefill(h, k, d)) for h, k, d in SHAPES),
    *((f"mha prefill {h}/{k} D{d} window", MHA, "triton_mha_prefill", f"gluon_mha_prefill_{arch}", prefill(h, k, d, window_left=127)) for h, k, d in SHAPES[:2]),
    *((f"mha decode {h}/{k} D{d}", MHA, "triton_mha_decode_with_kvcache", f"gluon_mha_decode_{arch}", decode(h, k, d)) for h, k, d in SHAPES),
    *((f"mha decode {h}/{k} D{d} window", MHA, "triton_mha_decode_with_kvcache", f"gluon_mha_decode_{arch}", decode(h, k, d, window_left=127)) for h, k, d in SHAPES[:2]),
    *((f"mha decode {h}/{k} D{d} fp8 cache", MHA, "triton_mha_decode_with_kvcache", f"gluon_mha_decode_{arch}", decode(h, k, d, FP8, of_query=BF16)) for h, k, d in SHAPES[:2]),
    *((f"mha extend {h}/{k} D{d}", MHA, "triton_mha_extend_with_kvcache", f"gluon_mha_extend_{arch}", extend(h, k, d)) for h, k, d in SHAPES),
    *((f"mha extend {h}/{k} D{d} window", MHA, "triton_mha_extend_with_kvcache", f"gluon_mha_extend_{arch}", extend(h, k, d, window_left=127)) for h, k, d in SHAPES[:2]),
]  # fmt: skip


def main() -> None:
    for name, package, triton_name, gluon_name, arguments in PAIRS:
        for module, function in (("triton", triton_name), ("gluon", gluon_name)):
            print(f"PAIR {name} | {module}", flush=True)
            try:
                getattr(importlib.import_module(f"{package}.{module}"), function)(**arguments)
            except Exception:  # noqa: BLE001 what the host code of a package refuses is no business of the next pair
                print("REFUSED", traceback.format_exc().strip().splitlines()[-1], flush=True)


main()
