"""Code objects made by the AMD backend: kernel descriptor and argument metadata against the launch."""

import struct

import pytest

from gluonize.judge.device import code_object
from gluonize.judge.device.refusal import Refused
from gluonize.judge.lower.children.worker import WorkerPool

ARGUMENTS = [{"name": "out", "kind": "tensor", "size": 8}, {"name": "limit", "kind": "scalar", "size": 4}]


@pytest.fixture(scope="module")
def built():
    """target -> the poison kernel for it: two parameters, dynamic LDS."""
    with WorkerPool(1) as pool:
        return {
            t: pool.call("gluonize.judge.device.bundles.jobs:compile_poison", "hsaco", t) for t in ("gfx942", "gfx1100")
        }


@pytest.mark.parametrize("target, lanes", [("gfx942", 64), ("gfx1100", 32)])
def test_launch_that_fits(built, target, lanes):
    made = built[target]
    found = code_object.check(made["code"], "poison_lds", ARGUMENTS, made["block"], made["shared"], target)
    assert found.wavefront_size == lanes and made["block"] == 4 * lanes
    assert found.kernarg_bytes == found.descriptor_kernarg_bytes >= 32
    assert made["shared"] == 65536, "all LDS of a workgroup"


@pytest.mark.parametrize(
    "arguments, block, shared, target, why",
    [
        (ARGUMENTS[:1], 256, 0, "gfx942", "takes 4 arguments, the launch gives 3"),
        ([ARGUMENTS[0], {**ARGUMENTS[1], "size": 8}], 256, 0, "gfx942", "argument limit: 4 bytes at 8"),
        ([{**ARGUMENTS[0], "kind": "scalar"}, ARGUMENTS[1]], 256, 0, "gfx942", "argument out is a global_buffer"),
        (ARGUMENTS, 2048, 0, "gfx942", "a block of 2048 threads"),
        (ARGUMENTS, 256, 65537, "gfx942", "65537 bytes of LDS"),
        (ARGUMENTS, 256, 0, "gfx950", "not gfx950"),
    ],
)
def test_launch_that_does_not_fit(built, arguments, block, shared, target, why):
    with pytest.raises(Refused) as caught:
        code_object.check(built["gfx942"]["code"], "poison_lds", arguments, block, shared, target)
    assert why in caught.value.why


def test_missing_kernel_and_broken_files(built):
    code = built["gfx942"]["code"]
    for broken, why in (
        (b"", "no 64-bit"),
        (b"\x7fELF\x02\x01" + bytes(80), "machine 0"),
        (code.replace(b"AMDGPU\0", b"AMDGPX\0"), "no AMDGPU metadata"),
    ):
        with pytest.raises(Refused) as caught:
            code_object.read(broken, "poison_lds")
        assert why in caught.value.why
    with pytest.raises(Refused) as caught:
        code_object.read(code, "other")
    assert "no kernel other" in caught.value.why
    with pytest.raises(Refused) as caught:
        code_object.read(code.replace(b"poison_lds.kd\0", b"poison_lds.kx\0"), "poison_lds")
    assert "kernel descriptor" in caught.value.why


@pytest.mark.parametrize(
    "data, value",
    [
        (b"\x07", 7),
        (b"\xff", -1),
        (b"\xa3abc", "abc"),
        (b"\xd9\x03abc", "abc"),
        (b"\x92\x01\xc3", [1, True]),
        (b"\x81\xa1k\xcd\x01\x00", {"k": 256}),
        (b"\xde\x00\x01\xa1k\xc0", {"k": None}),
        (b"\xd1\xff\x00", -256),
        (b"\xcb" + struct.pack(">d", 0.5), 0.5),
        (b"\xdc\x00\x02\x01\x02", [1, 2]),
    ],
)
def test_msgpack(data, value):
    assert code_object.unpack(data) == (value, len(data))


def test_msgpack_of_an_unknown_type():
    with pytest.raises(Refused):
        code_object.unpack(b"\xc1")
