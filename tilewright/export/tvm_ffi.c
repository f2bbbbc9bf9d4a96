/* ---- the same in the calling convention of TVM FFI, for programs that link libtvm_ffi ------------------------------- */

typedef struct { int32_t type; uint32_t zero; union { int64_t i; double d; void *p; } v; } tw_any; /* TVMFFIAny */
typedef struct {
  void *data;
  int32_t device_type, device, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tw_dltensor; /* DLTensor */
enum { TW_NONE = 0, TW_INT = 1, TW_BOOL = 2, TW_FLOAT = 3, TW_POINTER = 4, TW_DLTENSOR = 7, TW_TENSOR = 70 };

extern void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) __attribute__((weak));
extern void *TVMFFIEnvGetStream(int32_t device_type, int32_t device) __attribute__((weak));

#define TW_FFI(CALL) do { if ((CALL) != 0) return -1; } while (0)

static int tw_raise(const char *kind, const char *format, ...) {
  va_list given;
  va_start(given, format);
  vsnprintf(tw_text, sizeof tw_text, format, given);
  va_end(given);
  if (TVMFFIErrorSetRaisedFromCStr) TVMFFIErrorSetRaisedFromCStr(kind, tw_text);
  return -1;
}

static TW_UNUSED int tw_ffi_tensor(const tw_any *given, const char *name, int code, int bits, int ndim,
                                   const tw_dltensor **tensor, int *device) {
  const tw_dltensor *t;
  if (given->type == TW_TENSOR) {
    t = (const tw_dltensor *)((const char *)given->v.p + 24); /* behind the object's header */
  } else if (given->type == TW_DLTENSOR) {
    t = (const tw_dltensor *)given->v.p;
  } else {
    return tw_raise("TypeError", "argument '%s': a tensor is expected", name);
  }
  if (t->code != code || t->bits != bits || t->lanes != 1) {
    return tw_raise("TypeError", "argument '%s': the elements have DLPack type code %d and %d bits, expected are %d and %d",
                    name, t->code, t->bits, code, bits);
  }
  if (t->ndim != ndim) return tw_raise("ValueError", "argument '%s': rank %d, expected is %d", name, t->ndim, ndim);
  if (t->device_type != 2 && t->device_type != 13) {
    return tw_raise("RuntimeError", "argument '%s': the tensor is not on a GPU, and @PREFIX@ is machine code for GPUs", name);
  }
  if (*device >= 0 && *device != t->device) {
    return tw_raise("ValueError", "argument '%s': the tensors of one call lie on devices %d and %d", name, *device, t->device);
  }
  *device = t->device;
  *tensor = t;
  return 0;
}

static TW_UNUSED int64_t tw_ffi_stride(const tw_dltensor *t, int i) {
  int64_t step = 1;
  if (t->strides) return t->strides[i];
  while (++i < t->ndim) step *= t->shape[i]; /* none are given: the tensor is compact */
  return step;
}

static TW_UNUSED int tw_ffi_fixed(int64_t found, int64_t wanted, const char *name) {
  if (found == wanted) return 0;
  return tw_raise("ValueError", "%s is %lld, and the function was compiled for %lld", name, (long long)found,
                  (long long)wanted);
}

static TW_UNUSED int tw_ffi_int(int64_t number, int64_t low, int64_t high, const char *name) {
  if (number >= low && number <= high) return 0;
  return tw_raise("ValueError", "%s is %lld, which lies outside %lld to %lld", name, (long long)number, (long long)low,
                  (long long)high);
}

static TW_UNUSED int tw_ffi_is(const tw_any *given, int first, int second, const char *name, const char *what) {
  if (given->type == first || given->type == second) return 0;
  return tw_raise("TypeError", "argument '%s': %s is expected", name, what);
}

/* The device of the tensors becomes the thread's, as with cudaSetDevice; the kernels are loaded. */
static int tw_ffi_enter(int device) {
  static void *contexts[64];
  int32_t result;
  int now = -1;
  tw_lock();
  result = tw_start();
  if (result == 0 && device >= 0 && device < 64) {
    if (tw_driver.CtxGetDevice(&now) != 0) now = -1;
    if (now != device) {
      if (contexts[device] == NULL) {
        result = tw_check(tw_driver.DevicePrimaryCtxRetain(&contexts[device], device), "opening the device");
      }
      if (result == 0) result = tw_check(tw_driver.CtxSetCurrent(contexts[device]), "making the device current");
    }
  }
  if (result == 0 && tw_packed.code == NULL) result = tw_load(&tw_packed);
  tw_unlock();
  return result == 0 ? 0 : tw_raise("RuntimeError", "%s", tw_text);
}

static int tw_ffi_leave(int32_t code, tw_any *result) {
  char text[sizeof tw_text];
  tw_stream = NULL;
  if (code != 0) {
    memcpy(text, tw_text, sizeof text);
    return tw_raise(code == TW_INVALID_VALUE ? "ValueError" : "RuntimeError", "%s", text);
  }
  result->type = TW_NONE;
  result->zero = 0;
  result->v.i = 0;
  return 0;
}
