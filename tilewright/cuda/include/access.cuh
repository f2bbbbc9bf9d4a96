// access.cuh: addresses of shared memory, and predicated accesses of global memory.
#pragma once

namespace tw {

// Addresses in the shared-memory window are 32 bits wide.
__device__ __forceinline__ uint32_t shared_address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

// 256 bits of global memory: one access on sm_100 and later, two before.
struct alignas(32) u64x4 { uint64_t x, y, z, w; };

// One predicated access of global memory; where the predicate is false nothing is touched. No branch: the compiler
// keeps many of them in one basic block, issues them together and compiles them in a fraction of the time.
#define TW_PREDICATED(TYPE, SUFFIX, R)                                                                             \
  __device__ __forceinline__ void read_if(bool p, TYPE& to, const void* from) {                                    \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0;\n@p ld.global." SUFFIX " %0, [%1];}"                        \
                 : "+" R(to) : "l"(from), "r"(int(p)) : "memory");                                                 \
  }                                                                                                                \
  __device__ __forceinline__ void write_if(bool p, void* to, const TYPE& from) {                                    \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0;\n@p st.global." SUFFIX " [%1], %0;}"                        \
                 :: R(from), "l"(to), "r"(int(p)) : "memory");                                                     \
  }
TW_PREDICATED(uint16_t, "b16", "h")
TW_PREDICATED(uint32_t, "b32", "r")
TW_PREDICATED(uint64_t, "b64", "l")
#undef TW_PREDICATED
__device__ __forceinline__ void read_if(bool p, uint4& to, const void* from) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0;\n@p ld.global.v4.b32 {%0, %1, %2, %3}, [%4];}"
               : "+r"(to.x), "+r"(to.y), "+r"(to.z), "+r"(to.w) : "l"(from), "r"(int(p)) : "memory");
}
__device__ __forceinline__ void write_if(bool p, void* to, const uint4& from) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0;\n@p st.global.v4.b32 [%4], {%0, %1, %2, %3};}"
               :: "r"(from.x), "r"(from.y), "r"(from.z), "r"(from.w), "l"(to), "r"(int(p)) : "memory");
}
template <int Bytes> struct register_of;
template <> struct register_of<2> { using type = uint16_t; };
template <> struct register_of<4> { using type = uint32_t; };
template <> struct register_of<8> { using type = uint64_t; };
template <> struct register_of<16> { using type = uint4; };
template <int Bytes, class T> __device__ __forceinline__ void load_if(bool p, T* to, const void* from) {
  read_if(p, *reinterpret_cast<typename register_of<Bytes>::type*>(to), from);
}
template <int Bytes, class T> __device__ __forceinline__ void store_if(bool p, void* to, const T* from) {
  write_if(p, to, *reinterpret_cast<const typename register_of<Bytes>::type*>(from));
}

}  // namespace tw
