"""Rows of numbers as vectors in compiled loops, which LLVM keeps in registers of whatever length the processor has.

The compiler makes such code of loops over the features of a row by itself, but only where they are long; those of
narrow networks are short. Here the length is part of the type. An array of rows has records of one field as entries
(`row_type`), which a compiled loop loads as vectors, adds, multiplies and stores. Stored numbers have 16 or 32 bits,
those of vectors 32.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils as untyped_cgutils
from numba.core import errors
from numba.core.typing.templates import AbstractTemplate, infer_global

LANES = 16
"""Numbers of the longest registers that processors have; rows are a multiple of it."""
FAST = ("fast",)
"""Sums may be taken in any order."""

ALIGNED = 2
"""Rows begin at multiples of so many bytes; processors load others as fast, unless they cross lines of the cache."""
LINE = 64
"""Bytes of a line of the cache."""
READ, KEEP, DATA = 0, 3, 1
"""What LLVM's `prefetch` takes: to read, to stay in all caches, no instructions."""

cgutils: Any = untyped_cgutils
FLOAT, INT = ir.FloatType(), ir.IntType(32)
_STORED: dict[int, Any] = {8: ir.IntType(8), 16: ir.HalfType(), 32: FLOAT}


def row_type(length: int, number: type[Any] = np.float32) -> np.dtype[Any]:
    """The type of the entries of an array of rows. Numba does not know floats of 16 bits, so they come as `int16`."""
    return np.dtype([("row", number, (length,))])


def intrinsic(generate: Callable[..., Any]) -> Any:
    """A function of compiled loops, whose types are not those that its Python code has."""
    return extending.intrinsic(generate)


class Vector(types.Type):
    """The type of a vector in compiled loops."""

    def __init__(self, length: int) -> None:
        self.length = length
        super().__init__(name=f"Vector({length})")


@extending.register_model(Vector)
class _Model(extending.models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, ir.VectorType(FLOAT, kind.length))  # type: ignore[no-untyped-call]


def number_of(rows: Any) -> Any:
    """The type of the numbers in rows."""
    return rows.dtype.typeof("row").dtype


def vector_of(rows: Any) -> Vector:
    """The vectors that rows are loaded as."""
    return Vector(*rows.dtype.typeof("row").shape)


def entry(context: Any, builder: Any, kind: Any, rows: Any, row: Any, column: Any = 0) -> Any:
    """The address of an entry of a row."""
    if kind.layout != "C":
        raise errors.TypingError(f"{kind} has gaps between its rows")
    given = context.make_array(kind)(context, builder, rows)
    place = builder.bitcast(builder.gep(given.data, [row]), ir.PointerType(_STORED[number_of(kind).bitwidth]))
    return builder.gep(place, [column if isinstance(column, ir.Value) else ir.Constant(row.type, column)])


def at(builder: Any, place: Any, length: int) -> Any:
    """The address of so many numbers from an address on."""
    return builder.bitcast(place, ir.PointerType(ir.VectorType(place.type.pointee, length)))


def filled(builder: Any, number: Any, length: int) -> Any:
    """A vector with the same number in all places."""
    first = builder.insert_element(
        ir.Constant(ir.VectorType(number.type, length), ir.Undefined), number, ir.Constant(INT, 0)
    )
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(INT, length), [0] * length))


@intrinsic
def load(typing: Any, rows: Any, row: Any) -> Any:
    """A row as a vector."""
    kind = vector_of(rows)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = at(builder, entry(context, builder, rows, *values), kind.length)
        stored = builder.load(place, align=ALIGNED)
        return builder.fpext(stored, context.get_value_type(kind))

    return kind(rows, types.intp), generate


@intrinsic
def store(typing: Any, vector: Any, rows: Any, row: Any) -> Any:
    """Write a vector to a row."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = at(builder, entry(context, builder, rows, *values[1:]), vector.length)
        builder.store(builder.fptrunc(values[0], place.type.pointee), place, align=ALIGNED)
        return context.get_dummy_value()

    return types.void(vector, rows, types.intp), generate


@intrinsic
def prefetch(typing: Any, rows: Any, row: Any) -> Any:
    """Fetch a row into the cache, and go on without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        flags = [ir.Constant(INT, flag) for flag in (READ, KEEP, DATA)]
        for column in range(0, vector_of(rows).length, 8 * LINE // number_of(rows).bitwidth):
            place = builder.bitcast(
                entry(context, builder, rows, values[0], values[1], column), ir.PointerType(ir.IntType(8))
            )
            kind = ir.FunctionType(ir.VoidType(), [place.type, *(flag.type for flag in flags)])
            builder.call(builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind), [place, *flags])
        return context.get_dummy_value()

    return types.void(rows, types.intp), generate


@intrinsic
def zeros(typing: Any, rows: Any) -> Any:
    """A vector of zeros, as long as rows are."""
    kind = vector_of(rows)
    return kind(rows), lambda context, *_: ir.Constant(context.get_value_type(kind), None)


@intrinsic
def positive(typing: Any, vector: Any) -> Any:
    """A vector with zeros for all that is negative."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        nothing = ir.Constant(values[0].type, None)
        return builder.select(builder.fcmp_ordered(">", values[0], nothing, flags=FAST), values[0], nothing)

    return vector(vector), generate


@intrinsic
def total(typing: Any, vector: Any) -> Any:
    """The sum of the entries of a vector."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind, name = ir.FunctionType(FLOAT, [FLOAT, values[0].type]), f"llvm.vector.reduce.fadd.v{vector.length}f32"
        add = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(add, [ir.Constant(FLOAT, 0.0), *values], fastmath=FAST)

    return types.float32(vector), generate


def _teach(operation: Any, instruction: str) -> None:
    """Teach the compiler an operator between vectors, or a vector and a number."""

    class Typing(AbstractTemplate):
        def generic(self, given: Any, named: Any) -> Any:
            is_known = isinstance(given[0], Vector) and given[1] in (given[0], types.float32)
            return given[0](*given) if is_known else None

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        first, second = values
        if second.type == FLOAT:
            second = filled(builder, second, signature.args[0].length)
        return getattr(builder, instruction)(first, second, flags=FAST)

    infer_global(operation)(Typing)  # type: ignore[no-untyped-call]
    for second in (Vector, types.float32):
        extending.lower_builtin(operation, Vector, second)(generate)  # type: ignore[no-untyped-call]


for _operation, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
    _teach(_operation, _instruction)
