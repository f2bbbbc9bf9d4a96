// fp8.cuh: conversions of the 8-bit floats in integer arithmetic, for architectures without instructions for them
// (before sm_89). Round to nearest even; what does not fit saturates to the largest finite number; NaN stays NaN.
#pragma once

namespace tw {

template <class To, class From> __device__ __forceinline__ To bitcast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bitcast keeps the number of bytes");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

// `Mantissa` bits of mantissa and exponent bias `Bias`; `Largest` are the bits of the largest finite number.
template <int Mantissa, int Bias, int Largest, int NaN> __device__ __forceinline__ uint8_t fp8_bits(float x) {
  const uint32_t bits = bitcast<uint32_t>(x);
  const uint32_t sign = (bits >> 24) & 0x80, magnitude = bits & 0x7fffffff;
  const int shift = 23 - Mantissa;
  const uint32_t rebias = uint32_t(127 - Bias) << Mantissa;
  if (magnitude > 0x7f800000) return uint8_t(sign | NaN);
  if (magnitude >= (uint32_t(Largest) + rebias) << shift) return uint8_t(sign | Largest);
  if (magnitude < uint32_t(128 - Bias) << 23) {  // subnormal: let a float addition round to a multiple of the smallest one
    const uint32_t one = uint32_t(127 + 23 + 1 - Bias - Mantissa) << 23;
    return uint8_t(sign | (bitcast<uint32_t>(bitcast<float>(magnitude) + bitcast<float>(one)) - one));
  }
  const uint32_t rounded = magnitude + ((magnitude >> shift) & 1) + (1u << (shift - 1)) - 1;
  return uint8_t(sign | ((rounded >> shift) - rebias));
}

template <int Mantissa, int Bias, int Infinity, int NaN> __device__ __forceinline__ float fp8_value(uint8_t bits) {
  const uint32_t magnitude = bits & 0x7f;
  const float scale = bitcast<float>(uint32_t(254 - Bias) << 23);
  const float value = bitcast<float>(magnitude << (23 - Mantissa)) * scale;  // exact, subnormals too
  uint32_t result = bitcast<uint32_t>(value);
  if (magnitude == Infinity) result = 0x7f800000;
  if (magnitude >= NaN) result = 0x7fffffff;
  return bitcast<float>(result | uint32_t(bits & 0x80) << 24);
}

// Floats of `Width` < 8 bits, in the low bits of a byte. They have neither infinity nor NaN: the largest stands for a NaN.
template <int Width, int Mantissa, int Bias> __device__ __forceinline__ uint8_t small_bits(float x) {
  constexpr int largest = (1 << (Width - 1)) - 1;
  const uint8_t bits = fp8_bits<Mantissa, Bias, largest, largest>(x);
  return x != x ? largest : uint8_t((bits & largest) | bits >> 7 << (Width - 1));
}

__device__ __forceinline__ uint8_t e4m3_bits(float x) { return fp8_bits<3, 7, 0x7e, 0x7f>(x); }
__device__ __forceinline__ uint8_t e5m2_bits(float x) { return fp8_bits<2, 15, 0x7b, 0x7f>(x); }
__device__ __forceinline__ float e4m3_value(uint8_t bits) { return fp8_value<3, 7, 0x80, 0x7f>(bits); }
__device__ __forceinline__ float e5m2_value(uint8_t bits) { return fp8_value<2, 15, 0x7c, 0x7d>(bits); }
// Powers of two: the least that is not below the number, from 2^-127 to 2^127. 255 for NaNs and numbers below zero.
__device__ __forceinline__ uint8_t e8m0_bits(float x) {
  const uint32_t u = bitcast<uint32_t>(x);
  if (!(x >= 0.0f)) return 255;
  if (x == 0.0f || u <= 0x400000u) return 0;  // up to 2^-127
  const uint32_t exponent = (u + 0x7fffffu) >> 23;  // a fraction carries into it
  return uint8_t(exponent < 254u ? exponent : 254u);
}
__device__ __forceinline__ float e8m0_value(uint8_t bits) {
  return bitcast<float>(bits == 255 ? 0x7fffffffu : bits ? uint32_t(bits) << 23 : 0x400000u);
}

}  // namespace tw
