"""What the layouts of a function are for: loads, operands of products, tiles in LDS, stores. A role names a layout, as in translations."""

from __future__ import annotations

from gluonize.gluon.layout_names import LayoutNames, product_role, store_role
from gluonize.raised.naming.origins import PRODUCTS, Origins
from gluonize.trace.model.layouts import Slice
from gluonize.trace.model.module import Function, Module
from gluonize.trace.model.op import Op
from gluonize.trace.model.types import Type

UNSURE = 5  # the rank of a role that no operation says: a layout is called after a variable
_LOADS = ("tt.load", "amdg.buffer_load")
# Of an access: which operand says where, and which has the layout that it is made in.
_STORES = {"tt.store": (0, 1), "amdg.buffer_store": (1, 0)}
_ATOMICS = {"tt.atomic_rmw": (0, 1), "tt.atomic_cas": (0, 1), "amdg.buffer_atomic_rmw": (1, 0)}
_COPIES = {"amdg.buffer_load_to_local": 1, "ttg.async_copy_global_to_local": 0}


def suggest_roles(names: LayoutNames, module: Module, function: Function, origins: Origins) -> None:
    """Tell the names of a function's layouts what each is used for."""

    def told(kind: Type | None, role: str, rank: int, op: Op) -> None:
        if kind is not None and kind.shape:
            layout = module.layout(kind)
            # A row of a tile says less of what the tile's layout is for than the tile does.
            names.suggest(layout, role.lower(), UNSURE - 1 if isinstance(layout, Slice) else rank, op.place.line)

    def stored(op: Op, pointer: int, value: int) -> tuple[Type | None, str]:
        return origins.kinds.get(op.operands[value]), store_role(origins.root(op.operands[pointer]))

    for op in function.walk():
        if op.name in _LOADS and (name := origins.name(op.results[0])):
            told(op.type, f"{name}_load", 1, op)
        elif op.name in _COPIES and op.place.name:
            told(origins.kinds.get(op.operands[_COPIES[op.name]]), f"{op.place.name}_load", 1, op)
        elif op.name in PRODUCTS:
            told(op.type, product_role(module.layout(op.type)), 1, op)
            for value in op.operands:
                kind = origins.kinds.get(value)
                if kind is not None and kind.layout != op.type.layout and (name := origins.stem(value, op.place.name)):
                    told(kind, f"{name}_operand", 1, op)
        elif op.name == "ttg.local_alloc" and (name := origins.stem(op.results[0])):
            names.suggest(module.shared(op.type, op.type.shape or ()), f"{name.lower()}_shared", 1, op.place.line)
        elif op.name == "ttg.local_load" and (name := origins.stem(op.results[0])):
            told(op.type, f"{name}_read", 4, op)
        elif op.name in _STORES:
            kind, role = stored(op, *_STORES[op.name])
            told(kind, role, 2, op)
        elif op.name in _ATOMICS:
            kind, role = stored(op, *_ATOMICS[op.name])
            told(kind, role.replace("_store", "_atomic"), 3, op)
