"""What the type of a descriptor says, however it is written."""

import pytest

from gluonize.read.spec.descriptors import DescriptorType, descriptor_type


@pytest.mark.parametrize(
    "kind, found",
    [
        ("tensordesc<bf16[128, 64]>", DescriptorType("bf16", (128, 64))),
        ("tensordesc<fp8e5[ 32 ,128]>", DescriptorType("fp8e5", (32, 128))),
        ("tensordesc<fp16[64],SwizzledSharedLayout(...)>", DescriptorType("fp16", (64,))),
        ("tensordesc_im2col<fp16[64, 8],input_rank=4,more>", DescriptorType("fp16", (64, 8), 4)),
        ("tensordesc_im2col<fp16[64, 8]>", DescriptorType("fp16", (64, 8), 2)),
    ],
)
def test_a_descriptor(kind: str, found: DescriptorType):
    assert descriptor_type(kind) == found


@pytest.mark.parametrize(
    "kind", ["*fp16", "i32", "constexpr", "tensordesc<fp16>", "tensordesc<fp16[]>", ["*fp16"], None]
)
def test_no_descriptor(kind):
    assert descriptor_type(kind) is None


def test_the_plain_type():
    assert descriptor_type("tensordesc_im2col<fp16[64, 8],input_rank=4>").text == "tensordesc<fp16[64, 8]>"
