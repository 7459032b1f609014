"""What is read of printed operations and attributes, and lines with one thing put in place of another."""

from __future__ import annotations

import pytest

from gluonize.trace.model.attributes import Attribute, parse_attribute
from gluonize.trace.model.module_text import (
    Listed,
    ops_named,
    rank_of,
    renamed,
    with_ctas,
    with_layouts,
    with_operand,
    with_ops,
    with_results,
    without_attribute,
    without_attributes,
)
from gluonize.trace.model.op_text import author_name
from gluonize.trace.model.parse import parse_op
from gluonize.trace.model.types import Type, parse_type


@pytest.mark.parametrize(
    "line, words, counted",
    [
        ("%0 = arith.cmpi slt, %a, %b : i32", ("slt",), None),
        ("%0 = tt.atomic_rmw fadd, relaxed, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32", ("fadd", "relaxed", "gpu"), None),
        ("%0 = tt.get_program_id x : i32", ("x",), None),
        ("%0 = tt.get_program_id y {tt.max = 8 : i32} : i32", ("y",), None),
        ("ttng.barrier_expect %bar, 8192, %on : !ttg.memdesc<1xi64, #s, #smem, mutable>", ("8192",), 8192),
        ("amdg.init_barrier %bar, 4 : !ttg.memdesc<1xi64, #s, #smem, mutable>", ("4",), 4),
        ("%0 = ttng.packed_arith fma %a, %b, %c : tensor<4xf32>", ("fma",), None),
        ("%0 = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<4x4xf32> * tensor<4x4xf32> -> tensor<4x4xf32>", (), None),
    ],
)  # fmt: skip
def test_words_between_operands(line, words, counted):
    op = parse_op(line)
    assert op.words == words and op.counted == counted


@pytest.mark.parametrize(
    "text, name, value",
    [
        ("%a {ttg.amdg.syncedViaAsyncWait = true}", "ttg.amdg.syncedViaAsyncWait", True),
        ("%a {ttg.amdg.syncedViaAsyncWait = true}", "syncedViaAsyncWait", None),
        ("%a {clamp_bounds}", "clamp_bounds", True),
        ("%a {num = 3 : i32, other = 1 : i32}", "num", 3),
        ("%a scale %s, %b scale %t, %c lhs = e4m3 rhs = e2m1 {fastMath = false}", "lhs", "e4m3"),
        ("%a scale %s, %b scale %t, %c lhs = e4m3 rhs = e2m1 {fastMath = false}", "rhs", "e2m1"),
        ("%a {redOp = #ttng.redOp<max>}", "redOp", "max"),
        ('%a {libname = "", symbol = "__ocml_pow_f32"}', "symbol", "__ocml_pow_f32"),
        ('%a {constraints = "=v,v"}', "constraints", "=v,v"),
    ],
)
def test_attributes(text, name, value):
    assert parse_op(f"%0 = tt.any {text} : tensor<4xf32>").attribute(name) == value


@pytest.mark.parametrize(
    "text, elements, integer",
    [
        ("5 : i32", ("5",), 5),
        ("true", ("true",), 1),
        ("dense<-1> : tensor<4xi32>", ("-1",), -1),
        ("{tt.divisibility = dense<16> : tensor<1xi32>} dense<4> : tensor<4xi32>", ("4",), 4),
        ("dense<[1, 2, 3]> : tensor<3xi32>", ("1", "2", "3"), None),
        ("1.000000e+00 : f32", ("1.000000e+00",), None),
    ],
)
def test_constants(text, elements, integer):
    constant = parse_op(f"%0 = arith.constant {text}").constant
    assert constant.elements == elements and constant.integer == integer


def test_constants_that_are_bytes():
    constant = parse_op('%0 = arith.constant dense<"0x0A00FF"> : tensor<3xi8>').constant
    assert constant.raw == b"\x0a\x00\xff" and constant.only == "" and not constant.is_zero


def test_operands_by_their_place():
    op = parse_op(
        "%d = amdg.update_tensor_descriptor %s add_offsets = [%a, %b] set_bounds = [%n] pred = %p : !tt.tensordesc<4x4xf16>"
    )
    assert op.listed_at("add_offsets") == (1, 3) and op.listed("set_bounds") == ("%n",) and op.listed_at("pad") is None
    assert parse_op("ttng.tc_gen5_mma %a, %b, %d[%token], %use, %on, %bar[%yes] : i1").groups == (1, 1, 2, 1, 1, 2)
    assert parse_op("ttng.wait_barrier %bar, %phase deps %a, %b : i1").before("deps") == 2
    assert parse_op("%0 = ttg.memdesc_subslice %x[0, 32] : i1").indices == (0, 32)
    assert parse_op("%0 = ttg.memdesc_index %x[%i] : i1").indices == ()
    assert parse_op("%0 = arith.truncf %x toward_zero : f32 to bf16").says("toward_zero")


