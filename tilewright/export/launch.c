/* ---- launches ------------------------------------------------------------------------------------------------------- */

enum { TW_USE_PDL = 1, TW_COOPERATIVE = 2, TW_NON_PORTABLE = 4 };
#define TW_OWN_SMEM INT64_MIN /* what the kernel's allocations need */
typedef struct { int64_t grid[3], block[3], cluster[3], smem; int flags; } tw_launch;

static int32_t tw_check_sizes(const tw_launch *launch, const char *name) {
  static const int64_t grids[3] = {2147483647, 65535, 65535}, blocks[3] = {1024, 1024, 64};
  int i;
  for (i = 0; i < 3; ++i) {
    if (launch->grid[i] < 1 || launch->grid[i] > grids[i]) {
      return tw_fail(TW_INVALID_VALUE, "%s: grid %lld along %c lies outside 1 to %lld", name, (long long)launch->grid[i],
                     "xyz"[i], (long long)grids[i]);
    }
    if (launch->block[i] < 1 || launch->block[i] > blocks[i]) {
      return tw_fail(TW_INVALID_VALUE, "%s: block %lld along %c lies outside 1 to %lld", name,
                     (long long)launch->block[i], "xyz"[i], (long long)blocks[i]);
    }
  }
  return 0;
}

static int32_t tw_check_cluster(const tw_launch *launch, const tw_kernel *kernel, int64_t *blocks, int capability) {
  const int alone = launch->cluster[0] == 1 && launch->cluster[1] == 1 && launch->cluster[2] == 1;
  int i;
  *blocks = 1;
  for (i = 0; i < 3; ++i) {
    const int64_t built = kernel->cluster[i], asked = alone && built ? built : launch->cluster[i];
    if (asked < 1 || (built && built != asked)) {
      return tw_fail(TW_INVALID_CLUSTER, "%s: a cluster of %lld blocks along %c, and it is compiled for %lld",
                     kernel->name, (long long)asked, "xyz"[i], (long long)(built ? built : 1));
    }
    if (launch->grid[i] % asked != 0) {
      return tw_fail(TW_INVALID_CLUSTER, "%s: grid %lld along %c is not divisible by the cluster's %lld", kernel->name,
                     (long long)launch->grid[i], "xyz"[i], (long long)asked);
    }
    *blocks *= asked;
  }
  if (*blocks == 1) return 0;
  if (capability < 90) {
    return tw_fail(TW_INVALID_CLUSTER, "%s: clusters need sm_90, the device is sm_%d", kernel->name, capability);
  }
  if (*blocks > 16 || (*blocks > 8 && !(launch->flags & TW_NON_PORTABLE))) {
    return tw_fail(TW_INVALID_CLUSTER, "%s: a cluster of %lld blocks; every GPU with clusters takes 8, and up to 16 "
                   "where launch(..., non_portable_cluster=True) allows it", kernel->name, (long long)*blocks);
  }
  return 0;
}

/* Opts in to more than 48 KiB of shared memory and to clusters of more than 8 blocks. */
static int32_t tw_allow(tw_place *place, int i, int64_t smem, int64_t blocks) {
  int32_t result = 0;
  tw_lock();
  if (smem > place->allowed[i]) {
    result = tw_check(tw_driver.FuncSetAttribute(place->functions[i], 8, (int)smem), "asking for shared memory");
    if (result == 0) place->allowed[i] = (int)smem;
  }
  if (result == 0 && blocks > 8 && !place->non_portable[i]) {
    result = tw_check(tw_driver.FuncSetAttribute(place->functions[i], 14, 1), "asking for clusters of more than 8 blocks");
    if (result == 0) place->non_portable[i] = 1;
  }
  tw_unlock();
  return result;
}

static int32_t tw_go(tw_place *place, int i, const tw_launch *launch, void *stream, void **parameters) {
  const tw_kernel *kernel = &tw_kernels[i];
  const int64_t smem = launch->smem == TW_OWN_SMEM ? kernel->smem : launch->smem;
  const int64_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  tw_configuration config;
  tw_attribute attributes[3];
  int64_t blocks;
  int k;
  TW_TRY(tw_check_sizes(launch, kernel->name));
  if (threads > 1024 || threads > place->threads[i] || (kernel->max_threads && threads > kernel->max_threads)) {
    const int most = kernel->max_threads && kernel->max_threads < place->threads[i] ? kernel->max_threads
                                                                                  : place->threads[i];
    return tw_fail(TW_INVALID_VALUE, "%s: a block has %lld threads, the kernel is built for %d", kernel->name,
                   (long long)threads, most);
  }
  if (smem < kernel->smem) {
    return tw_fail(TW_INVALID_VALUE, "%s: %lld bytes of shared memory are given, its allocations need %d", kernel->name,
                   (long long)smem, kernel->smem);
  }
  if (smem + place->static_smem[i] > place->most_smem) {
    return tw_fail(TW_OUT_OF_RESOURCES, "%s: %lld bytes of shared memory a block, device %d allows %d", kernel->name,
                   (long long)(smem + place->static_smem[i]), place->device, place->most_smem);
  }
  TW_TRY(tw_check_cluster(launch, kernel, &blocks, place->capability));
  TW_TRY(tw_allow(place, i, smem, blocks));
  memset(&config, 0, sizeof config);
  memset(attributes, 0, sizeof attributes);
  for (k = 0; k < 3; ++k) config.grid[k] = (uint32_t)launch->grid[k], config.block[k] = (uint32_t)launch->block[k];
  config.smem = (uint32_t)smem;
  config.stream = stream;
  if (launch->cluster[0] != 1 || launch->cluster[1] != 1 || launch->cluster[2] != 1) {
    attributes[config.count].id = 4; /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
    for (k = 0; k < 3; ++k) attributes[config.count].value[k] = (uint32_t)launch->cluster[k];
    ++config.count;
  }
  if (launch->flags & TW_USE_PDL && place->capability >= 90) { /* others end before the next begins */
    attributes[config.count].id = 6; /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
    attributes[config.count++].value[0] = 1;
  }
  if (launch->flags & TW_COOPERATIVE) {
    attributes[config.count].id = 2; /* CU_LAUNCH_ATTRIBUTE_COOPERATIVE */
    attributes[config.count++].value[0] = 1;
  }
  config.attributes = config.count ? attributes : NULL;
  return tw_check(tw_driver.LaunchKernelEx(&config, place->functions[i], parameters, NULL), kernel->name);
}
