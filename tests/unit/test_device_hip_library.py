"""The runner beside a real libamdhip64 (Debian's libamdhip64-5), which needs no GPU to be loaded.

`apt-get install libamdhip64-5 libamdhip64-dev` brings library and header; without them the tests are skipped.
"""

import ctypes
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gluonize.judge.device import gpu_driver, runner

HEADER = Path("/usr/include/hip/hip_runtime_api.h")
HIP_CALLS = [name for name in gpu_driver.ARGUMENTS if name != "FuncSetAttribute"]
C_TYPES = {"unsigned int": ctypes.c_uint, "unsigned": ctypes.c_uint, "int": ctypes.c_int, "size_t": ctypes.c_size_t}
# Handles: pointers to something that the header does not show, but for the device, which is a number.
HANDLES = {"hipCtx_t", "hipModule_t", "hipFunction_t", "hipStream_t", "hipEvent_t", "hipDeviceptr_t"}


@pytest.fixture(scope="module")
def library():
    for name in gpu_driver.APIS["hip"][0]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    pytest.skip("there is no libamdhip64 here; on Debian: apt-get install libamdhip64-5")


def test_every_call_is_there(library):
    assert not [name for name in (*HIP_CALLS, "GetErrorString") if not hasattr(library, f"hip{name}")]


@pytest.mark.parametrize("name", HIP_CALLS)
def test_arguments_are_those_of_the_header(name):
    if not HEADER.is_file():
        pytest.skip(f"there is no {HEADER}; on Debian: apt-get install libamdhip64-dev")
    found = re.search(rf"^hipError_t hip{name}\(([^;{{]*)\);", HEADER.read_text(), re.MULTILINE)
    assert found, f"hip{name} is not declared"
    declared = [" ".join(words.split("=")[0].split()) for words in found[1].split(",")]
    expected = [c_type(words) for words in declared if words != "void"]
    assert [ctypes.c_void_p if t is ctypes.c_char_p else t for t in gpu_driver.ARGUMENTS[name]] == expected


def c_type(declared):
    """What ctypes calls the type of `int* name`."""
    kind = declared.replace("const ", "").rpartition(" ")[0]
    if kind.endswith("*") or "*" in declared or kind in HANDLES:
        return ctypes.c_void_p
    return ctypes.c_int if kind == "hipDevice_t" else C_TYPES[kind]


def test_errors_have_the_driver_s_own_words(library):
    driver = object.__new__(gpu_driver.Driver)
    driver.api, driver.prefix, driver.library = "hip", "hip", library
    assert driver.explain(1).startswith("error 1 (") and "unknown" not in driver.explain(1)


def test_without_a_device_one_line_says_so(library, tmp_path):
    if runner.find_driver("hip"):
        pytest.skip("there is an AMD GPU here")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as file:
        file.writestr("manifest.json", '{"format": 1, "codes": []}')
    command = [sys.executable, runner.__file__, str(tmp_path / "b.zip"), "--device", "hip"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "no GPU found (hip): libamdhip64 gives no device\n"
