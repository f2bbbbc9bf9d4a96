// CUTLASS 2.x kernels in the configuration of its example 47 (Stream-K on Ampere): 128 x 128 x 32 tiles, four warps,
// four stages, row-major fp16 operands; data-parallel and Stream-K, with fp16 accumulators (the example's own) and with
// fp32 ones. bench/gemm_ampere.py times the library made of this file:
//
//   nvcc -std=c++17 -O3 --expt-relaxed-constexpr -shared -Xcompiler -fPIC -gencode arch=compute_90a,code=sm_90a \
//        -I$CUTLASS/include -cudart static -o libcutlass_ampere.so bench/peers/cutlass_ampere.cu
//
// Each function computes D = A * B for A (m, k), B (k, n) and D (m, n), all row-major. `workspace` is zeroed memory,
// at least as large as `workspace_bytes` says. They return a cutlass::Status, 0 for success.

#include <cstdint>
#include <type_traits>

#include "cutlass/cutlass.h"
#include "cutlass/epilogue/thread/linear_combination.h"
#include "cutlass/gemm/device/gemm_universal.h"
#include "cutlass/gemm/threadblock/threadblock_swizzle.h"
#include "cutlass/gemm/threadblock/threadblock_swizzle_streamk.h"

using Element = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using DataParallel = cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>;
using StreamK = cutlass::gemm::threadblock::ThreadblockSwizzleStreamK;

template <class Accumulator, class Decomposition>
using Gemm = cutlass::gemm::device::GemmUniversal<
    Element, Row, Element, Row, Element, Row, Accumulator, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<128, 128, 32>, cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<16, 8, 16>,
    cutlass::epilogue::thread::LinearCombination<Element, 8, Accumulator, Accumulator>, Decomposition, 4, 8, 8>;

template <class Accumulator, class Decomposition>
typename Gemm<Accumulator, Decomposition>::Arguments arguments(int m, int n, int k, void* a, void* b, void* d) {
  using Arguments = typename Gemm<Accumulator, Decomposition>::Arguments;
  int64_t mk = int64_t(m) * k, kn = int64_t(k) * n, mn = int64_t(m) * n;
  auto mode = cutlass::gemm::GemmUniversalMode::kGemm;
  if constexpr (std::is_same_v<Decomposition, StreamK>) {
    return Arguments(mode, {m, n, k}, 1, {Accumulator(1), Accumulator(0)}, a, b, d, d, mk, kn, mn, mn, k, n, n, n, -1);
  } else {
    return Arguments(mode, {m, n, k}, 1, {Accumulator(1), Accumulator(0)}, a, b, d, d, mk, kn, mn, mn, k, n, n, n);
  }
}

template <class Accumulator, class Decomposition>
int run(int m, int n, int k, void* a, void* b, void* d, void* workspace, void* stream) {
  Gemm<Accumulator, Decomposition> gemm;
  auto problem = arguments<Accumulator, Decomposition>(m, n, k, a, b, d);
  auto status = gemm.initialize(problem, workspace, static_cast<cudaStream_t>(stream));
  return int(status == cutlass::Status::kSuccess ? gemm.run(static_cast<cudaStream_t>(stream)) : status);
}

#define KERNEL(NAME, ACCUMULATOR, DECOMPOSITION)                                                            \
  extern "C" int NAME(int m, int n, int k, void* a, void* b, void* d, void* workspace, void* stream) {      \
    return run<ACCUMULATOR, DECOMPOSITION>(m, n, k, a, b, d, workspace, stream);                            \
  }                                                                                                         \
  extern "C" int64_t NAME##_workspace_bytes(int m, int n, int k) {                                          \
    auto problem = arguments<ACCUMULATOR, DECOMPOSITION>(m, n, k, nullptr, nullptr, nullptr);               \
    return int64_t(Gemm<ACCUMULATOR, DECOMPOSITION>::get_workspace_size(problem));                          \
  }

KERNEL(cutlass_f32_data_parallel, float, DataParallel)
KERNEL(cutlass_f32_stream_k, float, StreamK)
KERNEL(cutlass_f16_data_parallel, Element, DataParallel)
KERNEL(cutlass_f16_stream_k, Element, StreamK)
