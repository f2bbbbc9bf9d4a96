/* ---- the driver, found at run time: no CUDA header and no CUDA library is needed to build this file --------------- */

#ifdef _MSC_VER
#define TW_THREAD __declspec(thread)
#define TW_INLINE static __inline
#define TW_UNUSED
#else
#define TW_THREAD __thread
#define TW_UNUSED __attribute__((unused))
#define TW_INLINE static inline TW_UNUSED
#endif

#define TW_INVALID_VALUE 1 /* the numbers of CUresult, which those of cudaError_t are, too */
#define TW_OUT_OF_MEMORY 2
#define TW_NOT_INITIALIZED 3
#define TW_DEINITIALIZED 4
#define TW_NO_DRIVER 34 /* CUDA_ERROR_STUB_LIBRARY */
#define TW_NO_DEVICE 100
#define TW_NO_BINARY_FOR_GPU 209
#define TW_OUT_OF_RESOURCES 701
#define TW_ASSERT 710
#define TW_INVALID_CLUSTER 912

static TW_THREAD char tw_text[1024];
static TW_THREAD TW_UNUSED void *tw_stream; /* of launches that name none: the default stream, unless a caller has another */

static int32_t tw_fail(int32_t code, const char *format, ...) {
  va_list given;
  va_start(given, format);
  vsnprintf(tw_text, sizeof tw_text, format, given);
  va_end(given);
  return code;
}

#define TW_TRY(CALL)                       \
  do {                                     \
    const int32_t tw_failed = (CALL);      \
    if (tw_failed != 0) return tw_failed;  \
  } while (0)

typedef struct { int id, pad; uint32_t value[16]; } tw_attribute;                        /* CUlaunchAttribute */
typedef struct {
  uint32_t grid[3], block[3], smem;
  void *stream;
  tw_attribute *attributes;
  uint32_t count;
} tw_configuration;                                                                      /* CUlaunchConfig */

static struct {
  int (*Init)(unsigned);
  int (*CtxGetCurrent)(void **);
  int (*CtxSetCurrent)(void *);
  int (*CtxGetDevice)(int *);
  int (*CtxGetId)(void *, unsigned long long *);
  int (*DeviceGetCount)(int *);
  int (*DevicePrimaryCtxRetain)(void **, int);
  int (*DeviceGetAttribute)(int *, int, int);
  int (*ThreadExchangeStreamCaptureMode)(int *);
  int (*ModuleLoadData)(void **, const void *);
  int (*ModuleUnload)(void *);
  int (*ModuleGetFunction)(void **, void *, const char *);
  int (*FuncGetAttribute)(int *, int, void *);
  int (*FuncSetAttribute)(void *, int, int);
  int (*LaunchKernelEx)(const tw_configuration *, void *, void **, void **);
  int (*TensorMapEncodeTiled)(void *, int, uint32_t, uint64_t, const uint64_t *, const uint64_t *, const uint32_t *,
                              const uint32_t *, int, int, int, int);
  int (*GetErrorName)(int, const char **);
  int (*GetErrorString)(int, const char **);
} tw_driver;

static const struct { const char *name; void *place; } tw_symbols[] = {
  {"cuInit", &tw_driver.Init},
  {"cuCtxGetCurrent", &tw_driver.CtxGetCurrent},
  {"cuCtxSetCurrent", &tw_driver.CtxSetCurrent},
  {"cuCtxGetDevice", &tw_driver.CtxGetDevice},
  {"cuCtxGetId", &tw_driver.CtxGetId},
  {"cuDeviceGetCount", &tw_driver.DeviceGetCount},
  {"cuDevicePrimaryCtxRetain", &tw_driver.DevicePrimaryCtxRetain},
  {"cuDeviceGetAttribute", &tw_driver.DeviceGetAttribute},
  {"cuThreadExchangeStreamCaptureMode", &tw_driver.ThreadExchangeStreamCaptureMode},
  {"cuModuleLoadData", &tw_driver.ModuleLoadData},
  {"cuModuleUnload", &tw_driver.ModuleUnload},
  {"cuModuleGetFunction", &tw_driver.ModuleGetFunction},
  {"cuFuncGetAttribute", &tw_driver.FuncGetAttribute},
  {"cuFuncSetAttribute", &tw_driver.FuncSetAttribute},
  {"cuLaunchKernelEx", &tw_driver.LaunchKernelEx},
  {"cuTensorMapEncodeTiled", &tw_driver.TensorMapEncodeTiled},
  {"cuGetErrorName", &tw_driver.GetErrorName},
  {"cuGetErrorString", &tw_driver.GetErrorString},
};

/* The code of a call to the driver, and the text that goes with it. */
static int32_t tw_check(int code, const char *what) {
  const char *name = NULL, *text = NULL;
  if (code == 0) return 0;
  tw_driver.GetErrorName(code, &name);
  tw_driver.GetErrorString(code, &text);
  return tw_fail(code, "%s: %s (%d): %s", what, name ? name : "error", code, text ? text : "unknown to this driver");
}

