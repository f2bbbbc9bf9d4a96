"""``cutlass.base_dsl.ast_helpers``: the loops and conditions of the language."""

from tilewright import (
    const_expr as const_expr, dynamic_expr as dynamic_expr, range as range, range_constexpr as range_constexpr,
    range_dynamic as range_dynamic,
)
from tilewright.lang.staging.generate import executor as executor
