#include "tilewright.cuh"

extern "C" __global__ void __launch_bounds__(128)
ElementwiseAdd_kernel(float* mA, int mA_stride0, float* mB, int mB_stride0, float* mC, int mC_shape0, int mC_shape1, int mC_stride0) {
  const int tidx = threadIdx.x;
  const int tile_n = blockIdx.x;
  const int tile_m = blockIdx.y;
  const int t = tile_n * 128;
  const int t_1 = tidx % 32;
  const int t_2 = tidx / 32;
  const int t_3 = t_1 * 4;
  float* p = mA + (tile_m * (16 * mA_stride0) + t) + (t_3 + t_2 * (4 * mA_stride0));
  float* p_1 = mB + (tile_m * (16 * mB_stride0) + t) + (t_3 + t_2 * (4 * mB_stride0));
  float* p_2 = mC + (tile_m * (16 * mC_stride0) + t) + (t_3 + t_2 * (4 * mC_stride0));
  const int t_4 = 16 * tile_m + 4 * t_2;
  alignas(4) bool inside[4];
  const bool t_5 = tw::add(tw::multiply(128, tile_n), 4 * t_1) < mC_shape1;
  inside[0] = t_4 < mC_shape0 && t_5;
  inside[1] = t_4 + 1 < mC_shape0 && t_5;
  inside[2] = t_4 + 2 < mC_shape0 && t_5;
  inside[3] = t_4 + 3 < mC_shape0 && t_5;
  alignas(16) float r[16];
  alignas(16) float r_1[16];
  alignas(16) float r_2[16];
  #pragma unroll
  for (int e = 0; e < 16; ++e) r[e] = 0.0f;
  #pragma unroll
  for (int e = 0; e < 16; ++e) r_1[e] = 0.0f;
  const bool t_6 = inside[0];
  const bool t_7 = inside[1];
  const bool t_8 = inside[2];
  const bool t_9 = inside[3];
  tw::load_if<16>(t_6, &r[0], p);
  tw::load_if<16>(t_7, &r[4], (p + mA_stride0));
  tw::load_if<16>(t_8, &r[8], (p + 2 * mA_stride0));
  tw::load_if<16>(t_9, &r[12], (p + 3 * mA_stride0));
  const bool t_10 = inside[0];
  const bool t_11 = inside[1];
  const bool t_12 = inside[2];
  const bool t_13 = inside[3];
  tw::load_if<16>(t_10, &r_1[0], p_1);
  tw::load_if<16>(t_11, &r_1[4], (p_1 + mB_stride0));
  tw::load_if<16>(t_12, &r_1[8], (p_1 + 2 * mB_stride0));
  tw::load_if<16>(t_13, &r_1[12], (p_1 + 3 * mB_stride0));
  #pragma unroll
  for (int e = 0; e < 16; ++e) r_2[e] = r[e] + r_1[e];
  const bool t_14 = inside[0];
  const bool t_15 = inside[1];
  const bool t_16 = inside[2];
  const bool t_17 = inside[3];
  tw::store_if<16>(t_14, p_2, &r_2[0]);
  tw::store_if<16>(t_15, (p_2 + mC_stride0), &r_2[4]);
  tw::store_if<16>(t_16, (p_2 + 2 * mC_stride0), &r_2[8]);
  tw::store_if<16>(t_17, (p_2 + 3 * mC_stride0), &r_2[12]);
}
