/* ---- what is asked of tensors --------------------------------------------------------------------------------------- */

TW_INLINE int32_t tw_aligned(uint64_t address, uint64_t align, const char *name) {
  if (address % align == 0) return 0;
  return tw_fail(TW_INVALID_VALUE, "%s is not a multiple of %d bytes: %#llx", name, (int)align,
                 (unsigned long long)address);
}

TW_INLINE int32_t tw_leaf(int64_t number, int64_t low, int64_t high, int64_t divisor, const char *name) {
  if (number < low || number > high) {
    return tw_fail(TW_INVALID_VALUE, "%s is %lld, and the function was compiled for %lld to %lld", name,
                   (long long)number, (long long)low, (long long)high);
  }
  if (number % divisor == 0) return 0;
  return tw_fail(TW_INVALID_VALUE, "%s is %lld, and the function was compiled for multiples of %lld", name,
                 (long long)number, (long long)divisor);
}

/* Offsets of 32 bits were compiled in: the tensor must not reach further. */
TW_INLINE int32_t tw_reach(int rank, const int64_t *extents, const int64_t *strides, int64_t most, const char *name) {
  double reach = 0;
  int i;
  for (i = 0; i < rank; ++i) reach += (double)(extents[i] - 1) * (double)(strides[i] < 0 ? -strides[i] : strides[i]);
  if (reach < (double)most) return 0;
  return tw_fail(TW_INVALID_VALUE, "%s reaches over %.0f elements; it was compiled with offsets of 32 bits (export with "
                 "from_dlpack(..., use_32bit_stride=False))", name, reach);
}