def test_texts_in_quotes_are_as_they_were():
    assert parse_op('tt.print " a \\22b\\22\\0A" : %x : i32').string == ' a "b"\n'


@pytest.mark.parametrize(
    "value, name", [("%acc_12", "acc"), ("%c0_i32", ""), ("%12", ""), ("%cst_3", ""), ("%a.b", "a_b")]
)
def test_the_authors_names(value, name):
    assert author_name(value) == name


def test_attributes_are_values():
    padded = parse_attribute("#ttg.padded_shared<[512:+16, 32:+8] {order = [1, 0], shape = [16, 64]}>")
    assert padded == Attribute("ttg.padded_shared", ((512, 16), (32, 8)), (("order", (1, 0)), ("shape", (16, 64))))
    named = {"#b": "#ttg.blocked<{order = [0]}>", "#s": "#ttg.slice<{dim = 1, parent = #b}>"}
    assert [part.kind for part in parse_attribute("#s", named).walk()] == ["ttg.slice", "ttg.blocked"]
    assert parse_attribute("#s", {"#s": named["#s"]}).get("parent") == Attribute("b")
    memory = parse_attribute("#ttng.tensor_memory_encoding<blockM = 128, colStride = 1, twoCTAs = true>")
    assert (memory.get("blockM"), memory.get("twoCTAs"), memory.get("CGALayout")) == (128, True, None)
    assert parse_attribute("#ttg.nvmma_shared<{rank = 2 : i32, CGALayout = [[1, 0], [0, 0]]}>").parts == 2


def test_memory_descriptors_are_printed_as_they_were():
    text = "!ttg.memdesc<2x16x64xf16, #shared, #smem, mutable, 4x16x64>"
    assert parse_type(text).printed == text and parse_type(text).short == text.removeprefix("!ttg.memdesc")
    assert parse_type(text) == Type("memdesc", "f16", (2, 16, 64), "#shared")


def test_lines_with_something_else():
    line = "    %r:2 = scf.for %i = %a to %b step %c iter_args(%x = %a, %y = %d) -> (i32, tensor<2xf32, #l>)  : i32 {"
    carried = Listed.of(line, " iter_args(")
    assert carried.items == ("%x = %a", "%y = %d") and Listed.of(carried.after).items == ("i32", "tensor<2xf32, #l>")
    assert carried.printed(carried.items) == line and Listed.of(line, "partition(") is None
    assert with_results(line, 5).startswith("    %r:5 = scf.for ")
    assert renamed("%a, %a_1, %b#1", {"%a": "%z", "%b#1": "%y"}) == "%z, %a_1, %y"
    assert with_operand("tt.store %a_1, %a, %a", "%a", "%z") == "tt.store %a_1, %z, %a"
    assert without_attribute("%p: i32 {tt.a = 1 : i32, tt.b = 32 : i32}", "tt.b") == "%p: i32 {tt.a = 1 : i32}"
    assert without_attribute("%p: i32 {tt.b = 32 : i32}", "tt.b") == "%p: i32"
    assert without_attribute("x {ttg.amdg.sync = true, num = 1 : i32}", "ttg.amdg.*") == "x {num = 1 : i32}"
    assert without_attributes("a attributes {b = 1} c") == "a c"


def test_layouts_in_a_module():
    text = (
        "#b = #ttg.blocked<{order = [0]}>\n tensor<4xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{order = [1]}>}>>"
    )
    seen = []

    def change(layout, body):
        seen.append(layout.kind)
        return "#new" if layout.kind == "ttg.blocked" else None

    assert with_layouts(text, change) == "#b = #new\n tensor<4xf32, #ttg.slice<{dim = 0, parent = #new}>>"
    assert seen == ["ttg.blocked", "ttg.slice", "ttg.blocked"]
    line = "#b = #ttg.blocked<{order = [0], CGALayout = [[1]]}>"
    assert with_ctas(line, lambda ctas: tuple((2 * step,) for (step,) in ctas)) == line.replace("[[1]]", "[[2]]")
    assert with_ctas("  " + line, lambda ctas: ()) == "  " + line
    made = with_ops("  %a = tt.trans %b : i1\n  tt.return\n", ("tt.trans",), lambda op, line: [op.results[0], line])
    assert made == "  %a\n  %a = tt.trans %b : i1\n  tt.return\n"
    assert [op.name for op in ops_named("%a = tt.trans %b : i1\n}\n%c = tt.load %d : i1", "tt.load")] == ["tt.load"]
    assert rank_of("%a = x %b : tensor<4x!tt.ptr<f16>, #m>\n%c = x : tensor<2x4xf16, #m>", "#m") == 2
