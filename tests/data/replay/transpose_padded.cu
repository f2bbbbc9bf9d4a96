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
  float* p_1 = smem_1 + (t_1 * 33 + t_2);
  const bool t_6 = tw::add(t_4, t_2) < mA_shape1;
  if (t_5 < mA_shape0 && t_6) {
    const float t_7 = *p;
    *p_1 = t_7;
  }
  if (t_5 + 8 < mA_shape0 && t_6) {
    const float t_8 = p[t];
    p_1[264] = t_8;
  }
  if (t_5 + 16 < mA_shape0 && t_6) {
    const float t_9 = p[2 * t];
    p_1[528] = t_9;
  }
  if (t_5 + 24 < mA_shape0 && t_6) {
    const float t_10 = p[3 * t];
    p_1[792] = t_10;
  }
  __syncthreads();
  const int t_11 = 8 * mB_stride0;
  float* p_2 = mB + (tile_n * (32 * mB_stride0) + tile_m * 32) + (t_1 * mB_stride0 + t_2);
  const int t_12 = tw::add(t_4, t_1);
  float* p_3 = smem_1 + (t_1 + t_2 * 33);
  const bool t_13 = t_3 + t_2 < mB_shape1;
  if (t_12 < mB_shape0 && t_13) {
    const float t_14 = *p_3;
    *p_2 = t_14;
  }
  if (tw::add(t_12, 8) < mB_shape0 && t_13) {
    const float t_15 = p_3[8];
    p_2[t_11] = t_15;
  }
  if (tw::add(t_12, 16) < mB_shape0 && t_13) {
    const float t_16 = p_3[16];
    p_2[2 * t_11] = t_16;
  }
  if (tw::add(t_12, 24) < mB_shape0 && t_13) {
    const float t_17 = p_3[24];
    p_2[3 * t_11] = t_17;
  }
}
