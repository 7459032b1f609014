"""Descriptors as tuples where they pass through loops, partitions and the kernel's parameters."""

from __future__ import annotations

from gluonize.judge.device.refusal import Refused
from gluonize.judge.device.retarget.memory import Names
from gluonize.judge.device.retarget.tdm_copies import Described, described, lookup, width
from gluonize.trace.model.module_text import Listed, is_descriptor, op_name, renamed, result_of, with_results
from gluonize.trace.model.types import parse_type, split_top

DESCRIPTOR = "!tt.tensordesc<"


class DescriptorFlow:
    """Edits the lines that carry descriptors; `known` maps descriptor values to their scalars."""

    def __init__(self, known: dict[str, Described], names: Names):
        self.known, self.names = known, names
        self.moved: dict[str, str] = {}
        self.loops: list[list[str]] = []
        self.pending: list[tuple[str, list[str], list[str], str]] = []
        self.captured: list[str] = []

    def renamed(self, line: str) -> str:
        """Results of loops that got more results have other numbers."""
        return renamed(line, self.moved)

    def line(self, line: str) -> str:
        """A common op: loops, yields and partitions that carry descriptors are widened; other uses are refused."""
        stripped = line.strip()
        if stripped.startswith("}") and self.loops:
            self.loops.pop()
        kinds: list[str] = []
        if op_name(line) == "scf.for":
            line, kinds = self._loop(line)
        elif stripped.startswith("scf.yield"):
            line = self._yield(line)
        elif op_name(line) == "ttg.warp_specialize":
            line = self._captures(line)
        elif stripped.startswith("partition"):
            line = self._partition(line)
        elif stripped.startswith("} : (") and DESCRIPTOR in stripped:
            line = self._captured_types(line)
        if stripped.endswith("{"):
            self.loops.append(kinds)
        if DESCRIPTOR in line:
            raise Refused("!tt.tensordesc", f"a descriptor used by `{stripped[:60]}`")
        return line

    def parameters(self, line: str) -> str:
        """A host-side descriptor parameter becomes a pointer; its bounds and strides follow it as parameters already."""
        if DESCRIPTOR not in line:
            return line
        listed, out = Listed.of(line), []
        for i, part in enumerate(listed.items):
            name, _, kind = part.partition(": ")
            if not is_descriptor(kind):
                out.append(part)
                continue
            rank = len(parse_type(kind).shape)
            following = [p.partition(": ")[0] for p in listed.items[i + 1 : i + 1 + 2 * rank]]
            out.append(f"{name}: !tt.ptr<{parse_type(kind).element}> {{tt.divisibility = 16 : i32}}")
            if len(following) != 2 * rank:
                raise Refused("!tt.tensordesc", "a descriptor parameter without its bounds and strides")
            self.pending.append((name, following[:rank], following[rank:], kind))
        return listed.printed(out)

    def prologue(self) -> list[str]:
        """Constants for the descriptors that are parameters; to stand at the start of the kernel."""
        lines = []
        for name, bounds, strides, kind in self.pending:
            zero, on = self.names("zero"), self.names("on")
            lines += [f"    {zero} = arith.constant 0 : i32", f"    {on} = arith.constant true"]
            rank = len(bounds)
            self.known[name] = described(kind, [name, *bounds, *strides, *[zero] * rank, on])
        self.pending = []
        return lines

    def _loop(self, line: str) -> tuple[str, list[str]]:
        """`%r:2 = scf.for ... iter_args(%x = %a, %d = %e) -> (f32, !tt.tensordesc<..>) : i32 {`."""
        carried = Listed.of(line, " iter_args(")
        if carried is None:
            return line, []
        results = Listed.of(carried.after)
        kinds = list(results.items)
        if not any(map(is_descriptor, kinds)):
            return line, kinds
        result = result_of(line)
        pairs, types, out_names = [], [], []
        single = len(kinds) == 1
        for i, (pair, kind) in enumerate(zip(carried.items, kinds)):
            inner, initial = pair.split(" = ")
            outer = result if single else f"{result}#{i}"
            if not is_descriptor(kind):
                out_names.append((outer, [f"{len(types)}"], None))
                pairs.append(pair)
                types.append(kind)
                continue
            d = lookup(self.known, initial, "scf.for")
            values = [f"{inner}_{j}" for j in range(width(kind))]
            self.known[inner] = described(kind, values)
            out_names.append((outer, [str(len(types) + j) for j in range(width(kind))], kind))
            pairs += [f"{v} = {x}" for v, x in zip(values, d.values())]
            types += d.types()
        for outer, positions, kind in out_names:
            if kind is None:
                self.moved[outer] = f"{result}#{positions[0]}"
            else:
                self.known[outer] = described(kind, [f"{result}#{p}" for p in positions])
        head = with_results(carried.before, len(types))
        return f"{head}{', '.join(pairs)}{results.printed(types)}", kinds

    def _yield(self, line: str) -> str:
        head, _, rest = line.partition("scf.yield ")
        if DESCRIPTOR not in rest:
            return line
        values, kinds = (split_top(x) for x in split_top(rest, " : "))
        if not self.loops or not any(map(is_descriptor, self.loops[-1])):
            raise Refused("!tt.tensordesc", "a descriptor that a conditional yields")
        wide, types = [], []
        for value, kind in zip(values, kinds):
            if is_descriptor(kind):
                d = lookup(self.known, value, "scf.yield")
                wide += d.values()
                types += d.types()
            else:
                wide.append(value)
                types.append(kind)
        return f"{head}scf.yield {', '.join(wide)} : {', '.join(types)}"

    def _captures(self, line: str) -> str:
        listed = Listed.of(line, "ttg.warp_specialize(")
        self.captured = list(listed.items)
        wide = [x for v in self.captured if v for x in (self.known[v].values() if v in self.known else [v])]
        return listed.printed(wide)

    def _partition(self, line: str) -> str:
        if DESCRIPTOR not in line:
            return line
        listed, out = Listed.of(line), []
        for part in listed.items:
            name, _, kind = part.partition(": ")
            if not is_descriptor(kind):
                out.append(part)
                continue
            values = [f"{name}_{j}" for j in range(width(kind))]
            self.known[name] = described(kind, values)
            out += [f"{v}: {t}" for v, t in zip(values, self.known[name].types())]
        return listed.printed(out)

    def _captured_types(self, line: str) -> str:
        listed, wide = Listed.of(line), []
        for value, kind in zip(self.captured, listed.items):
            wide += self.known[value].types() if is_descriptor(kind) else [kind]
        return listed.printed(wide)
