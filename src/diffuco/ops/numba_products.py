"""Products of rows and matrices in compiled loops: of bytes where the processor has them, else of floats.

AVX-512 with VNNI multiplies bytes and adds up four products in one go, four times as many per instruction as of floats.
So a row that is multiplied is kept as bytes with a scale of its own, rounded to a part in 127 of its largest number.
The columns of a matrix are rounded in the same way. What that does to samples is in docs/performance.md.

Such rows are of `factor_type` and written by `keep`, matrices come from `packed`. On other processors all are floats,
and the loops that use them are the same.

Legend: W numbers of a row, R rows.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numpy.typing import NDArray

from diffuco.ops.numba_vectors import (
    ALIGNED,
    FAST,
    FLOAT,
    INT,
    LANES,
    at,
    cgutils,
    entry,
    filled,
    intrinsic,
    number_of,
    row_type,
    vector_of,
)

BLOCK = 6
"""Rows that `add_product` takes at a time: with 16 columns their sums fit the registers of all processors."""
GROUP = 4
"""Bytes whose products are added up by one instruction."""
MOST, MIDDLE = 127, 128
"""The largest number that a byte stands for, and the byte of 0 in rows: there, bytes have no sign."""
LEAST = 1e-30
"""The least that may be the largest number of a row or column."""
LEAST_WIDTH = 64
"""Shorter rows gain a tenth or nothing, because rounding them takes as long."""
MULTIPLY = "llvm.x86.avx512.vpdpbusd.512"

_BYTE = ir.IntType(8)


def has_bytes(width: int) -> bool:
    """Whether rows of that length are multiplied as bytes."""
    return width >= LEAST_WIDTH and _has("avx512vnni")


def _has(feature: str) -> bool:
    return f"+{feature}" in cpu_target.target_context.codegen().magic_tuple()[2].split(",")


def factor_type(length: int) -> np.dtype[Any]:
    """The type of rows that are multiplied."""
    is_bytes = has_bytes(length)
    return np.dtype([("row", np.uint8, (length,)), ("scale", np.float32)]) if is_bytes else row_type(length)


def packed(matrices: NDArray[np.float32]) -> NDArray[Any]:
    """Matrices [..., W, W] as `add_product` takes them: lines [..., W] of floats, or [..., W / GROUP + 2] of bytes.

    The last two lines are the scales of the columns and, as bytes of rows begin at 0, what to begin sums with.
    """
    lead, width = matrices.shape[:-2], matrices.shape[-1]
    if not has_bytes(width):
        return np.ascontiguousarray(matrices).view(row_type(width))[..., 0]
    scale = np.maximum(np.abs(matrices).max(-2), LEAST).astype(np.float32) / np.float32(MOST)
    rounded = np.rint(matrices / scale[..., None, :]).astype(np.int8)
    lines = rounded.reshape(*lead, -1, GROUP, width).swapaxes(-1, -2).reshape(*lead, -1, GROUP * width)
    begin = -MIDDLE * rounded.sum(-2, dtype=np.int32)
    ends = [np.ascontiguousarray(end).view(np.int8)[..., None, :] for end in (scale, begin)]
    return np.concatenate([lines, *ends], axis=-2).view(row_type(GROUP * width, np.int8))[..., 0]


@intrinsic
def keep(typing: Any, vector: Any, rows: Any, row: Any) -> Any:
    """Write a vector to a row that is multiplied later."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        value, *where = values
        place = at(builder, entry(context, builder, rows, *where), vector.length)
        if number_of(rows) != types.uint8:
            builder.store(value, place, align=ALIGNED)
            return context.get_dummy_value()
        largest = _largest(builder, value)
        parts = builder.fdiv(ir.Constant(FLOAT, float(MOST)), largest, flags=FAST)
        scaled = builder.fmul(value, filled(builder, parts, vector.length), flags=FAST)
        half_up = filled(builder, ir.Constant(FLOAT, MIDDLE + 0.5), vector.length)
        whole = builder.fptosi(builder.fadd(scaled, half_up, flags=FAST), ir.VectorType(INT, vector.length))
        builder.store(builder.trunc(whole, ir.VectorType(_BYTE, vector.length)), place, align=1)
        scale = builder.fmul(largest, ir.Constant(FLOAT, 1 / MOST), flags=FAST)
        builder.store(scale, _scale_of(context, builder, rows, *where), align=1)
        return context.get_dummy_value()

    return types.void(vector, rows, types.intp), generate


