// CUDA's vocabulary for a host compiler: one thread at a time, enough to run the arithmetic of a printed kernel.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#define __device__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
struct Index { unsigned x, y, z; };
extern thread_local Index threadIdx, blockIdx, blockDim, gridDim;
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
template <class T> inline std::enable_if_t<std::is_integral_v<T>, T> min(T a, T b) { return b < a ? b : a; }
template <class T> inline std::enable_if_t<std::is_integral_v<T>, T> max(T a, T b) { return a < b ? b : a; }
inline int __double2int_rz(double x) {
  return std::isnan(x) ? INT32_MIN : x <= INT32_MIN ? INT32_MIN : x >= INT32_MAX ? INT32_MAX : int(x);
}
inline int __float2int_rz(float x) { return std::isnan(x) ? 0 : __double2int_rz(x); }
using std::abs;
using std::isinf;
using std::isnan;
#define __expf expf
#define __logf logf
