// tilewright.cuh: what the printed kernels stand on. Vectors, wide accesses, registers of fragments, thread indices.
#pragma once

#ifdef __CUDACC_RTC__
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
#else
#include <cstdint>
#include <cstring>
#endif

#include "fp8.cuh"
#include "numbers.cuh"

namespace tw {

// ---- vectors ---------------------------------------------------------------------------------------------------------

__device__ constexpr int alignment(int bytes) { return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1; }

// n numbers of one thread, in registers as long as every index is a constant after unrolling.
template <class T, int N> struct alignas(alignment(N * int(sizeof(T)))) vec {
  T data[N];
  __device__ __forceinline__ T& operator[](int i) { return data[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return data[i]; }
};

// Two neighbouring 16-bit floats as one 32-bit register; the first has an even index.
template <class T> __device__ __forceinline__ typename pair_of<T>::type& two(T& first) {
  return reinterpret_cast<typename pair_of<T>::type&>(first);
}
template <class T> __device__ __forceinline__ const typename pair_of<T>::type& two(const T& first) {
  return reinterpret_cast<const typename pair_of<T>::type&>(first);
}

// A parameter that instructions read by its address (a tensor map): print it as `const __grid_constant__`.
template <class T, int N> struct alignas(64) parameter : vec<T, N> {};

template <class T, int N> __device__ __forceinline__ vec<T, N> splat(T value) {
  vec<T, N> v;
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = value;
  return v;
}

// ---- conversion of whole vectors, two numbers an instruction where there is one --------------------------------------

__device__ __forceinline__ void convert_two(f16* to, float a, float b) {
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(*reinterpret_cast<uint32_t*>(to)) : "f"(b), "f"(a));
}
__device__ __forceinline__ void convert_two(bf16* to, float a, float b) {
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(*reinterpret_cast<uint32_t*>(to)) : "f"(b), "f"(a));
}
__device__ __forceinline__ void convert_two(e4m3* to, float a, float b) {
#if __CUDA_ARCH__ >= 890
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(*reinterpret_cast<uint16_t*>(to)) : "f"(b), "f"(a));
#else
  to[0] = tw::to<e4m3>(a), to[1] = tw::to<e4m3>(b);
#endif
}
__device__ __forceinline__ void convert_two(e5m2* to, float a, float b) {
#if __CUDA_ARCH__ >= 890
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(*reinterpret_cast<uint16_t*>(to)) : "f"(b), "f"(a));
#else
  to[0] = tw::to<e5m2>(a), to[1] = tw::to<e5m2>(b);
#endif
}

// Numbers become 16-bit or 8-bit floats.
template <class To, class From, int N> __device__ __forceinline__ vec<To, N> narrow(const vec<From, N>& from) {
  vec<To, N> to;
#pragma unroll
  for (int i = 0; i + 1 < N; i += 2) convert_two(&to[i], float(from[i]), float(from[i + 1]));
  if (N % 2) to[N - 1] = tw::to<To>(float(from[N - 1]));
  return to;
}

// 8-bit floats become f16 (exactly), two at a time.
__device__ __forceinline__ f16x2 widen_two(e4m3 a, e4m3 b) {
#if __CUDA_ARCH__ >= 890
  f16x2 r;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(r.bits) : "h"(uint16_t(a.bits | b.bits << 8)));
  return r;
#else
  return pair(to<f16>(e4m3_value(a.bits)), to<f16>(e4m3_value(b.bits)));
#endif
}
__device__ __forceinline__ f16x2 widen_two(e5m2 a, e5m2 b) { return f16x2{uint32_t(a.bits) << 8 | uint32_t(b.bits) << 24}; }
template <class From, int N> __device__ __forceinline__ vec<f16, N> widen(const vec<From, N>& from) {
  vec<f16, N> to;
#pragma unroll
  for (int i = 0; i + 1 < N; i += 2) two(to[i]) = widen_two(from[i], from[i + 1]);
  if (N % 2) to[N - 1] = f16{uint16_t(widen_two(from[N - 1], from[N - 1]).bits)};
  return to;
}

