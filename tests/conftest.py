"""Options and marks of the test suite."""

from __future__ import annotations

import os

import pytest

# The warning that Triton prints while this is unset would fill the captured output; 1 is the default of Triton 3.9.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-targets", action="store_true", help="compile fixtures for every target, not for one each")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "compile: compiles kernels to machine code (about a second each)")
