// numbers.cuh: the 16-bit and 8-bit floats, pairs of them, conversions, and the few functions that CUDA C++ does not have.
// Written anew with inline PTX instead of cuda_fp16.h and its kin: NVRTC reads this in milliseconds.
#pragma once

namespace tw {

// ---- f16 and bf16: one number ------------------------------------------------------------------------------------

struct f16 {
  uint16_t bits;
  __device__ __forceinline__ explicit operator float() const {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(bits));
    return r;
  }
};

struct bf16 {
  uint16_t bits;
  __device__ __forceinline__ explicit operator float() const { return bitcast<float>(uint32_t(bits) << 16); }
};

struct e4m3 {
  uint8_t bits;
  __device__ __forceinline__ explicit operator float() const {
#if __CUDA_ARCH__ >= 890
    uint32_t pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(uint16_t(bits)));
    return float(f16{uint16_t(pair)});
#else
    return e4m3_value(bits);
#endif
  }
};

struct e5m2 {
  uint8_t bits;
  __device__ __forceinline__ explicit operator float() const { return float(f16{uint16_t(bits << 8)}); }
};

struct e8m0 {
  uint8_t bits;
  __device__ __forceinline__ explicit operator float() const { return e8m0_value(bits); }
};

// Fewer than 8 bits, in the low bits of a byte. The magnitude is put where f16 has the low bits of its exponent and the high
// ones of its fraction; the product moves the exponent's bias. It is exact, of subnormal numbers too.
template <int Width, int Fraction> __device__ __forceinline__ uint32_t f16_place(uint8_t bits) {
  return (bits & ((1 << (Width - 1)) - 1)) << (10 - Fraction) | (bits >> (Width - 1) & 1) << 15;
}
#define TW_SMALL(T, WIDTH, FRACTION, BIAS)                                                             \
  struct T {                                                                                           \
    uint8_t bits;                                                                                      \
    __device__ __forceinline__ explicit operator float() const {                                       \
      return float(f16{uint16_t(f16_place<WIDTH, FRACTION>(bits))}) * float(1 << (15 - BIAS));         \
    }                                                                                                  \
  };
TW_SMALL(e2m1, 4, 1, 1)
TW_SMALL(e2m3, 6, 3, 1)
TW_SMALL(e3m2, 6, 2, 3)
#undef TW_SMALL

// Integers of 4 bits, in the low bits of a byte. Integers become one of them by their low bits; floats, truncated, the nearest.
#define TW_NIBBLE(T, SIGN)                                                                             \
  struct T {                                                                                           \
    uint8_t bits;                                                                                      \
    __device__ __forceinline__ explicit operator int() const { return int((bits & 15) ^ SIGN) - SIGN; } \
    __device__ __forceinline__ explicit operator float() const { return float(int(*this)); }           \
  };
TW_NIBBLE(i4, 8)
TW_NIBBLE(u4, 0)
#undef TW_NIBBLE
template <class T, class Integer> __device__ __forceinline__ T low_bits(Integer x) { return T{uint8_t(x & 15)}; }

// to<T>(x): conversion to the numbers above, rounded to nearest even; to 8 bits it saturates to the largest finite one.
template <class T> __device__ __forceinline__ T to(float x);
template <> __device__ __forceinline__ f16 to<f16>(float x) {
  f16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
}
template <> __device__ __forceinline__ bf16 to<bf16>(float x) {
  bf16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
}
template <> __device__ __forceinline__ e4m3 to<e4m3>(float x) {
#if __CUDA_ARCH__ >= 890
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return e4m3{uint8_t(pair)};
#else
  return e4m3{e4m3_bits(x)};
#endif
}
template <> __device__ __forceinline__ e5m2 to<e5m2>(float x) {
#if __CUDA_ARCH__ >= 890
  uint16_t pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return e5m2{uint8_t(pair)};
#else
  return e5m2{e5m2_bits(x)};
#endif
}
template <> __device__ __forceinline__ e8m0 to<e8m0>(float x) { return e8m0{e8m0_bits(x)}; }
template <> __device__ __forceinline__ e2m1 to<e2m1>(float x) { return e2m1{small_bits<4, 1, 1>(x)}; }
template <> __device__ __forceinline__ e2m3 to<e2m3>(float x) { return e2m3{small_bits<6, 3, 1>(x)}; }
template <> __device__ __forceinline__ e3m2 to<e3m2>(float x) { return e3m2{small_bits<6, 2, 3>(x)}; }
template <class T> __device__ __forceinline__ T to(double x) { return to<T>(float(x)); }
#define TW_NIBBLE(T, LOW, HIGH)                                                                        \
  template <> __device__ __forceinline__ T to<T>(float x) { return low_bits<T>(::min(::max(__float2int_rz(x), LOW), HIGH)); }   \
  template <> __device__ __forceinline__ T to<T>(double x) { return low_bits<T>(::min(::max(__double2int_rz(x), LOW), HIGH)); }