#define TW_CALL(NAME, ARGUMENTS, WHAT) TW_TRY(tw_check(tw_driver.NAME ARGUMENTS, WHAT))

/* One lock for what is loaded; it is held while kernels are loaded, else for some instructions. */
#ifdef _WIN32
static volatile LONG tw_locked;
static void tw_lock(void) { while (InterlockedExchange(&tw_locked, 1)) SwitchToThread(); }
static void tw_unlock(void) { InterlockedExchange(&tw_locked, 0); }
static void *tw_open(void) { return (void *)LoadLibraryA("nvcuda.dll"); }
static void *tw_find(void *library, const char *name) {
  FARPROC found = GetProcAddress((HMODULE)library, name);
  void *address;
  memcpy(&address, &found, sizeof address);
  return address;
}
#define TW_LIBRARY "nvcuda.dll"
#else
static char tw_locked;
static void tw_lock(void) { while (__atomic_test_and_set(&tw_locked, __ATOMIC_ACQUIRE)) sched_yield(); }
static void tw_unlock(void) { __atomic_clear(&tw_locked, __ATOMIC_RELEASE); }
static void *tw_open(void) { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL); }
static void *tw_find(void *library, const char *name) { return dlsym(library, name); }
#define TW_LIBRARY "libcuda.so.1"
#endif

/* Opens the driver once; a failure is met again at the next try. Under the lock. */
static int32_t tw_start(void) {
  static int started;
  void *library;
  size_t i;
  if (started) return 0;
  library = tw_open();
  if (library == NULL) return tw_fail(TW_NO_DRIVER, "no NVIDIA driver here: %s was not found", TW_LIBRARY);
  for (i = 0; i < sizeof tw_symbols / sizeof tw_symbols[0]; ++i) {
    void *found = tw_find(library, tw_symbols[i].name);
    if (found == NULL) {
      return tw_fail(TW_NO_DRIVER, "the NVIDIA driver is too old: it lacks %s (CUDA 12 or later is needed)",
                     tw_symbols[i].name);
    }
    memcpy(tw_symbols[i].place, &found, sizeof found);
  }
  TW_CALL(Init, (0), "starting the NVIDIA driver");
  started = 1;
  return 0;
}

/* ---- the kernels, loaded once in each context ----------------------------------------------------------------------- */

typedef struct { const char *name; int32_t smem, max_threads, cluster[3]; } tw_kernel;
typedef struct { int32_t capability, exact, family, offsets[TW_KERNELS], bytes[TW_KERNELS]; } tw_code;

@TABLES@

typedef struct {
  unsigned long long id; /* of the context */
  void *context;
  int device, capability, most_smem;
  void *modules[TW_KERNELS], *functions[TW_KERNELS];
  int threads[TW_KERNELS], static_smem[TW_KERNELS], allowed[TW_KERNELS], non_portable[TW_KERNELS];
} tw_place;

#define TW_PLACES 64
static struct { tw_place places[TW_PLACES]; int count, users; } tw_state;

/* The machine code for a device, or NULL. Code for an `a` architecture is for one chip, code for an `f` one for a family;
   other code runs on later chips of the same generation. */
static const tw_code *tw_choose(int capability) {
  const tw_code *best = NULL;
  size_t i;
  for (i = 0; i < sizeof tw_codes / sizeof tw_codes[0]; ++i) {
    const tw_code *code = &tw_codes[i];
    const int fits = code->exact && !code->family
                         ? code->capability == capability
                         : code->capability / 10 == capability / 10 && code->capability <= capability;
    if (fits && (best == NULL || code->capability > best->capability ||
                 (code->capability == best->capability && code->exact > best->exact))) {
      best = code;
    }
  }
  return best;
}

static int32_t tw_load_kernel(tw_place *place, const tw_code *code, int i) {
  const unsigned char *package = (const unsigned char *)tw_package;
  TW_CALL(ModuleLoadData, (&place->modules[i], package + code->offsets[i]), tw_kernels[i].name);
  TW_CALL(ModuleGetFunction, (&place->functions[i], place->modules[i], tw_kernels[i].name), tw_kernels[i].name);
  TW_CALL(FuncGetAttribute, (&place->threads[i], 0, place->functions[i]), tw_kernels[i].name);
  TW_CALL(FuncGetAttribute, (&place->static_smem[i], 1, place->functions[i]), tw_kernels[i].name);
  place->allowed[i] = 48 * 1024 - place->static_smem[i];
  return 0;
}

static void tw_drop(tw_place *place) {
  int i;
  for (i = 0; i < TW_KERNELS; ++i) {
    if (place->modules[i] != NULL) tw_driver.ModuleUnload(place->modules[i]);
    place->modules[i] = NULL;
  }
}

