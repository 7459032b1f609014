"""The summary of a run on a device: what was found of the planted bugs, and by what."""

from bench.device_fixtures import summary


def code(planted="", sanitizer="", matched=3, messages=(), **more):
    return {
        "planted": planted,
        "sanitizer": sanitizer,
        "runs": 3,
        "matched": matched,
        "messages": list(messages),
        **more,
    }


def result(*codes, numbers="match in 3 of 3 runs", hazards="none found"):
    return {
        "id": "matmul/fp16",
        "target": "gfx950",
        "numbers_of_source": "not run",
        "numbers": numbers,
        "hazards": hazards,
        "codes": list(codes),
    }


def test_planted_bugs_are_found_by_the_sanitizer_or_by_numbers_or_not():
    race = (code("race", matched=3), code("race", "consan", messages=["pending access"]))
    slot = (code("slot", matched=0), code("slot", "consan"))
    hang = (code("hang", failed="it ran longer than 2 s"), code("hang", "consan"))
    silent = (code("silent"), code("silent", "consan"))
    found = summary([result(code(), code("", "consan"), *race, *slot, *hang, *silent)], [])
    assert (found["planted_bugs"], found["caught_by_sanitizer"], found["caught_by_numbers"]) == (4, 1, 2)
    names = [f"matmul/fp16 gfx950: {bug}" for bug in ("slot", "hang", "silent")]
    assert found["missed_by_sanitizer"] == names and found["missed_by_both"] == names[2:]


def test_a_bug_of_one_kernel_does_not_stand_in_for_that_of_another():
    other = result(code("race"), code("race", "consan")) | {"target": "gfx1250"}
    found = summary([result(code("race"), code("race", "consan", messages=["x"])), other], [])
    assert (found["planted_bugs"], found["missed_by_both"]) == (2, ["matmul/fp16 gfx1250: race"])


def test_kernels_that_do_not_match_are_named():
    bad = result(code(), numbers="differ in 1 of 3 runs", hazards="found: pending access")
    found = summary([result(code()), bad], [{"refused": "because"}])
    assert (found["pairs"], found["ran"], found["refused"], found["numbers_match"], found["no_hazard_found"]) == (
        3,
        2,
        1,
        1,
        1,
    )
    assert found["numbers_differ"] == ["matmul/fp16 gfx950: differ in 1 of 3 runs"]
    assert found["hazards_found"] == ["matmul/fp16 gfx950: found: pending access"]
