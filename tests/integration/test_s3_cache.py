"""A cache in a bucket of an S3 server on this machine, from the command line and from workers of a cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from test_shared_cache import gluonize, without_seconds

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "vector_add" / "kernel.py"


def translate(folder: Path, machine: Path, address: str, *options: str) -> tuple[bytes, list, str]:
    """The output, the results without their seconds, and the log, on a machine that has kept nothing itself."""
    folder.mkdir(exist_ok=True)
    shutil.copy(FIXTURE, folder)
    options = ("--force", "--json", "r.json", "--cache", address, *options)
    done = gluonize(folder, machine, "-v", "translate", "kernel.py", "-t", "gfx950", *options)
    assert done.returncode == 0, done.stderr
    results = json.loads((folder / "r.json").read_text().replace(str(folder), ""))["results"]
    return (folder / "kernel_gfx950.py").read_bytes(), without_seconds(results), done.stderr


@pytest.mark.slow
@pytest.mark.compile
def test_machines_share_a_bucket(tmp_path, bucket):
    import boto3

    address, s3 = f"{bucket}/nightly", boto3.client("s3")
    first = translate(tmp_path / "one", tmp_path / "machine1", address)
    listed = s3.list_objects_v2(Bucket="kernels", Prefix="nightly/")["Contents"]
    kinds = {entry["Key"].split("/")[1] for entry in listed}
    assert kinds == {"results", "compiled"} and list((tmp_path / "machine1").rglob("*.hsaco"))
    second = translate(tmp_path / "two", tmp_path / "machine2", address)
    assert second[:2] == first[:2] and "found in the cache" in second[2]
    assert not list((tmp_path / "machine2").rglob("*.hsaco"))
    for entry in listed:
        s3.put_object(Bucket="kernels", Key=entry["Key"], Body=b"something else")
    third = translate(tmp_path / "two", tmp_path / "machine3", address)
    assert third[:2] == first[:2] and "damaged: it is made anew" in third[2]
    assert len(s3.list_objects_v2(Bucket="kernels", Prefix="nightly/")["Contents"]) == len(listed)


@pytest.mark.slow
@pytest.mark.compile
def test_workers_of_a_cluster_share_a_bucket(tmp_path, bucket):
    pytest.importorskip("distributed")
    import boto3

    translate(tmp_path / "one", tmp_path / "machine1", f"{bucket}/far", "--cluster", "local:1")
    keys = [x["Key"] for x in boto3.client("s3").list_objects_v2(Bucket="kernels", Prefix="far/")["Contents"]]
    assert any(key.startswith("far/compiled/") for key in keys), "a worker writes what it compiles"


@pytest.mark.slow
@pytest.mark.compile
def test_a_bucket_that_is_not_there_costs_a_warning(tmp_path, bucket):
    assert "cannot be written" in translate(tmp_path / "one", tmp_path / "machine1", "s3://no-such-bucket/x")[2]