/* Fills in place of the current context. */
static int32_t tw_fill(tw_place *place) {
  const tw_code *code;
  int major = 0, minor = 0, mode = 2 /* relaxed: legal while the caller captures a graph */, i;
  int32_t result = 0;
  TW_CALL(CtxGetDevice, (&place->device), "asking for the current device");
  TW_CALL(DeviceGetAttribute, (&major, 75, place->device), "asking the device for its compute capability");
  TW_CALL(DeviceGetAttribute, (&minor, 76, place->device), "asking the device for its compute capability");
  TW_CALL(DeviceGetAttribute, (&place->most_smem, 97, place->device), "asking the device for its shared memory");
  place->capability = 10 * major + minor;
  code = tw_choose(place->capability);
  if (code == NULL) {
    return tw_fail(TW_NO_BINARY_FOR_GPU, "@PREFIX@ was exported for @ARCHITECTURES@; device %d is sm_%d", place->device,
                   place->capability);
  }
  TW_CALL(ThreadExchangeStreamCaptureMode, (&mode), "relaxing the capture mode");
  for (i = 0; i < TW_KERNELS && result == 0; ++i) result = tw_load_kernel(place, code, i);
  tw_driver.ThreadExchangeStreamCaptureMode(&mode);
  if (result != 0) tw_drop(place);
  return result;
}

/* The kernels in the current context, loaded now if they were not before. A thread without a context gets the primary
   one of `device`, as from the CUDA runtime. Under the lock. */
static int32_t tw_find_place(int device, tw_place **found) {
  void *context = NULL;
  unsigned long long id = 0;
  tw_place *place;
  int i;
  TW_CALL(CtxGetCurrent, (&context), "asking for the current context");
  if (context == NULL) {
    int count = 0;
    TW_CALL(DeviceGetCount, (&count), "counting the GPUs");
    if (count == 0) return tw_fail(TW_NO_DEVICE, "the NVIDIA driver shows no GPU");
    TW_CALL(DevicePrimaryCtxRetain, (&context, device), "opening the device");
    TW_CALL(CtxSetCurrent, (context), "making the device current");
  }
  TW_CALL(CtxGetId, (context, &id), "asking for the current context");
  for (i = 0; i < tw_state.count; ++i) {
    if (tw_state.places[i].id == id) {
      *found = &tw_state.places[i];
      return 0;
    }
  }
  if (tw_state.count == TW_PLACES) return tw_fail(TW_OUT_OF_MEMORY, "@PREFIX@ is loaded in %d contexts", TW_PLACES);
  place = &tw_state.places[tw_state.count];
  memset(place, 0, sizeof *place);
  place->id = id;
  place->context = context;
  TW_TRY(tw_fill(place));
  ++tw_state.count;
  *found = place;
  return 0;
}

static int32_t tw_load(@PREFIX@_Kernel_Module_t *module) {
  tw_place *place = NULL;
  TW_TRY(tw_start());
  TW_TRY(tw_find_place(0, &place));
  ++tw_state.users;
  module->code = &tw_state;
  module->device = place->device;
  return 0;
}

static int32_t tw_unload(void) {
  void *before = NULL;
  int i;
  if (--tw_state.users > 0) return 0;
  if (tw_driver.CtxGetCurrent(&before) == TW_DEINITIALIZED) return 0; /* the process ends: the driver is gone */
  for (i = 0; i < tw_state.count; ++i) {
    unsigned long long id = 0; /* a context that was destroyed took its modules along */
    if (tw_driver.CtxGetId(tw_state.places[i].context, &id) != 0 || id != tw_state.places[i].id) continue;
    tw_driver.CtxSetCurrent(tw_state.places[i].context);
    tw_drop(&tw_state.places[i]);
  }
  tw_driver.CtxSetCurrent(before);
  tw_state.count = 0;
  return 0;
}

int32_t @PREFIX@_Kernel_Module_Load(@PREFIX@_Kernel_Module_t *module) {
  int32_t result;
  if (module == NULL) return tw_fail(TW_INVALID_VALUE, "@PREFIX@_Kernel_Module_Load: module is NULL");
  module->code = NULL;
  module->device = 0;
  tw_lock();
  result = tw_load(module);
  tw_unlock();
  return result;
}

int32_t @PREFIX@_Kernel_Module_Unload(@PREFIX@_Kernel_Module_t *module) {
  int32_t result = 0;
  if (module == NULL || module->code != &tw_state) return 0; /* it is not loaded */
  tw_lock();
  module->code = NULL;
  result = tw_unload();
  tw_unlock();
  return result;
}

const char *@PREFIX@_Get_Error_String(void) { return tw_text; }

/* What a call begins with. */
static int32_t tw_enter(const @PREFIX@_Kernel_Module_t *module, tw_place **place) {
  int32_t result;
  if (module == NULL || module->code != &tw_state) {
    return tw_fail(TW_NOT_INITIALIZED, "the module is not loaded: call @PREFIX@_Kernel_Module_Load first");
  }
  tw_lock();
  result = tw_find_place(module->device, place);
  tw_unlock();
  return result;
}