TW_NIBBLE(i4, -8, 7)
TW_NIBBLE(u4, 0, 15)
#undef TW_NIBBLE
template <> __device__ __forceinline__ f16 to<f16>(double x) {
  f16 r;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(r.bits) : "d"(x));
  return r;
}

__device__ __forceinline__ float to_tf32(float x) {  // nearest, ties away from zero, as the hardware offers it
  uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return bitcast<float>(r);
}

// ---- arithmetic of f16 and bf16, single and in pairs; each operation rounds once -----------------------------------

struct f16x2 { uint32_t bits; };
struct bf16x2 { uint32_t bits; };

template <class T> struct pair_of;
template <> struct pair_of<f16> { using type = f16x2; };
template <> struct pair_of<bf16> { using type = bf16x2; };

// bf16 has add and mul only from sm_90 on; a*1+b and a*b-0 round in the same way.
#define TW_ARITHMETIC(T, R, SUFFIX, ONE, MINUS_ONE, MINUS_ZERO, SIGN)                                                    \
  __device__ __forceinline__ T fma(T a, T b, T c) {                                                                      \
    T r;                                                                                                                 \
    asm("fma.rn." SUFFIX " %0, %1, %2, %3;" : "=" R(r.bits) : R(a.bits), R(b.bits), R(c.bits));                          \
    return r;                                                                                                            \
  }                                                                                                                      \
  __device__ __forceinline__ T operator+(T a, T b) { return fma(a, T{ONE}, b); }                                         \
  __device__ __forceinline__ T operator-(T a, T b) { return fma(b, T{MINUS_ONE}, a); }                                   \
  __device__ __forceinline__ T operator*(T a, T b) { return fma(a, b, T{MINUS_ZERO}); }                                  \
  __device__ __forceinline__ T operator-(T a) { return T{decltype(a.bits)(a.bits ^ SIGN)}; }                             \
  __device__ __forceinline__ T abs(T a) { return T{decltype(a.bits)(a.bits & ~SIGN)}; }                                  \
  __device__ __forceinline__ T min(T a, T b) {                                                                           \
    T r;                                                                                                                 \
    asm("min." SUFFIX " %0, %1, %2;" : "=" R(r.bits) : R(a.bits), R(b.bits));                                            \
    return r;                                                                                                            \
  }                                                                                                                      \
  __device__ __forceinline__ T max(T a, T b) {                                                                           \
    T r;                                                                                                                 \
    asm("max." SUFFIX " %0, %1, %2;" : "=" R(r.bits) : R(a.bits), R(b.bits));                                            \
    return r;                                                                                                            \
  }
TW_ARITHMETIC(f16, "h", "f16", 0x3c00, 0xbc00, 0x8000, 0x8000)
TW_ARITHMETIC(bf16, "h", "bf16", 0x3f80, 0xbf80, 0x8000, 0x8000)
TW_ARITHMETIC(f16x2, "r", "f16x2", 0x3c003c00, 0xbc00bc00, 0x80008000, 0x80008000)
TW_ARITHMETIC(bf16x2, "r", "bf16x2", 0x3f803f80, 0xbf80bf80, 0x80008000, 0x80008000)
#undef TW_ARITHMETIC

// Division is exact through float: a float has more than twice the digits.
__device__ __forceinline__ f16 operator/(f16 a, f16 b) { return to<f16>(float(a) / float(b)); }
__device__ __forceinline__ bf16 operator/(bf16 a, bf16 b) { return to<bf16>(float(a) / float(b)); }

