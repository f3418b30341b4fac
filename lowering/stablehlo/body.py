"""The operations of one printed block: names, order, and one line (or region) for each term."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coset.dialects.hub.mlir_text import NO_BOUNDS, Bounds, type_text
from coset.dialects.hub.terms import is_splat
from coset.ir import dims
from coset.ir.dims import Dim
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.term import PARAMETER, Term, topological
from coset.ir.types import TensorType, TupleType, Type
from coset.lowering.stablehlo.dims import Introducers, introducers, needed_symbols

SIZE = "i64"  # what dims are computed in
NO_VALUE = ""  # the value of a term that is not written


def is_number(term: Term) -> bool:
    """True for one number in every element of a tensor of known size, which is written as a constant."""
    return isinstance(term.type, TensorType) and term.type.static is not None and is_splat(term) is not None


class PrintedBlock:
    """A block that is being printed. `lines` grow; nested blocks see the values and dims of the outer ones."""

    def __init__(self, sources: Introducers, outer: PrintedBlock | None = None, bounds: Bounds = NO_BOUNDS) -> None:
        self.sources = sources
        self.bounds: Bounds = bounds if outer is None else outer.bounds
        self.own_types: dict[Term, str] = {} if outer is None else outer.own_types  # of inputs, whose bounds are the module's
        self.lines: list[str] = []
        self.values: dict[Term, str] = {}
        self.sizes: dict[Dim, str] = {} if outer is None else dict(outer.sizes)
        self.outer = outer
        self.taken: set[str] = set() if outer is None else outer.taken
        self.parametric: dict[Term, bool] = {} if outer is None else outer.parametric
        self.functions: list[list[str]] = [] if outer is None else outer.functions
        self.reserved: frozenset[str] = frozenset() if outer is None else outer.reserved  # names of functions that are taken

    # ------------------------------------------------------------ names

    def fresh(self, name: str = "") -> str:
        """An SSA name that is not taken; names of kept operations begin with an underscore, numbers are MLIR's own."""
        if name and name not in self.taken and not name.startswith("_") and not name[0].isdigit():
            self.taken.add(name)
            return f"%{name}"
        return f"%{self._counted()}"

    def _counted(self) -> str:
        name = f"v{len(self.taken)}"
        while name in self.taken:
            name += "v"
        self.taken.add(name)
        return name

    def define(self, term: Term, value: str) -> None:
        """`term` is the SSA value `value`."""
        self.values[term] = value

    def find(self, term: Term) -> str | None:
        """The SSA value of `term` here or in an outer block, or None. What is computed from parameters is of this block's: the same term
        in an outer block is computed from those of that block."""
        if term in self.values or self.outer is None:
            return self.values.get(term)
        return None if self._from_parameters(term) else self.outer.find(term)

    def _from_parameters(self, term: Term) -> bool:
        """Whether a term is computed from parameters of a block."""
        known = self.parametric
        for each in topological([term], known=known):
            known[each] = each.op is PARAMETER or any(known[operand] for operand in each.operands)
        return known[term]

    def value(self, term: Term) -> str:
        """The SSA value of a term that is printed."""
        found = self.find(term)
        assert found is not None, f"{term} is used before it is printed"
        return found

    def type(self, term: Term) -> str:
        """The type of a term as text."""
        return self.own_types.get(term) or type_text(term.type, self.bounds)

    def result_types(self, type: Type) -> list[str]:
        """The types of an operation's results as text: a tuple type is several results."""
        return [type_text(item, self.bounds) for item in (type.items if isinstance(type, TupleType) else (type,))]

    # ------------------------------------------------------------ order

    def emit(self, roots: Iterable[Term]) -> None:
        """Print every term that `roots` need and that is not printed yet, operands and introducers of dims first."""
        for root in roots:
            stack = [(root, False)]
            entered: set[Term] = set()
            while stack:
                term, ready = stack.pop()
                if self.find(term) is not None:
                    continue
                if ready:
                    self._print(term)
                    continue
                if term in entered:
                    raise CosetError(f"the dims of `{describe(term)}` are those of a value that needs it")
                entered.add(term)
                stack.append((term, True))
                stack.extend((before, False) for before in reversed(self._before(term)) if self.find(before) is None)

    def _before(self, term: Term) -> list[Term]:
        return [*(() if is_number(term) else term.operands), *(self._source(name, term)[0] for name in sorted(needed_symbols(term)))]

    def _source(self, name: str, user: Term) -> tuple[Term, int]:
        if name not in self.sources:
            raise CosetError(
                f"`{describe(user)}` needs the number of the dim `{name}`, which no value has alone as a dim",
                help="StableHLO text computes sizes from inputs",
            )
        return self.sources[name]

    def _print(self, term: Term) -> None:
        from coset.lowering.stablehlo.ops import print_term

        print_term(self, term)

    # ------------------------------------------------------------ lines

    def line(self, text: str) -> None:
        self.lines.append(text)

    def op(self, name: str, operands: Sequence[tuple[str, str]], attributes: Sequence[str], results: Sequence[str], *,
           regions: Sequence[Sequence[str]] = ()) -> str:  # fmt: skip
        """Print an operation in the generic form; `operands` are (value, type), `results` types, `regions` lines of blocks. The
        name of the result (of the group of results, where there are several)."""
        value = self.fresh() if results else ""
        group = f"{value}:{len(results)} = " if len(results) > 1 else f"{value} = " if results else ""
        inside = f" <{{{', '.join(attributes)}}}>" if attributes else ""
        types = f"({', '.join(type for _, type in operands)}) -> {_result_text(results)}"
        head = f'{group}"{name}"({", ".join(value for value, _ in operands)}){inside}'
        if not regions:
            self.line(f"{head} : {types}")
            return value
        for index, block in enumerate(regions):
            self.line(f"{head} ({{" if index == 0 else "}, {")
            self.lines.extend(f"  {line}" for line in block)
        self.line(f"}}) : {types}")
        return value

    def kept(self, name: str, operands: Sequence[tuple[str, str]], payload: str, results: Sequence[str]) -> str:
        """Print an operation that was kept as text: `payload` is what stands between its operands and its types."""
        value = self.fresh() if results else ""
        group = f"{value}:{len(results)} = " if len(results) > 1 else f"{value} = " if results else ""
        types = f"({', '.join(type for _, type in operands)}) -> {_result_text(results)}"
        for line in f'{group}"{name}"({", ".join(value for value, _ in operands)}){payload} : {types}'.split("\n"):
            self.line(line)
        return value

    def typed(self, terms: Sequence[Term]) -> list[tuple[str, str]]:
        """Values with their types."""
        for term in terms:
            if self.value(term) == NO_VALUE:
                self.define(term, self.op("stablehlo.after_all", [], [], [self.type(term)]))
        return [(self.value(term), self.type(term)) for term in terms]

    def inner(self, parameters: Sequence[Term]) -> PrintedBlock:
        """A block inside this one, whose parameters introduce dims of their own."""
        return PrintedBlock({**self.sources, **introducers(parameters, ())}, self)

    def isolated(self, parameters: Sequence[Term]) -> PrintedBlock:
        """A block inside this one that sees no value of it: only names are not to be taken twice."""
        body = self.function(parameters)
        body.taken = self.taken
        return body

    def function(self, parameters: Sequence[Term]) -> PrintedBlock:
        """The body of a function beside this one: it sees no value of the others."""
        body = PrintedBlock(introducers(parameters, ()), bounds=self.bounds)
        body.functions, body.reserved = self.functions, self.reserved
        return body

    def add_function(self, parameters: str, results: str, lines: Sequence[str]) -> str:
        """Print a private function; its name."""
        name = f"decomposition{len(self.functions)}"
        while name in self.reserved:
            name += "_"
        head = f"  func.func private @{name}({parameters}) -> ({results}) {{"
        self.functions.append([head, *(f"    {line}" for line in lines), "  }"])
        return name

    # ------------------------------------------------------------ dims

    def size(self, dim: Dim, user: Term) -> str:
        """The rank-0 value that is the number of `dim`."""
        if dim in self.sizes:
            return self.sizes[dim]
        if isinstance(dim, int):
            value = self.fresh()
            self.line(f"{value} = stablehlo.constant dense<{dim}> : tensor<{SIZE}>")
        elif dims.alone(dim) is not None:
            value = self._measured(str(dims.alone(dim)), user)
        else:
            value = self._computed(dim, user)
        self.sizes[dim] = value
        return value

    def _measured(self, name: str, user: Term) -> str:
        term, axis = self._source(name, user)
        measured = self.op("stablehlo.get_dimension_size", self.typed([term]), [f"dimension = {axis} : i64"], ["tensor<i32>"])
        return self.op("stablehlo.convert", [(measured, "tensor<i32>")], [], [f"tensor<{SIZE}>"])

    def _computed(self, dim: Dim, user: Term) -> str:
        """A polynomial: the sum of its terms, each a product of atoms and a number."""
        assert not isinstance(dim, int)
        total: str | None = None
        for monomial, coefficient in dim.terms:
            factors = [self._atom(atom, user) for atom in monomial]
            if coefficient != 1 or not factors:
                factors.append(self.size(coefficient, user))
            product = factors[0]
            for factor in factors[1:]:
                product = self.arithmetic("multiply", product, factor)
            total = product if total is None else self.arithmetic("add", total, product)
        assert total is not None
        return total

    def _atom(self, atom: dims.Atom, user: Term) -> str:
        if not atom.args:
            return self.size(dims.symbol(atom.name), user)
        first, second = (self.size(arg, user) for arg in atom.args)
        if atom.name in ("max", "min"):
            return self.arithmetic({"max": "maximum", "min": "minimum"}[atom.name], first, second)
        rest = self._floor_remainder(first, second)
        return rest if atom.name == "mod" else self.arithmetic("divide", self.arithmetic("subtract", first, rest), second)

    def _floor_remainder(self, a: str, b: str) -> str:
        """a - b * floor(a / b), from remainders that have the sign of the dividend."""
        inner = self.arithmetic("remainder", a, b)
        return self.arithmetic("remainder", self.arithmetic("add", inner, b), b)

    def arithmetic(self, name: str, a: str, b: str) -> str:
        """An operation on two rank-0 sizes."""
        value = self.fresh()
        self.line(f"{value} = stablehlo.{name} {a}, {b} : tensor<{SIZE}>")
        return value

    def vector(self, shape: Sequence[Dim], user: Term) -> tuple[str, str]:
        """A rank-1 value that holds dims, with its type."""
        text = f"tensor<{len(shape)}x{SIZE}>"
        if all(isinstance(dim, int) for dim in shape):
            value = self.fresh()
            inside = f"[{', '.join(map(str, shape))}]" if shape else ""
            self.line(f"{value} = stablehlo.constant dense<{inside}> : {text}")
            return value, text
        one = f"tensor<1x{SIZE}>"
        parts = [self.op("stablehlo.reshape", [(self.size(dim, user), f"tensor<{SIZE}>")], [], [one]) for dim in shape]
        if len(parts) == 1:
            return parts[0], text
        return self.op("stablehlo.concatenate", [(part, one) for part in parts], ["dimension = 0 : i64"], [text]), text


def _result_text(results: Sequence[str]) -> str:
    return results[0] if len(results) == 1 else f"({', '.join(results)})"
