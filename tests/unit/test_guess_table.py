"""The table of what was guessed, as it is printed."""

import shlex

from gluonize.product.cli.translate.guess_table import correction_lines, table_lines
from gluonize.read.launches.table import Derivation, Row
from gluonize.read.spec.launch import LaunchSpec


def test_many_names_with_one_value_stand_on_several_lines():
    names = [f"stride_of_tensor_{i}" for i in range(7)]
    rows = (*(Row(name, "i32", "a stride", "use") for name in names), Row("n", "1024", "a bound", "name"))
    lines = list(table_lines(Derivation("k", (LaunchSpec("k", "k"),), rows)))
    assert lines == [
        "k: guessed, 1 launch",
        "  stride_of_tensor_0, stride_of_tensor_1, stride_of_tensor_2,  i32   use   a stride",
        "  stride_of_tensor_3, stride_of_tensor_4, stride_of_tensor_5,",
        "  stride_of_tensor_6",
        "  n                                                            1024  name  a bound",
    ]


def test_corrections_are_lines_that_a_shell_takes_as_they_are_wrapped():
    def of(kernel):
        rows = (*(Row(f"tensor_{i}_ptr", "*fp16", "", "use") for i in range(4)), Row("n", "i32", "", "computed"))
        return Derivation(kernel, (LaunchSpec(kernel, kernel),), rows)

    lines = correction_lines([of("first_kernel"), of("second_kernel")])
    assert len(lines) == 4 and max(map(len, lines)) <= 100
    words = shlex.split("gluonize " + "\n".join(lines).replace("\\\n", ""))  # a backslash at a line's end joins lines
    settings = [f"{kernel}_kernel.tensor_{i}_ptr=*fp16" for kernel in ("first", "second") for i in range(4)]
    assert words == ["gluonize", *(word for setting in settings for word in ("--set", setting))]