// ---- memory: N contiguous numbers in accesses of `Bytes` bytes (what the pointer's alignment allows) -----------------

template <int Bytes> struct word;
template <> struct word<1> { using type = uint8_t; };
template <> struct word<2> { using type = uint16_t; };
template <> struct word<4> { using type = uint32_t; };
template <> struct word<8> { using type = uint2; };
template <> struct word<16> { using type = uint4; };

template <int N, int Bytes, class T> __device__ __forceinline__ vec<T, N> load(const T* from) {
  using Word = typename word<Bytes>::type;
  vec<T, N> v;
#pragma unroll
  for (int i = 0; i < N * int(sizeof(T)) / Bytes; ++i) reinterpret_cast<Word*>(v.data)[i] = reinterpret_cast<const Word*>(from)[i];
  return v;
}
template <int Bytes, class T, int N> __device__ __forceinline__ void store(T* to, const vec<T, N>& v) {
  using Word = typename word<Bytes>::type;
#pragma unroll
  for (int i = 0; i < N * int(sizeof(T)) / Bytes; ++i) reinterpret_cast<Word*>(to)[i] = reinterpret_cast<const Word*>(v.data)[i];
}

// The 16-, 32- or 64-bit register that begins at an element of a fragment.
template <class T> __device__ __forceinline__ uint16_t& reg16(T& first) { return reinterpret_cast<uint16_t&>(first); }
template <class T> __device__ __forceinline__ uint32_t& reg32(T& first) { return reinterpret_cast<uint32_t&>(first); }
template <class T> __device__ __forceinline__ uint64_t& reg64(T& first) { return reinterpret_cast<uint64_t&>(first); }

// Addresses in the shared-memory window are 32 bits wide.
__device__ __forceinline__ uint32_t shared_address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

// ---- who am I --------------------------------------------------------------------------------------------------------

__device__ __forceinline__ int lane() { int r; asm("mov.u32 %0, %%laneid;" : "=r"(r)); return r; }
__device__ __forceinline__ int warp() { return int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) >> 5; }
__device__ __forceinline__ int sm() { int r; asm volatile("mov.u32 %0, %%smid;" : "=r"(r)); return r; }
__device__ __forceinline__ int clock() { int r; asm volatile("mov.u32 %0, %%clock;" : "=r"(r)); return r; }

// Before sm_90 every block is a cluster of its own.
#if __CUDA_ARCH__ >= 900
#define TW_CLUSTER(NAME, REGISTER, ALONE) \
  __device__ __forceinline__ int NAME() { int r; asm("mov.u32 %0, %%" REGISTER ";" : "=r"(r)); return r; }
#else
#define TW_CLUSTER(NAME, REGISTER, ALONE) \
  __device__ __forceinline__ int NAME() { return ALONE; }
#endif
TW_CLUSTER(clusterid_x, "clusterid.x", int(blockIdx.x))
TW_CLUSTER(clusterid_y, "clusterid.y", int(blockIdx.y))
TW_CLUSTER(clusterid_z, "clusterid.z", int(blockIdx.z))
TW_CLUSTER(nclusterid_x, "nclusterid.x", int(gridDim.x))
TW_CLUSTER(nclusterid_y, "nclusterid.y", int(gridDim.y))
TW_CLUSTER(nclusterid_z, "nclusterid.z", int(gridDim.z))
TW_CLUSTER(cluster_ctaid_x, "cluster_ctaid.x", 0)
TW_CLUSTER(cluster_ctaid_y, "cluster_ctaid.y", 0)
TW_CLUSTER(cluster_ctaid_z, "cluster_ctaid.z", 0)
TW_CLUSTER(cluster_nctaid_x, "cluster_nctaid.x", 1)
TW_CLUSTER(cluster_nctaid_y, "cluster_nctaid.y", 1)
TW_CLUSTER(cluster_nctaid_z, "cluster_nctaid.z", 1)
TW_CLUSTER(cluster_ctarank, "cluster_ctarank", 0)
#undef TW_CLUSTER

}  // namespace tw
