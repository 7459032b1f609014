"""Builds the driver library that stands in for HIP or CUDA; see device_fake_driver.c."""

import subprocess
from pathlib import Path


def build_fake_driver(api: str, folder: Path) -> str:
    """Path of the library."""
    path = str(folder / f"lib{api}.so")
    define = ["-DAPI_CUDA"] if api == "cuda" else []
    code = Path(__file__).with_name("device_fake_driver.c")
    subprocess.run(["gcc", "-shared", "-fPIC", *define, "-o", path, str(code)], check=True)
    return path
