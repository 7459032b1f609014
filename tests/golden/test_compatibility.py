"""What is asked of every release of Triton that gluonize serves, beside some goldens: `make test-versions`. At most four minutes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gluonize.versions import TRIED, release_of, triton_version

pytestmark = pytest.mark.versions


@pytest.mark.slow
def test_the_doctor_finds_nothing():
    command = [sys.executable, "-m", "gluonize.product.cli", "doctor", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    results = json.loads(done.stdout)["results"]
    assert [check for check in results if not check["works"]] == [] and len(results) > 10 and done.returncode == 0


def test_this_release_is_one_that_is_served():
    assert release_of(triton_version()) in TRIED
