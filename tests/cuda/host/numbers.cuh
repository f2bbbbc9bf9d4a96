// The host's stand-in for numbers.cuh: every operation goes through float and rounds once.
#pragma once
namespace tw {
inline int negate(int x) { return -x; }
template <class T> inline T low_half(int x) { return T(x); }

inline uint16_t f16_bits(float x) { return bitcast<uint16_t>(_Float16(x)); }
inline uint16_t bf16_bits(float x) {
  const uint32_t bits = bitcast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
struct f16 { uint16_t bits; explicit operator float() const { return float(bitcast<_Float16>(bits)); } };
struct bf16 { uint16_t bits; explicit operator float() const { return bitcast<float>(uint32_t(bits) << 16); } };
struct e4m3 { uint8_t bits; explicit operator float() const { return e4m3_value(bits); } };
struct e5m2 { uint8_t bits; explicit operator float() const { return e5m2_value(bits); } };
struct e8m0 { uint8_t bits; explicit operator float() const { return e8m0_value(bits); } };
template <class T> T to(float x);
template <> inline f16 to<f16>(float x) { return {f16_bits(x)}; }
template <> inline bf16 to<bf16>(float x) { return {bf16_bits(x)}; }
template <> inline e4m3 to<e4m3>(float x) { return {e4m3_bits(x)}; }
template <> inline e5m2 to<e5m2>(float x) { return {e5m2_bits(x)}; }
template <> inline e8m0 to<e8m0>(float x) { return {e8m0_bits(x)}; }
template <class T> T to(double x) { return to<T>(float(x)); }
template <> inline f16 to<f16>(double x) { return {bitcast<uint16_t>(_Float16(x))}; }
inline float to_tf32(float x) { return bitcast<float>((bitcast<uint32_t>(x) + 0x1000) & 0xffffe000u); }

struct f16x2 { f16 lo, hi; };
struct bf16x2 { bf16 lo, hi; };
template <class T> struct pair_of;
template <> struct pair_of<f16> { using type = f16x2; };
template <> struct pair_of<bf16> { using type = bf16x2; };
#define TW_BINARY(NAME, EXPRESSION)                                                                             \
  inline f16 NAME(f16 x, f16 y) { float a = float(x), b = float(y); return to<f16>(float(EXPRESSION)); }        \
  inline bf16 NAME(bf16 x, bf16 y) { float a = float(x), b = float(y); return to<bf16>(float(EXPRESSION)); }    \
  inline f16x2 NAME(f16x2 x, f16x2 y) { return {NAME(x.lo, y.lo), NAME(x.hi, y.hi)}; }                          \
  inline bf16x2 NAME(bf16x2 x, bf16x2 y) { return {NAME(x.lo, y.lo), NAME(x.hi, y.hi)}; }
TW_BINARY(operator+, a + b)
TW_BINARY(operator-, a - b)
TW_BINARY(operator*, a * b)
TW_BINARY(operator/, a / b)
TW_BINARY(min, fminf(a, b))
TW_BINARY(max, fmaxf(a, b))
#define TW_UNARY(T, SIGN)                                                                                       \
  inline T operator-(T x) { return {uint16_t(x.bits ^ SIGN)}; }                                                 \
  inline T abs(T x) { return {uint16_t(x.bits & ~SIGN)}; }                                                      \
  inline T fma(T a, T b, T c) { return to<T>(double(float(a)) * double(float(b)) + double(float(c))); }         \
  inline T##x2 operator-(T##x2 x) { return {-x.lo, -x.hi}; }                                                    \
  inline T##x2 abs(T##x2 x) { return {abs(x.lo), abs(x.hi)}; }                                                  \
  inline T##x2 fma(T##x2 a, T##x2 b, T##x2 c) { return {fma(a.lo, b.lo, c.lo), fma(a.hi, b.hi, c.hi)}; }        \
  inline T##x2 pair(T a, T b) { return {a, b}; }
TW_UNARY(f16, 0x8000)
TW_UNARY(bf16, 0x8000)
template <class T> inline void convert_two(T* p, float a, float b) { p[0] = tw::to<T>(a), p[1] = tw::to<T>(b); }
template <class T> inline f16x2 widen_two(T a, T b) { return {to<f16>(float(a)), to<f16>(float(b))}; }
