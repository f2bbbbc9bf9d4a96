"""``cute._tvm_ffi_args_spec_converter``: a name that libraries replace to have Constexpr fields of a NamedTuple left
out of a compiled function's arguments. Here they are left out anyway: nothing calls what is put in its place."""

from __future__ import annotations

from typing import Any

from tilewright.errors import StagingError

__all__: list[str] = []


def _convert_single_arg(arg: Any, arg_name: str, arg_type: Any, ctx: Any) -> Any:
    raise StagingError("the arguments of compiled functions are read by Tilewright itself; nothing converts them here")
