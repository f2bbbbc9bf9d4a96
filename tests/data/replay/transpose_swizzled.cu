#include "tilewright.cuh"

extern "C" __global__ void __launch_bounds__(256)
Transpose_kernel(float* mA, int mA_shape0, int mA_shape1, int mA_stride0, float* mB, int mB_shape0, int mB_shape1, int mB_stride0) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tidx = threadIdx.x;
  const int tile_n = blockIdx.x;
  const int tile_m = blockIdx.y;
  float* smem_1 = reinterpret_cast<float*>(smem);
  const int t = 8 * mA_stride0;
  const int t_1 = tidx / 32;
  const int t_2 = tidx % 32;
  float* p = mA + (tile_m * (32 * mA_stride0) + tile_n * 32) + (t_1 * mA_stride0 + t_2);
  const int t_3 = 32 * tile_m;
  const int t_4 = tw::multiply(32, tile_n);
  const int t_5 = t_3 + t_1;
  const int t_6 = t_1 * 32 + t_2;
  const bool t_7 = tw::add(t_4, t_2) < mA_shape1;
  if (t_5 < mA_shape0 && t_7) {
    const float t_8 = *p;
    smem_1[t_6 ^ ((t_6 & 992) >> 5)] = t_8;
  }
  if (t_5 + 8 < mA_shape0 && t_7) {
    const float t_9 = p[t];
    (smem_1 + ((t_6 ^ ((t_6 & 992) >> 5)) ^ 8))[256] = t_9;
  }
  if (t_5 + 16 < mA_shape0 && t_7) {
    const float t_10 = p[2 * t];
    (smem_1 + ((t_6 ^ ((t_6 & 992) >> 5)) ^ 16))[512] = t_10;
  }
  if (t_5 + 24 < mA_shape0 && t_7) {
    const float t_11 = p[3 * t];
    (smem_1 + ((t_6 ^ ((t_6 & 992) >> 5)) ^ 24))[768] = t_11;
  }
  __syncthreads();
  const int t_12 = 8 * mB_stride0;
  float* p_1 = mB + (tile_n * (32 * mB_stride0) + tile_m * 32) + (t_1 * mB_stride0 + t_2);
  const int t_13 = tw::add(t_4, t_1);
  const int t_14 = t_1 + t_2 * 32;
  const bool t_15 = t_3 + t_2 < mB_shape1;
  if (t_13 < mB_shape0 && t_15) {
    const float t_16 = smem_1[t_14 ^ ((t_14 & 992) >> 5)];
    *p_1 = t_16;
  }
  if (tw::add(t_13, 8) < mB_shape0 && t_15) {
    const float t_17 = smem_1[(t_14 ^ ((t_14 & 992) >> 5)) ^ 8];
    p_1[t_12] = t_17;
  }
  if (tw::add(t_13, 16) < mB_shape0 && t_15) {
    const float t_18 = smem_1[(t_14 ^ ((t_14 & 992) >> 5)) ^ 16];
    p_1[2 * t_12] = t_18;
  }
  if (tw::add(t_13, 24) < mB_shape0 && t_15) {
    const float t_19 = smem_1[(t_14 ^ ((t_14 & 992) >> 5)) ^ 24];
    p_1[3 * t_12] = t_19;
  }
}
