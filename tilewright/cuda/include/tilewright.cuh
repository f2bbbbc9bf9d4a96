// tilewright.cuh: what the printed kernels stand on. Vectors, their conversion, wide accesses, registers of fragments.
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

#include "access.cuh"
#include "fp8.cuh"
#include "numbers.cuh"
#include "threads.cuh"

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
using tensor_map = parameter<uint64_t, 16>;

template <class T, int N> __device__ __forceinline__ vec<T, N> splat(T value) {
  vec<T, N> v;
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = value;
  return v;
}

// ---- whole vectors become 16-bit or 8-bit floats, two numbers an instruction where there is one -------------------------

template <class To, class From, int N> __device__ __forceinline__ vec<To, N> narrow(const vec<From, N>& from) {
  vec<To, N> to;
#pragma unroll
  for (int i = 0; i + 1 < N; i += 2) convert_two(&to[i], float(from[i]), float(from[i + 1]));
  if (N % 2) to[N - 1] = tw::to<To>(float(from[N - 1]));
  return to;
}

// 8-bit floats become f16, exactly.
template <class From, int N> __device__ __forceinline__ vec<f16, N> widen(const vec<From, N>& from) {
  vec<f16, N> to;
#pragma unroll
  for (int i = 0; i + 1 < N; i += 2) two(to[i]) = widen_two(from[i], from[i + 1]);
  if (N % 2) to[N - 1] = tw::to<f16>(float(from[N - 1]));
  return to;
}

// ---- numbers of fewer than 8 bits, one a byte in vectors, and their bytes without gaps ---------------------------------

template <int Width, class T, int N> __device__ __forceinline__ vec<uint8_t, N * Width / 8> pack(const vec<T, N>& from) {
  uint32_t words[(N * Width + 31) / 32] = {};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int at = i * Width, shift = at % 32;
    words[at / 32] |= uint32_t(from[i].bits) << shift;
    if (shift + Width > 32) words[at / 32 + 1] |= uint32_t(from[i].bits) >> (32 - shift);
  }
  vec<uint8_t, N * Width / 8> to;
  memcpy(&to, words, sizeof(to));
  return to;
}

template <int Width, class T, int Bytes> __device__ __forceinline__ vec<T, Bytes * 8 / Width> unpack(const vec<uint8_t, Bytes>& from) {
  uint32_t words[(Bytes + 3) / 4] = {};
  memcpy(words, &from, Bytes);
  vec<T, Bytes * 8 / Width> to;
#pragma unroll
  for (int i = 0; i < Bytes * 8 / Width; ++i) {
    const int at = i * Width, shift = at % 32;
    uint32_t bits = words[at / 32] >> shift;
    if (shift + Width > 32) bits |= words[at / 32 + 1] << (32 - shift);
    to[i].bits = uint8_t(bits & ((1 << Width) - 1));
  }
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

}  // namespace tw
