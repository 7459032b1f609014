"""Host descriptors of sources that run on the CUDA device as they are: what the driver encodes, and what a bundle has of them."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest

from device_fake_driver import build_fake_driver

from gluonize.judge.device.bundles.build import BundleRequest, build_bundle
from gluonize.judge.device.gpu_driver import Driver
from gluonize.judge.device.refusal import Refused
from gluonize.judge.device.tensor_maps import with_maps
from gluonize.judge.lower.children.worker import WorkerPool
from gluonize.read.spec.launch import read_launches
from gluonize.request import TranslateRequest

POINTER = {"name": "n", "kind": "scalar", "bytes": "00", "size": 4}
DESCRIPTOR = {
    "name": "a", "kind": "tensor", "tensor": "a", "offset": 0, "size": 8, "descriptor": True, "shape": [300, 448],
    "strides": [448, 1], "padding": 0.0,
}  # fmt: skip
LAYOUT = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [64, 32], "fp4_padded": False}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLUONIZE_LIBCUDA", build_fake_driver("cuda", tmp_path_factory.mktemp("driver")))
        yield Driver("cuda")


def test_a_descriptor_gets_what_its_layout_and_its_tensor_say():
    plain, found = with_maps([POINTER, DESCRIPTOR], [LAYOUT])
    assert plain == POINTER and found["size"] == 128
    assert found["map"] == {
        "block": [64, 32], "swizzle": 3, "element_bytes": 2, "type": 6, "shape": [300, 448], "strides": [448, 1], "nan": False,
    }  # fmt: skip


def test_types_that_host_and_kernel_count_otherwise_and_packed_elements():
    (found,) = with_maps([DESCRIPTOR | {"padding": float("nan")}], [LAYOUT | {"elem_type": 9, "fp4_padded": True}])
    assert (found["map"]["type"], found["map"]["shape"], found["map"]["nan"]) == (8, [300, 896], True)


@pytest.mark.parametrize("described", [None, LAYOUT | {"is_im2col": True}])
def test_descriptors_of_images_are_refused(described):
    with pytest.raises(Refused, match="tensor descriptor argument"):
        with_maps([DESCRIPTOR], [described])


@pytest.mark.parametrize("rows, may_prefetch", [(100, False), (300, True)])
def test_the_driver_is_given_the_innermost_dimension_first(driver, rows, may_prefetch):
    """Of a tensor below 128 KiB the prefetch beyond its end is turned off, for drivers that do so wrongly."""
    described = with_maps([DESCRIPTOR | {"shape": [rows, 448]}], [LAYOUT])[0]["map"]
    words = struct.unpack("<16Q", driver.tensor_map(4096, described))
    assert words[0] == 6 * 256 + 2 and words[2:4] == (4096, 3 * 256)
    assert words[4:6] == (448, rows) and words[8] == 2 * 448 and words[12:14] == (32, 64)
    assert words[1] == ((1 << 64) - 1 if may_prefetch else (1 << 64) - 1 - (1 << 21))


@pytest.mark.slow
def test_a_bundle_has_the_source_as_it_is(tmp_path):
    folder = Path(__file__).parents[2] / "fixtures" / "hopper"
    source = str(folder / "source.py")
    (spec,) = [s for s in read_launches(str(folder / "launches.json")) if s.id == "hopper/transpose"]
    with WorkerPool(1, timeout=120) as pool:
        request = TranslateRequest(source=source, target="gfx950", launches=(spec,))
        result = pool.call("gluonize.translation:translate_kernel", request, what="translating")
        output = tmp_path / "out.py"
        output.write_text(result.text)
        built = build_bundle(pool, BundleRequest(source, str(output), spec, "gfx950", "cuda"))
    assert built.codes == ("cuda", "cuda-consan", "cuda-native", "cuda-native-consan") and not built.notes
    manifest = json.loads(zipfile.ZipFile(io.BytesIO(built.content)).read("manifest.json"))
    (native,) = [code for code in manifest["codes"] if code["name"] == "cuda-native"]
    maps = [argument["map"] for argument in native["arguments"] if "map" in argument]
    assert [(m["shape"], m["block"]) for m in maps] == [([200, 168], [64, 32]), ([168, 200], [32, 32])]
    assert manifest["source_ran_as"] == "the source itself, Gluon for cuda:90"
    assert not any("map" in argument for argument in manifest["arguments"])