__device__ __forceinline__ f16x2 pair(f16 a, f16 b) { return f16x2{a.bits | uint32_t(b.bits) << 16}; }
__device__ __forceinline__ bf16x2 pair(bf16 a, bf16 b) { return bf16x2{a.bits | uint32_t(b.bits) << 16}; }

// ---- two conversions an instruction -----------------------------------------------------------------------------------

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

#define TW_SMALL(T)                                                                                    \
  __device__ __forceinline__ void convert_two(T* to, float a, float b) {                               \
    to[0] = tw::to<T>(a), to[1] = tw::to<T>(b);                                                        \
  }
TW_SMALL(e8m0)
TW_SMALL(e2m1)
TW_SMALL(e2m3)
TW_SMALL(e3m2)
TW_SMALL(i4)
TW_SMALL(u4)
#undef TW_SMALL

// -x, in a form that ptxas does not recognise: on sm_90, CUDA 13.0 merges min(a, min(b, -c)) (and max) into one
// instruction and loses the sign of c.
__device__ __forceinline__ int negate(int x) {
#if __CUDA_ARCH__ >= 900
  asm("{.reg .b32 inverted; not.b32 inverted, %0; add.s32 %0, inverted, 1;}" : "+r"(x));
  return x;
#else
  return int(0u - uint32_t(x));
#endif
}
// The low 16 bits of x. The empty statement hides from NVVM how x was computed: in 16 bits it makes neg.s16 of -a, 0 - a,
// a * -1 and ~a + 1, which CUDA 13.0's ptxas merges into a widening that follows, and -(-32768) becomes 32768.
template <class T> __device__ __forceinline__ T low_half(int x) {
  asm("" : "+r"(x));
  return T(x);
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
#define TW_SMALL(T, WIDTH, FRACTION, SCALE)                                                            \
  __device__ __forceinline__ f16x2 widen_two(T a, T b) {                                               \
    const uint32_t low = f16_place<WIDTH, FRACTION>(a.bits), high = f16_place<WIDTH, FRACTION>(b.bits); \
    return f16x2{low | high << 16} * f16x2{SCALE};                                                     \
  }
TW_SMALL(e2m1, 4, 1, 0x74007400)  // 2^14 = 2^(15 - 1), twice
TW_SMALL(e2m3, 6, 3, 0x74007400)
TW_SMALL(e3m2, 6, 2, 0x6c006c00)  // 2^12 = 2^(15 - 3)
#undef TW_SMALL
// 0x6400 is 1024 in f16, and its low bits count ones; those of i4 count from 8 below.
__device__ __forceinline__ f16x2 widen_two(u4 a, u4 b) {
  return f16x2{0x64006400 | a.bits | uint32_t(b.bits) << 16} - f16x2{0x64006400};
}
__device__ __forceinline__ f16x2 widen_two(i4 a, i4 b) {
  return f16x2{0x64006400 | (a.bits ^ 8) | uint32_t(b.bits ^ 8) << 16} - f16x2{0x64086408};
}

// ---- what C++ lacks --------------------------------------------------------------------------------------------------

// Integers that wrap around, and shifts that shift everything out: C++ leaves them undefined, PTX does not.
template <int Bytes> struct unsigned_of { using type = uint32_t; };
template <> struct unsigned_of<8> { using type = uint64_t; };
#ifdef __CUDACC_RTC_INT128__
using int128 = __int128;
using uint128 = unsigned __int128;
template <> struct unsigned_of<16> { using type = uint128; };
template <class T> __device__ __forceinline__ T wide(uint64_t high, uint64_t low) { return T(uint128(high) << 64 | low); }
template <class T> __device__ __forceinline__ T wide(double x) {  // truncated; the nearest of what T holds; 0 for a NaN
  constexpr bool is_signed = T(-1) < T(0);
  const double limit = is_signed ? 0x1p127 : 0x1p128;
  if (!(x < limit)) return x == x ? T(~uint128(0) >> is_signed) : T(0);
  if (x <= (is_signed ? -limit : 0.0)) return is_signed ? T(uint128(1) << 127) : T(0);
  return T(x);
}
template <class T> __device__ __forceinline__ T least(T a, T b) { return b < a ? b : a; }
template <class T> __device__ __forceinline__ T greatest(T a, T b) { return a < b ? b : a; }
#endif
template <class T> using bits_of = typename unsigned_of<sizeof(T)>::type;
template <class T> __device__ __forceinline__ T add(T a, T b) { return T(bits_of<T>(a) + bits_of<T>(b)); }
template <class T> __device__ __forceinline__ T subtract(T a, T b) { return T(bits_of<T>(a) - bits_of<T>(b)); }
template <class T> __device__ __forceinline__ T multiply(T a, T b) { return T(bits_of<T>(a) * bits_of<T>(b)); }
template <class T> __device__ __forceinline__ T multiply_add(T a, T b, T c) { return add(multiply(a, b), c); }
template <class T> __device__ __forceinline__ T negate(T a) { return T(bits_of<T>(0) - bits_of<T>(a)); }
template <class T> __device__ __forceinline__ T absolute(T a) { return a < 0 ? T(bits_of<T>(0) - bits_of<T>(a)) : a; }
template <class T> __device__ __forceinline__ T shift_left(T a, T count) {
  return bits_of<T>(count) < 8 * sizeof(T) ? T(bits_of<T>(a) << count) : T(0);
}
template <class T> __device__ __forceinline__ T shift_right(T a, T count) {
  return bits_of<T>(count) < 8 * sizeof(T) ? T(a >> count) : T(a < 0 ? -1 : 0);
}

template <class T> __device__ __forceinline__ T floordiv(T a, T b) {
  const T quotient = a / b;
  return quotient - T(quotient * b != a && (a ^ b) < 0);
}
template <class T> __device__ __forceinline__ T floormod(T a, T b) {
  const T rest = a % b;
  return rest + (rest != 0 && (rest ^ b) < 0 ? b : T(0));
}
__device__ __forceinline__ float floormod(float a, float b) {
  const float rest = fmodf(a, b);
  if (rest == 0.0f) return copysignf(0.0f, b);
  return (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}
__device__ __forceinline__ double floormod(double a, double b) {
  const double rest = fmod(a, b);
  if (rest == 0.0) return copysign(0.0, b);
  return (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}
template <class T> __device__ __forceinline__ T floor_of_quotient(T a, T b) {  // of the exact quotient, as in Python
  if (b == T(0)) return a / b;
  const T rest = fmod(a, b);
  T quotient = (a - rest) / b;  // a whole number but for rounding
  if (rest != T(0) && (rest < T(0)) != (b < T(0))) quotient -= T(1);
  if (quotient == T(0)) return copysign(T(0), a / b);
  const T whole = floor(quotient);
  return quotient - whole > T(0.5) ? whole + T(1) : whole;
}
__device__ __forceinline__ float floordiv(float a, float b) { return floor_of_quotient(a, b); }
__device__ __forceinline__ double floordiv(double a, double b) { return floor_of_quotient(a, b); }

template <class T> __device__ __forceinline__ T whole(int x) {  // the nearest number of an integer type of 8 or 16 bits
  constexpr bool is_signed = T(-1) < T(0);
  constexpr int bits = 8 * sizeof(T), low = is_signed ? -(1 << (bits - 1)) : 0, high = low + ((1 << bits) - 1);
  return T(::min(::max(x, low), high));
}
template <class T> __device__ __forceinline__ T whole(float x) { return whole<T>(__float2int_rz(x)); }
template <class T> __device__ __forceinline__ T whole(double x) { return whole<T>(__double2int_rz(x)); }

template <class T> __device__ __forceinline__ T power(T base, T exponent) {  // integers; a negative exponent gives 0 (or +-1)
  if (exponent < 0) return base == 1 ? T(1) : base == T(-1) ? (exponent & 1 ? T(-1) : T(1)) : T(0);
  T result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

__device__ __forceinline__ float rcp(float x) { return 1.0f / x; }
__device__ __forceinline__ double rcp(double x) { return 1.0 / x; }

__device__ __forceinline__ float infinity() { return bitcast<float>(0x7f800000); }
__device__ __forceinline__ float nan() { return bitcast<float>(0x7fffffff); }

__device__ __forceinline__ float approx_exp2(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ float approx_log2(float x) { float r; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ float approx_tanh(float x) { float r; asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ float approx_sqrt(float x) { float r; asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ float approx_rsqrt(float x) { float r; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
__device__ __forceinline__ float approx_rcp(float x) { float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }

}  // namespace tw
