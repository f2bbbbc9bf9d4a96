"""``cutlass.experimental.cuda``: tensor maps as kernel parameters."""

from tilewright.experimental.cuda.tensor_map import (
    TensorMap as TensorMap, TensorMapDataFormat as TensorMapDataFormat, TensorMapFloatOOBFill as TensorMapFloatOOBFill,
    TensorMapL2Promotion as TensorMapL2Promotion, TensorMapSwizzle as TensorMapSwizzle,
    create_tensor_map_im2col as create_tensor_map_im2col, create_tensor_map_tiled as create_tensor_map_tiled,
    create_tensor_map_tiled_from_tensor as create_tensor_map_tiled_from_tensor,
    create_tensor_map_tiled_from_view as create_tensor_map_tiled_from_view,
)
from tilewright.experimental.cuda import tensor_map as tensor_map
