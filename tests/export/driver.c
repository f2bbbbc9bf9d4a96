// A driver without a GPU that writes every call that matters, with its bytes, to the file FAKE_LOG. FAKE_CAPABILITY is
// the device's (90), FAKE_PARAMETERS the sizes of the kernels' parameters ("name=8,4;other=128,4"): a real driver reads
// them in the machine code. FAKE_FAIL names a call that fails with code 999.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { int id, pad; uint32_t value[16]; } Attribute;
typedef struct { uint32_t grid[3], block[3], smem; void* stream; Attribute* attributes; uint32_t count; } Config;
typedef struct { uint64_t context; char name[128]; } Kernel;
static Kernel kernels[256];
static int kernel_count = 0, module_count = 0;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread uint64_t current = 0;  // device + 1
static uint64_t generation = 0;

static int number(const char* name, int otherwise) { return getenv(name) ? atoi(getenv(name)) : otherwise; }
static int fails(const char* name) { return getenv("FAKE_FAIL") && !strcmp(getenv("FAKE_FAIL"), name) ? 999 : 0; }
#define FAIL(NAME) do { if (fails(NAME)) return 999; } while (0)
static FILE* begin(void) {
  pthread_mutex_lock(&lock);
  return fopen(getenv("FAKE_LOG") ? getenv("FAKE_LOG") : "/dev/null", "a");
}
static void end(FILE* file) { fputc('\n', file), fclose(file), pthread_mutex_unlock(&lock); }

