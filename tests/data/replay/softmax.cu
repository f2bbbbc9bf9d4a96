#include "tilewright.cuh"

template <class T>
__device__ __forceinline__ T tw_shfl_bfly(T value, int offset, unsigned mask, int control) {
  unsigned words[(sizeof(T) + 3) / 4] = {};
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (unsigned& word : words)
    asm volatile("shfl.sync.bfly.b32 %0, %0, %1, %2, %3;" : "+r"(word) : "r"(offset), "r"(control), "r"(mask));
  memcpy(&value, words, sizeof(T));
  return value;
}

extern "C" __global__ void __launch_bounds__(128)
RowSoftmax_kernel(float* mX, int mX_shape1, int mX_stride0, float* mOut, int mOut_stride0) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int tidx = threadIdx.x;
  const int row = blockIdx.x;
  float total = 0.0f;
  float largest = -3.4028235e+38f;
  for (int column = tidx; column < mX_shape1; column += 128) {
    const float x = mX[row * mX_stride0 + column];
    const float new_1 = fmaxf(largest, x);
    const float total_1 = total * tw::approx_exp2((largest - new_1) * 1.442695f) + tw::approx_exp2((x - new_1) * 1.442695f);
    total = total_1;
    largest = new_1;
  }
  float* smem_1 = reinterpret_cast<float*>(smem);
  float other_largest;
  other_largest = tw_shfl_bfly(largest, 1, -1, 31);
  float other_total;
  other_total = tw_shfl_bfly(total, 1, -1, 31);
  const float largest_1 = fmaxf(largest, other_largest);
  const float total_2 = total * tw::approx_exp2((largest - largest_1) * 1.442695f) + other_total * tw::approx_exp2((other_largest - largest_1) * 1.442695f);
  float other_largest_1;
  other_largest_1 = tw_shfl_bfly(largest_1, 2, -1, 31);
  float other_total_1;
  other_total_1 = tw_shfl_bfly(total_2, 2, -1, 31);
  const float largest_2 = fmaxf(largest_1, other_largest_1);
  const float t = other_total_1 * tw::approx_exp2((other_largest_1 - largest_2) * 1.442695f);
  const float total_3 = total_2 * tw::approx_exp2((largest_1 - largest_2) * 1.442695f) + t;
  float other_largest_2;
  other_largest_2 = tw_shfl_bfly(largest_2, 4, -1, 31);
  float other_total_2;
  other_total_2 = tw_shfl_bfly(total_3, 4, -1, 31);
  const float largest_3 = fmaxf(largest_2, other_largest_2);
  const float t_1 = other_total_2 * tw::approx_exp2((other_largest_2 - largest_3) * 1.442695f);
  const float total_4 = total_3 * tw::approx_exp2((largest_2 - largest_3) * 1.442695f) + t_1;
  float other_largest_3;
  other_largest_3 = tw_shfl_bfly(largest_3, 8, -1, 31);
  float other_total_3;
  other_total_3 = tw_shfl_bfly(total_4, 8, -1, 31);
  const float largest_4 = fmaxf(largest_3, other_largest_3);
  const float t_2 = other_total_3 * tw::approx_exp2((other_largest_3 - largest_4) * 1.442695f);
  const float total_5 = total_4 * tw::approx_exp2((largest_3 - largest_4) * 1.442695f) + t_2;
  float other_largest_4;
  other_largest_4 = tw_shfl_bfly(largest_4, 16, -1, 31);
  float other_total_4;
  other_total_4 = tw_shfl_bfly(total_5, 16, -1, 31);
  const float largest_5 = fmaxf(largest_4, other_largest_4);
  const float t_3 = other_total_4 * tw::approx_exp2((other_largest_4 - largest_5) * 1.442695f);
  const float total_6 = total_5 * tw::approx_exp2((largest_4 - largest_5) * 1.442695f) + t_3;
  const int laneid = tw::lane();
  if (laneid == 0) {
    const int warpid = tw::warp();
    float* p = smem_1 + warpid * 2;
    *p = largest_5;
    p[1] = total_6;
  }
  __syncthreads();
  const float largest_6 = *smem_1;
  const float total_7 = smem_1[1];
  const float t_4 = smem_1[2];
  const float t_5 = smem_1[3];
  const float largest_7 = fmaxf(largest_6, t_4);
  const float total_8 = total_7 * tw::approx_exp2((largest_6 - largest_7) * 1.442695f) + t_5 * tw::approx_exp2((t_4 - largest_7) * 1.442695f);
  const float t_6 = smem_1[4];
  const float t_7 = smem_1[5];
  const float largest_8 = fmaxf(largest_7, t_6);
  const float total_9 = total_8 * tw::approx_exp2((largest_7 - largest_8) * 1.442695f) + t_7 * tw::approx_exp2((t_6 - largest_8) * 1.442695f);
  const float t_8 = smem_1[6];
  const float t_9 = smem_1[7];
  const float largest_9 = fmaxf(largest_8, t_8);
  const float total_10 = total_9 * tw::approx_exp2((largest_8 - largest_9) * 1.442695f) + t_9 * tw::approx_exp2((t_8 - largest_9) * 1.442695f);
  for (int column_1 = tidx; column_1 < mX_shape1; column_1 += 128) {
    const float t_10 = mX[row * mX_stride0 + column_1];
    const float value = tw::approx_exp2((t_10 - largest_9) * 1.442695f) / total_10;
    mOut[row * mOut_stride0 + column_1] = value;
  }
}
