/* ---- tensor maps (CUtensorMap), made at each launch from what the template leaves open ------------------------------- */

#if defined(_MSC_VER)
typedef struct __declspec(align(64)) { uint64_t words[16]; } tw_tensor_map;
#else
typedef struct { uint64_t words[16] __attribute__((aligned(64))); } tw_tensor_map;
#endif
typedef struct { int64_t extent; int extent_place; int64_t stride; int stride_place, contiguous; } tw_part;
typedef struct {
  const char *name, *tensor, *where[5]; /* the modes as error messages name them */
  int rank, ends[5];                    /* of the parts of each mode */
  uint32_t box[5];
  int source_bytes, element_bytes, kind, swizzle, scales;
  const tw_part *parts; /* those of the modes, then one for each scale */
} tw_template;

static int64_t tw_gcd(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

static int64_t tw_floor(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static int64_t tw_extent(const tw_part *part, const int64_t *values) {
  return part->extent_place < 0 ? part->extent : values[part->extent_place];
}

static int64_t tw_stride(const tw_part *part, const int64_t *values) {
  return part->stride_place < 0 ? part->stride : values[part->stride_place];
}

/* The extent of every mode, and its stride in bytes: modes of the tensor that share one step by the greatest common
   divisor of their strides. */
static void tw_measure(const tw_template *t, const int64_t *values, int64_t *dims, int64_t *strides) {
  int i, k = 0;
  for (i = 0; i < t->rank; ++i) {
    int64_t extent = 1, step = 0;
    for (; k < t->ends[i]; ++k) {
      int64_t n = tw_extent(&t->parts[k], values), d = tw_stride(&t->parts[k], values) * t->source_bytes, common;
      if (t->parts[k].contiguous) { /* counted in elements of the copied type */
        n = tw_floor(n * t->source_bytes, t->element_bytes);
        d = t->element_bytes;
      }
      common = tw_gcd(step, d);
      extent = common == 0 ? n : (extent - 1) * tw_floor(step, common) + (n - 1) * tw_floor(d, common) + 1;
      step = common;
    }
    dims[i] = extent;
    strides[i] = step;
    if (i > 0 && extent == 1 && step % 16 != 0) strides[i] = 16; /* nothing steps along an extent of 1 */
  }
}

static int32_t tw_check_map(const tw_template *t, uint64_t address, const int64_t *values, const int64_t *dims,
                            const int64_t *strides) {
  int i, k;
  for (k = 0; k < t->ends[t->rank - 1]; ++k) {
    const int64_t extent = tw_extent(&t->parts[k], values), stride = tw_stride(&t->parts[k], values);
    if (stride < 0 && extent > 1) {
      return tw_fail(TW_INVALID_VALUE, "%s: a stride of %s is negative (%lld); TMA steps forwards only", t->name, t->tensor,
                     (long long)stride);
    }
    if (t->parts[k].contiguous && extent * t->source_bytes % t->element_bytes != 0) {
      return tw_fail(TW_INVALID_VALUE, "%s: the contiguous extent %lld of %s is not a whole number of copied elements",
                     t->name, (long long)extent, t->tensor);
    }
  }
  if (address % 16 != 0) {
    return tw_fail(TW_INVALID_VALUE, "%s: the address %#llx of %s is not a multiple of 16 bytes, which TMA needs", t->name,
                   (unsigned long long)address, t->tensor);
  }
  for (i = 0; i < t->rank; ++i) {
    const long long extent = dims[i], stride = strides[i];
    if (extent < 1) {
      return tw_fail(TW_INVALID_VALUE, "%s: the extent of %s is less than 1 (%lld): launch nothing for an empty tensor",
                     t->name, t->where[i], extent);
    }
    if (extent > ((int64_t)1 << 32)) {
      return tw_fail(TW_INVALID_VALUE, "%s: the extent of %s is %lld, more than 2^32", t->name, t->where[i], extent);
    }
    if (i == 0 && stride != t->element_bytes) {
      return tw_fail(TW_INVALID_VALUE, "%s: the stride of %s is %lld bytes, and TMA needs contiguous elements there",
                     t->name, t->where[i], stride);
    }
    if (i > 0 && stride >= ((int64_t)1 << 40)) {
      return tw_fail(TW_INVALID_VALUE, "%s: the stride of %s is %lld bytes; TMA takes less than 2^40", t->name,
                     t->where[i], stride);
    }
    if (i > 0 && stride % 16 != 0) {
      return tw_fail(TW_INVALID_VALUE, "%s: the stride of %s is not a multiple of 16 bytes: %lld bytes", t->name,
                     t->where[i], stride);
    }
  }
  return 0;
}

static int32_t tw_encode(tw_tensor_map *map, const tw_template *t, uint64_t address, const int64_t *values,
                         int64_t *scales) {
  int64_t dims[5] = {0, 0, 0, 0, 0}, strides[5] = {0, 0, 0, 0, 0};
  uint64_t extents[5] = {0, 0, 0, 0, 0}, steps[5] = {0, 0, 0, 0, 0};
  const uint32_t ones[5] = {1, 1, 1, 1, 1};
  int i;
  tw_measure(t, values, dims, strides);
  TW_TRY(tw_check_map(t, address, values, dims, strides));
  for (i = 0; i < t->rank; ++i) extents[i] = (uint64_t)dims[i];
  for (i = 1; i < t->rank; ++i) steps[i - 1] = (uint64_t)strides[i];
  for (i = 0; i < t->scales; ++i) {
    const int64_t last = strides[t->rank - 1];
    const tw_part *part = &t->parts[t->ends[t->rank - 1] + i];
    scales[i] = -tw_floor(-(tw_stride(part, values) * t->source_bytes), last < 16 ? 16 : last);
  }
  return tw_check(tw_driver.TensorMapEncodeTiled(map->words, t->kind, (uint32_t)t->rank, address, extents, steps, t->box,
                                                 ones, 0, t->swizzle, 2 /* L2 promotion 128B */, 0),
                  t->name);
}
