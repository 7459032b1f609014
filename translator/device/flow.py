"""Descriptors as tuples where they pass through loops, partitions and the kernel's parameters."""

from __future__ import annotations

import re

from translator.device.tdm_copies import Described, described, lookup, width
from translator.device.module_text import balanced_end, op_name, tensor_parts, VALUE
from translator.device.refusal import Refused
from translator.device.retarget_memory import Names
from translator.ttgir.types import split_top

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
        if not self.moved:
            return line
        return re.sub(VALUE, lambda found: self.moved.get(found.group(0), found.group(0)), line)

    def line(self, line: str) -> str:
        """A common op: loops, yields and partitions that carry descriptors are widened; other uses are refused."""
        stripped = line.strip()
        if stripped.startswith("}") and self.loops:
            self.loops.pop()
        kinds: list[str] = []
        if re.search(r"(?:^| )scf\.for ", stripped):
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
        start = line.index("(")
        end = balanced_end(line, start)
        parts, out = split_top(line[start + 1 : end - 1]), []
        for i, part in enumerate(parts):
            name, _, kind = part.partition(": ")
            if not kind.startswith(DESCRIPTOR):
                out.append(part)
                continue
            block, element, _ = tensor_parts(kind)
            rank = len(block)
            following = [p.partition(": ")[0] for p in parts[i + 1 : i + 1 + 2 * rank]]
            out.append(f"{name}: !tt.ptr<{element}> {{tt.divisibility = 16 : i32}}")
            if len(following) != 2 * rank:
                raise Refused("!tt.tensordesc", "a descriptor parameter without its bounds and strides")
            self.pending.append((name, following[:rank], following[rank:], kind))
        return line[: start + 1] + ", ".join(out) + line[end - 1 :]

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
        found = re.search(r" iter_args\((.*?)\) -> \(", line)
        if not found:
            return line, []
        end = balanced_end(line, found.end() - 1)
        kinds = split_top(line[found.end() : end - 1])
        if not any(kind.startswith(DESCRIPTOR) for kind in kinds):
            return line, kinds
        result = re.match(rf"\s*({VALUE})(?::\d+)? = ", line).group(1)
        pairs, types, out_names = [], [], []
        single = len(kinds) == 1
        for i, (pair, kind) in enumerate(zip(split_top(found.group(1)), kinds)):
            inner, initial = pair.split(" = ")
            outer = result if single else f"{result}#{i}"
            if not kind.startswith(DESCRIPTOR):
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
        head = re.sub(
            rf"^(\s*){re.escape(result)}(?::\d+)? = ", rf"\g<1>{result}:{len(types)} = ", line[: found.start()]
        )
        return f"{head} iter_args({', '.join(pairs)}) -> ({', '.join(types)}{line[end - 1 :]}", kinds

    def _yield(self, line: str) -> str:
        head, _, rest = line.partition("scf.yield ")
        if DESCRIPTOR not in rest:
            return line
        values, kinds = (split_top(x) for x in split_top(rest, " : "))
        if not self.loops or not any(k.startswith(DESCRIPTOR) for k in self.loops[-1]):
            raise Refused("!tt.tensordesc", "a descriptor that a conditional yields")
        wide, types = [], []
        for value, kind in zip(values, kinds):
            if kind.startswith(DESCRIPTOR):
                d = lookup(self.known, value, "scf.yield")
                wide += d.values()
                types += d.types()
            else:
                wide.append(value)
                types.append(kind)
        return f"{head}scf.yield {', '.join(wide)} : {', '.join(types)}"

    def _captures(self, line: str) -> str:
        start = line.index("ttg.warp_specialize(") + len("ttg.warp_specialize")
        end = balanced_end(line, start)
        self.captured = split_top(line[start + 1 : end - 1])
        wide = [x for v in self.captured if v for x in (self.known[v].values() if v in self.known else [v])]
        return f"{line[: start + 1]}{', '.join(wide)}{line[end - 1 :]}"

    def _partition(self, line: str) -> str:
        if DESCRIPTOR not in line:
            return line
        start = line.index("(")
        end = balanced_end(line, start)
        out = []
        for part in split_top(line[start + 1 : end - 1]):
            name, _, kind = part.partition(": ")
            if not kind.startswith(DESCRIPTOR):
                out.append(part)
                continue
            values = [f"{name}_{j}" for j in range(width(kind))]
            self.known[name] = described(kind, values)
            out += [f"{v}: {t}" for v, t in zip(values, self.known[name].types())]
        return f"{line[: start + 1]}{', '.join(out)}{line[end - 1 :]}"

    def _captured_types(self, line: str) -> str:
        start = line.index("(")
        end = balanced_end(line, start)
        wide = []
        for value, kind in zip(self.captured, split_top(line[start + 1 : end - 1])):
            wide += self.known[value].types() if kind.startswith(DESCRIPTOR) else [kind]
        return f"{line[: start + 1]}{', '.join(wide)}{line[end - 1 :]}"
