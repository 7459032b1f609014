"""The table of what was guessed, as it is printed."""

from gluonize.product.cli.translate.guess_table import table_lines
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
