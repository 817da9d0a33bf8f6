"""Ask the processor for a line of memory before it is needed, in a compiled loop."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

READ, KEEP, DATA = 0, 3, 1
"""What LLVM's `prefetch` takes: to read, to stay in all caches, no instructions."""


def _prefetch(typing: Any, array: Any, row: Any, column: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        given = context.make_array(signature.args[0])(context, builder, values[0])
        place = cgutils.get_item_pointer(  # type: ignore[no-untyped-call]
            context, builder, signature.args[0], given, values[1:]
        )
        place = builder.bitcast(place, ir.PointerType(ir.IntType(8)))
        flags = [ir.Constant(ir.IntType(32), flag) for flag in (READ, KEEP, DATA)]
        kind = ir.FunctionType(ir.VoidType(), [place.type, *(flag.type for flag in flags)])
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind), [place, *flags])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


prefetch: Any = intrinsic(_prefetch)
"""`prefetch(array, row, column)` in a compiled loop fetches what is there into the cache, and the loop goes on."""