@intrinsic
def add_product(typing: Any, sums: Any, given: Any, matrix: Any, row: Any) -> Any:
    """Add the product of rows `given` [R, W] and a packed matrix to `sums` [R, W], for `BLOCK` rows from `row` on."""
    columns, kinds = list(range(0, vector_of(sums).length, LANES)), (sums, given, matrix)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        # With fewer and shorter registers than those of AVX-512, the sums of all columns would not fit.
        for part in [columns] if _has("avx512f") else [[first] for first in columns]:
            _add_columns(context, builder, kinds, values, part)
        return context.get_dummy_value()

    return types.void(sums, given, matrix, types.intp), generate


def _add_columns(context: Any, builder: Any, kinds: Any, values: Any, columns: list[int]) -> None:
    """Write the code of `add_product` for some columns, `LANES` from each of these on."""
    (of_sums, of_given, of_matrix), (sums, given, matrix, start) = kinds, values
    is_bytes, width = number_of(of_given) == types.uint8, vector_of(of_given).length
    number, at_once = (INT, GROUP) if is_bytes else (FLOAT, 1)
    rows = [builder.add(start, ir.Constant(start.type, row)) for row in range(BLOCK)]
    lines, scales, begins = (ir.Constant(start.type, width // at_once + end) for end in (0, 0, 1))

    def line(index: Any, first: int, kind: Any) -> Any:
        place = entry(context, builder, of_matrix, matrix, index, at_once * first)
        return builder.load(builder.bitcast(place, ir.PointerType(ir.VectorType(kind, LANES))), align=ALIGNED)

    places = {
        (row, first): at(builder, entry(context, builder, of_sums, sums, row, first), LANES)
        for row in rows
        for first in columns
    }
    begin = {key: line(begins, key[1], INT) if is_bytes else builder.load(places[key], align=ALIGNED) for key in places}
    held = {key: cgutils.alloca_once_value(builder, value) for key, value in begin.items()}
    with cgutils.for_range(builder, lines) as loop:
        of_columns = {first: line(loop.index, first, number) for first in columns}
        for row in rows:
            index = builder.mul(loop.index, ir.Constant(start.type, at_once))
            place = builder.bitcast(entry(context, builder, of_given, given, row, index), ir.PointerType(number))
            factor = filled(builder, builder.load(place, align=1), LANES)
            for first in columns:
                own = held[row, first]
                builder.store(_multiplied(builder, builder.load(own), factor, of_columns[first]), own)
    for row, first in places:
        value = builder.load(held[row, first])
        if is_bytes:
            scale = filled(builder, builder.load(_scale_of(context, builder, of_given, given, row), align=1), LANES)
            scale = builder.fmul(scale, line(scales, first, FLOAT), flags=FAST)
            value = builder.fmul(builder.sitofp(value, scale.type), scale, flags=FAST)
            value = builder.fadd(builder.load(places[row, first], align=ALIGNED), value, flags=FAST)
        builder.store(value, places[row, first], align=ALIGNED)


def _multiplied(builder: Any, sums: Any, factor: Any, line: Any) -> Any:
    """Sums plus products."""
    if factor.type.element == FLOAT:
        return builder.fadd(sums, builder.fmul(factor, line, flags=FAST), flags=FAST)
    kind = ir.FunctionType(sums.type, [sums.type] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, MULTIPLY), [sums, factor, line])


def _scale_of(context: Any, builder: Any, kind: Any, rows: Any, row: Any) -> Any:
    """The address of the scale of a row, which comes after its bytes."""
    place = entry(context, builder, kind, rows, row, vector_of(kind).length)
    return builder.bitcast(place, ir.PointerType(FLOAT))


def _largest(builder: Any, vector: Any) -> Any:
    """The largest absolute number of a vector."""
    size, is_negative = vector.type.count, builder.fcmp_ordered("<", vector, ir.Constant(vector.type, None), flags=FAST)
    absolute = builder.select(is_negative, builder.fneg(vector, flags=FAST), vector)
    kind = ir.FunctionType(FLOAT, [vector.type])
    most = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fmax.v{size}f32")
    found, least = builder.call(most, [absolute], fastmath=FAST), ir.Constant(FLOAT, LEAST)
    return builder.select(builder.fcmp_ordered(">", found, least, flags=FAST), found, least)