int cuInit(unsigned flags) { FAIL("cuInit"); return (int)flags; }
int cuDriverGetVersion(int* v) { *v = 13000; return 0; }
int cuDeviceGetCount(int* n) { *n = number("FAKE_DEVICES", 2); return 0; }
int cuDeviceGet(int* d, int n) { *d = n; return 0; }
int cuDeviceGetName(char* text, int n, int d) { snprintf(text, n, "Imaginary GPU %d", d); return 0; }
int cuDeviceGetAttribute(int* v, int attribute, int d) {
  static const int known[][2] = {{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535},
                                 {16, 132}, {97, 232448}};
  int capability = number("FAKE_CAPABILITY", 90);
  (void)d;
  if (attribute == 75) return *v = capability / 10, 0;
  if (attribute == 76) return *v = capability % 10, 0;
  for (unsigned i = 0; i < sizeof known / sizeof known[0]; ++i)
    if (known[i][0] == attribute) return *v = known[i][1], 0;
  return 1;
}
int cuDevicePrimaryCtxRetain(void** c, int d) { *c = (void*)(uintptr_t)(d + 1); return 0; }
int cuCtxGetCurrent(void** c) { *c = (void*)(uintptr_t)current; return 0; }
int cuCtxSetCurrent(void* c) { current = (uintptr_t)c; return 0; }
int cuCtxGetDevice(int* d) { *d = (int)current - 1; return current ? 0 : 201; }
int cuCtxGetId(void* c, unsigned long long* id) { *id = (uintptr_t)c + 100 * generation; return 0; }
void fake_reset(void) { ++generation; }  // all contexts are made anew, at the same addresses
static __thread uint64_t stack[16];
static __thread int depth = 0;
int cuCtxPushCurrent_v2(void* c) { stack[depth++] = current; current = (uintptr_t)c; return 0; }
int cuCtxPopCurrent_v2(void** c) { *c = (void*)(uintptr_t)current; current = stack[--depth]; return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuStreamCreate(void** s, unsigned flags) { *s = malloc(1 + flags); return 0; }
int cuStreamDestroy_v2(void* s) { free(s); return 0; }
int cuStreamSynchronize(void* s) { (void)s; return 0; }
int cuMemAlloc_v2(void** p, size_t n) { *p = malloc(n); return 0; }
int cuMemFree_v2(void* p) { free(p); return 0; }
int cuMemsetD8Async(void* p, unsigned char v, size_t n, void* s) { (void)s; memset(p, v, n); return 0; }
int cuMemcpyHtoD_v2(void* to, const void* from, size_t n) { memcpy(to, from, n); return 0; }
int cuMemcpyDtoH_v2(void* to, const void* from, size_t n) { memcpy(to, from, n); return 0; }
int cuEventCreate(void** e, unsigned flags) { *e = malloc(1 + flags); return 0; }
int cuEventRecord(void* e, void* s) { (void)e, (void)s; return 0; }
int cuEventSynchronize(void* e) { (void)e; return 0; }
int cuEventElapsedTime(float* ms, void* a, void* b) { (void)a, (void)b; *ms = 1; return 0; }
int cuEventDestroy_v2(void* e) { free(e); return 0; }
int cuThreadExchangeStreamCaptureMode(int* mode) { int m = *mode; *mode = 0; return m < 0; }

// Of an ELF file: where its last table or section ends.
static size_t length(const unsigned char* image) {
  uint64_t ph, sh, size = 64;
  uint16_t phsize, phs, shsize, shs;
  memcpy(&ph, image + 32, 8), memcpy(&sh, image + 40, 8), memcpy(&phsize, image + 54, 2), memcpy(&phs, image + 56, 2);
  memcpy(&shsize, image + 58, 2), memcpy(&shs, image + 60, 2);
  if (ph + phsize * phs > size) size = ph + phsize * phs;
  if (sh + shsize * shs > size) size = sh + shsize * shs;
  for (int i = 0; i < shs; ++i) {
    uint32_t type;
    uint64_t place, bytes;
    const unsigned char* section = image + sh + shsize * i;
    memcpy(&type, section + 4, 4), memcpy(&place, section + 24, 8), memcpy(&bytes, section + 32, 8);
    if (type != 8 && place + bytes > size) size = place + bytes;  // 8: no bytes in the file
  }
  return size;
}
int cuModuleLoadData(void** module, const void* image) {
  FAIL("cuModuleLoadData");
  usleep(1000 * number("FAKE_SLOW", 0));  // milliseconds: threads meet here unless something keeps them apart
  if (!current) return 201;
  if (memcmp(image, "\177ELF", 4)) return 200;
  size_t n = length(image);
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < n; ++i) hash = (hash ^ ((const unsigned char*)image)[i]) * 1099511628211u;
  FILE* file = begin();
  fprintf(file, "load %zu bytes %016llx", n, (unsigned long long)hash);
  ++module_count;
  end(file);
  *module = (void*)(uintptr_t)(current + 256 * generation);
  return 0;
}
int cuModuleUnload(void* module) {
  FILE* file = begin();
  fprintf(file, "unload");
  --module_count;
  end(file);
  return (uintptr_t)module != current + 256 * generation;
}
int cuModuleGetFunction(void** f, void* module, const char* name) {
  pthread_mutex_lock(&lock);
  Kernel* kernel = &kernels[kernel_count++];
  pthread_mutex_unlock(&lock);
  kernel->context = (uintptr_t)module;
  snprintf(kernel->name, sizeof kernel->name, "%s", name);
  *f = kernel;
  return 0;
}
int cuFuncGetAttribute(int* v, int attribute, void* f) { (void)f; *v = attribute == 0 ? 1024 : attribute == 4 ? 40 : 16; return 0; }
int cuFuncSetAttribute(void* f, int attribute, int v) {
  FILE* file = begin();
  fprintf(file, "attribute %s %d %d", ((Kernel*)f)->name, attribute, v);
  end(file);
  return 0;
}
static void bytes(FILE* file, const void* from, size_t n) {
  fputc(' ', file);
  for (size_t i = 0; i < n; ++i) fprintf(file, "%02x", ((const unsigned char*)from)[i]);
}
typedef void (*Launched)(const char* name, const Config* c, void** parameters);
static Launched launched = NULL;
void fake_on_launch(Launched function) { launched = function; }  // gets each launch, which is not written down then
int cuLaunchKernelEx(const Config* c, void* f, void** parameters, void** extra) {
  FAIL("cuLaunchKernelEx");
  const Kernel* kernel = f;
  if (extra || kernel->context != current + 256 * generation) return 400;
  if (launched) return launched(kernel->name, c, parameters), 0;
  FILE* file = begin();
  fprintf(file, "launch %s grid %u %u %u block %u %u %u smem %u stream %p", kernel->name, c->grid[0], c->grid[1],
          c->grid[2], c->block[0], c->block[1], c->block[2], c->smem, c->stream);
  for (uint32_t i = 0; i < c->count; ++i) {
    const Attribute* a = &c->attributes[i];
    fprintf(file, " attribute %d = %u %u %u", a->id, a->value[0], a->value[1], a->value[2]);
  }
  const char* sizes = getenv("FAKE_PARAMETERS");
  char wanted[160];
  snprintf(wanted, sizeof wanted, "%s=", kernel->name);
  sizes = sizes ? strstr(sizes, wanted) : NULL;
  for (sizes = sizes ? sizes + strlen(wanted) : NULL; sizes && *sizes && *sizes != ';';) {
    size_t n = strtoul(sizes, (char**)&sizes, 10);
    bytes(file, *parameters++, n);
    if (*sizes == ',') ++sizes;
  }
  end(file);
  return 0;
}
int cuTensorMapEncodeTiled(void* out, int kind, uint32_t rank, void* address, const uint64_t* dims,
                           const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
                           int swizzle, int l2, int fill) {
  FAIL("cuTensorMapEncodeTiled");
  if ((uintptr_t)out % 64 || !strides || rank > 5) return 1;
  struct { void* address; uint64_t dims[5], strides[4]; uint32_t box[5]; int rest; } map;  // the kernel gets these bytes
  memset(&map, 0, sizeof map);
  map.address = address, map.rest = kind | rank << 8 | swizzle << 16 | l2 << 20 | fill << 24;
  memcpy(map.dims, dims, 8 * rank), memcpy(map.strides, strides, 8 * (rank - 1)), memcpy(map.box, box, 4 * rank);
  memset(out, 0, 128), memcpy(out, &map, sizeof map);
  FILE* file = begin();
  fprintf(file, "map %d %u %p interleave %d swizzle %d l2 %d fill %d", kind, rank, address, interleave, swizzle, l2, fill);
  bytes(file, dims, 8 * rank), bytes(file, strides, 8 * (rank - 1)), bytes(file, box, 4 * rank);
  bytes(file, steps, 4 * rank);
  end(file);
  return 0;
}
int cuTensorMapEncodeIm2col(void) { return 1; }  // what is exported has none
int cuGetErrorName(int code, const char** text) { *text = code == 999 ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR"; return 0; }
int cuGetErrorString(int code, const char** text) { (void)code; *text = "what the driver says"; return 0; }
