"""The GEMM library, written in the language."""

from tilewright.gemm.choice.registry import kernels as kernels
from tilewright.gemm.config import GemmConfig as GemmConfig, Major as Major, Operand as Operand
from tilewright.gemm.epilogue.functions import (
    Bias as Bias, Chain as Chain, EpilogueFunction as EpilogueFunction, LinearCombination as LinearCombination,
    Relu as Relu,
)
from tilewright.gemm.family.compile import cross_compile as cross_compile, stage as stage
from tilewright.gemm.family.entry import KernelEntry as KernelEntry
from tilewright.gemm.host.arguments import GemmUniversalMode as GemmUniversalMode
from tilewright.gemm.operators.gemm import GemmReport as GemmReport, gemm as gemm, launcher as launcher
from tilewright.gemm.host.universal import GemmUniversal as GemmUniversal
from tilewright.gemm.kernel.multistage import MultistageGemm as MultistageGemm
from tilewright.gemm.operators.block_scaled import (
    block_scaled_matmul as block_scaled_matmul, blocked_scales as blocked_scales,
)
from tilewright.gemm.operators.block_scaled_offsets import blocked_group_scales as blocked_group_scales
from tilewright.gemm.operators.combine import combine_rows as combine_rows
from tilewright.gemm.operators.complex import (
    ComplexTransform as ComplexTransform, PlanarComplex as PlanarComplex, complex_matmul as complex_matmul,
)
from tilewright.gemm.operators.grouped import gemm_grouped as gemm_grouped
from tilewright.gemm.operators.matmul import matmul as matmul
from tilewright.gemm.operators.mixed import mixed_matmul as mixed_matmul
from tilewright.gemm.operators.offsets import grouped_matmul as grouped_matmul
from tilewright.gemm.operators.permuted import (
    ColumnMajorInterleaved as ColumnMajorInterleaved, PermutedOperand as PermutedOperand,
    RowMajorInterleaved as RowMajorInterleaved,
)
from tilewright.gemm.operators.prepare_weight import (
    PreparedWeight as PreparedWeight, prepare_weight as prepare_weight,
)
from tilewright.gemm.operators.scaled import scaled_matmul as scaled_matmul
from tilewright.gemm.operators.scaled_mm import scaled_mm as scaled_mm
from tilewright.gemm.operators.scaled_offsets import scaled_grouped_matmul as scaled_grouped_matmul
from tilewright.gemm.operators.sparse import (
    CompressedMatrix as CompressedMatrix, compress_2_4 as compress_2_4, sparse_matmul as sparse_matmul,
)
from tilewright.gemm.operators.warm_up import warm_up as warm_up
from tilewright.gemm.schedule.splitk import SplitK as SplitK
from tilewright.gemm.schedule.streamk import StreamK as StreamK
from tilewright.gemm.tuning.tune import Tuned as Tuned, tune as tune
