"""Launch specs: what parses, what is refused and how, values that JSON lacks, and what Triton is given."""

import json
import math
from pathlib import Path

import jsonschema
import pytest
import triton
import triton.language as tl
from hypothesis import given
from hypothesis import strategies as st

from gluonize.diagnostics import TranslationError
from gluonize.read.evaluate.spec_values import decode_value, encode_value
from gluonize.read.spec import launch
from gluonize.read.spec.compile_arguments import compile_arguments
from gluonize.read.spec.launch import LaunchSpec, parse_launches, read_launches

SCHEMA = json.loads((Path(launch.__file__).parent / "launches.schema.json").read_text())
GOOD = {
    "kernel": "k",
    "source": "m.py",
    "signature": {"x": "*fp16", "n": "i32", "B": "constexpr"},
    "constexprs": {"B": 128},
    "attrs": {"x": "DS", "n": "D"},
    "options": {"num_warps": 4, "num_stages": 2},
    "grid": [256, 1, 1],
}


@triton.jit
def kernel(x, n, pair, B: tl.constexpr, D: tl.constexpr = 7):
    pass


def refused(data) -> list:
    with pytest.raises(TranslationError) as caught:
        parse_launches(data, file="L.json")
    return list(caught.value.diagnostics)


@pytest.mark.parametrize("data", [GOOD, [GOOD], {"version": 1, "launches": [GOOD]}], ids=["one", "list", "versioned"])
def test_forms(data):
    for given_as in (data, json.dumps(data)):
        (spec,) = parse_launches(given_as)
        assert (spec.id, spec.kernel, spec.grid) == ("m/k", "k", (256, 1, 1))
    jsonschema.validate(data, SCHEMA)


def test_as_json_parses_back():
    (spec,) = parse_launches(GOOD)
    assert parse_launches(spec.as_json()) == [spec]


def test_ids_are_unique_and_given_ones_are_kept():
    specs = parse_launches([GOOD, {**GOOD, "id": "mine"}, GOOD])
    assert [s.id for s in specs] == ["m/k", "mine", "m/k#2"]


def test_other_tools_fields_are_left_alone():
    assert parse_launches({**GOOD, "package": "p==1", "triton_compiles": {}})


BAD = {
    "version": ({"version": 2, "launches": [GOOD]}, "spec-version", "version 2"),
    "no launches key": ({"version": 1}, "spec-missing", '"launches"'),
    "empty": ({"launches": []}, "spec-missing", "no launches"),
    "not an object": ([3], "spec-field", "a launch is an object, not the number 3"),
    "a string": ('"x"', "spec-field", "not a string"),
    "no kernel": ([{"signature": {}}], "spec-missing", "launch.kernel: is missing"),
    "bad name": ({**GOOD, "kernel": "a b"}, "spec-field", "'a b' is not the name"),
    "no signature": ({"kernel": "k"}, "spec-missing", "signature: is missing"),
    "misspelt field": ({**GOOD, "constexpr": {}}, "spec-field", "did you mean constexprs?"),
    "long dtype": ({**GOOD, "signature": {"x": "*float16"}, "attrs": {}}, "spec-type", "did you mean *fp16?"),
    "unknown dtype": ({**GOOD, "signature": {"x": "*fp17"}, "attrs": {}}, "spec-type", "unknown type '*fp17'"),
    "dtype not text": ({**GOOD, "signature": {"x": 3}, "attrs": {}}, "spec-type", "not the number 3"),
    "type and value": ({**GOOD, "constexprs": {"n": 1}}, "spec-type", "the signature says i32, but constexprs"),
    "unknown attr": ({**GOOD, "attrs": {"x": "Q"}}, "spec-field", "letters D and S"),
    "attr of constexpr": ({**GOOD, "attrs": {"B": "D"}}, "spec-field", "a constexpr argument has no attributes"),
    "warps": ({**GOOD, "options": {"num_warps": 3}}, "spec-field", "power of two, not 3"),
    "stages": ({**GOOD, "options": {"num_stages": "2"}}, "spec-field", "non-negative integer"),
    "grid": ({**GOOD, "grid": [1, 2, 3, 4]}, "spec-field", "grid"),
    "negative grid": ({**GOOD, "grid": [-1]}, "spec-field", "grid"),
    "two markers": ({**GOOD, "constexprs": {"B": {"$dtype": "fp16", "$float": "1"}}}, "spec-value", "exactly one"),
    "no such dtype": ({**GOOD, "constexprs": {"B": {"$dtype": "fp17"}}}, "spec-value", "unknown dtype 'fp17'"),
    "no such float": ({**GOOD, "constexprs": {"B": {"$float": "x"}}}, "spec-value", "number as text"),
    "jit": ({**GOOD, "constexprs": {"B": {"$jit": "f"}}}, "spec-value", '"module:function"'),
    "global": ({**GOOD, "globals": {"NAME": 1}}, "spec-field", "pkg.module:NAME"),
    "duplicate ids": ([{**GOOD, "id": "a"}, {**GOOD, "id": "a"}], "spec-duplicate", "'a'"),
}


@pytest.mark.parametrize("data,code,text", BAD.values(), ids=BAD)
def test_refused(data, code, text):
    (found,) = refused(data)
    assert found.code == code and text in found.message and found.file == "L.json"


@pytest.mark.parametrize(
    "name",
    sorted(
        set(BAD)
        - {
            "a string",
            "type and value",
            "attr of constexpr",
            "duplicate ids",
            "misspelt field",
            "no such dtype",
            "no such float",
        }
    ),
)
def test_schema_refuses_it_too(name):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(BAD[name][0], SCHEMA)


def test_json_errors_have_line_and_column():
    (found,) = refused('{"kernel": "k",\n  "signature": {,}}')
    assert (found.code, found.line, found.column) == ("spec-json", 2, 17)
    assert refused('{"kernel": "a", "kernel": "b"}')[0].message == "the key 'kernel' occurs twice in one object"
    assert refused("[" * 100_000)[0].code == "spec-json"


def test_every_problem_is_reported_at_once():
    assert [d.code for d in refused([{**GOOD, "grid": 3}, {**GOOD, "options": {"num_warps": 5}}, {"kernel": "k"}])] == [
        "spec-field",
        "spec-field",
        "spec-missing",
    ]


def test_unreadable_file(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(TranslationError) as caught:
            read_launches(str(path))
        assert caught.value.diagnostics[0].code == "spec-unreadable"
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TranslationError, match="not UTF-8"):
        read_launches(str(tmp_path / "b.json"))


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from([tl.float16, tl.int32, tl.int1]),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=8,
)


@given(VALUES)
def test_values_survive_json(value):
    assert decode_value(json.loads(json.dumps(encode_value(value), allow_nan=False))) == value


def test_values():
    assert math.isnan(decode_value({"$float": "nan"}))
    assert decode_value({"$dtype": "u1"}) == tl.int1 and decode_value({"$dtype": "i32"}) == tl.int32
    wrapped = decode_value({"$constexpr": {"$tuple": [1, {"$float": "-inf"}]}})
    assert isinstance(wrapped, tl.constexpr) and wrapped.value == (1, -math.inf)
    assert encode_value(wrapped) == {"$constexpr": {"$tuple": [1, {"$float": "-inf"}]}}
    assert decode_value({"$jit": "m:f"}, lambda reference: reference.upper()) == "M:F"
    with pytest.raises(TranslationError, match="not possible here"):
        decode_value({"$jit": "m:f"})
    with pytest.raises(TranslationError, match="has no form"):
        encode_value(object())


def test_compile_arguments():
    spec = LaunchSpec(
        "i", "kernel", signature={"x": "*fp16", "n": "i32", "pair": ["*fp32", "constexpr", ["i32"]]},
        constexprs={"pair": [None, 5, [None]], "B": {"$dtype": "fp16"}}, attrs={"x": "SD", "n": "D", "pair": ["S", "", ["D"]]},
    )  # fmt: skip
    found = compile_arguments(spec, kernel)
    assert found.signature == {
        "x": "*fp16",
        "n": "i32",
        "pair": ("*fp32", "constexpr", ("i32",)),
        "B": "constexpr",
        "D": "constexpr",
    }
    assert found.constexprs == {(2, 1): 5, (3,): tl.float16, (4,): 7}
    divisible, range_ = ["tt.divisibility", 16], ["tt.pointer_range", 32]
    assert found.attrs == {(0,): [divisible, range_], (1,): [divisible], (2, 0): [range_], (2, 2, 0): [divisible]}


@pytest.mark.parametrize(
    "spec,code,text",
    [
        (
            LaunchSpec("i", "kernel", signature={"x": "*fp16", "n": "i32", "pair": "i32"}),
            "spec-missing",
            "B of kernel has no value",
        ),
        (
            LaunchSpec("i", "kernel", signature={"x": "*fp16", "pair": "i32"}, constexprs={"B": 1}),
            "spec-missing",
            "n of kernel has no type",
        ),
        (
            LaunchSpec("i", "kernel", signature={"x": "*fp16", "n": "i32", "pair": "i32", "B": "i32"}),
            "spec-type",
            "B of kernel is a tl.constexpr",
        ),
        (
            LaunchSpec(
                "i", "kernel", signature={"x": "*fp16", "n": "i32", "pair": "i32"}, constexprs={"B": 1, "BB": 2}
            ),
            "spec-unknown-argument",
            "no argument BB",
        ),
    ],
    ids=["no value", "no type", "typed constexpr", "unknown argument"],
)
def test_compile_arguments_refused(spec, code, text):
    with pytest.raises(TranslationError) as caught:
        compile_arguments(spec, kernel)
    (found,) = caught.value.diagnostics
    assert found.code == code and text in found.message
