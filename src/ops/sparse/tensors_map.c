// tensors_map.c — AddSparseToTensorsMap, AddManySparseToTensorsMap, TakeManySparseFromTensorsMap:
// sparse tensors kept by number between ops that pass on dense ones only.
#include "op/shared_handle.h"
#include "ops/sparse/batch.h"

// ---- the map ----

typedef struct entry_t {
  weir_tensor_t* parts[3];  // indices, values, shape; NULL: taken
} entry_t;

typedef struct tensors_map_t {
  weir_resource_t base;
  weir_mutex_t mu;
  entry_t* entries;  // guarded by mu; of numbers |first| and up
  size_t count;      // guarded by mu
  size_t capacity;   // guarded by mu
  int64_t first;     // guarded by mu
} tensors_map_t;

static void release_entry(entry_t* entry) {
  for (int i = 0; i < 3; ++i) weir_tensor_release(entry->parts[i]);
  *entry = (entry_t){{NULL, NULL, NULL}};
}

static void map_destroy(weir_resource_t* resource) {
  tensors_map_t* map = (tensors_map_t*)resource;
  for (size_t i = 0; i < map->count; ++i) release_entry(&map->entries[i]);
  weir_free(map->entries);
  weir_mutex_destroy(&map->mu);
  weir_free(map);
}

static const weir_resource_type_t map_type = {.name = "SparseTensorsMap", .destroy = map_destroy};

static weir_status_t* map_create(void* arg, weir_resource_t** out_resource) {
  (void)arg;
  tensors_map_t* map = weir_calloc(1, sizeof(*map));
  if (!map) return weir_out_of_memory();
  weir_resource_init(&map->base, &map_type);
  weir_mutex_init(&map->mu);
  *out_resource = &map->base;
  return NULL;
}

// Keeps a reference to each of |parts| under a new number.
static weir_status_t* map_add(tensors_map_t* map, weir_tensor_t* const* parts,
                              int64_t* out_number) {
  weir_status_t* status = NULL;
  weir_mutex_lock(&map->mu);
  if (WEIR_GROW(map->entries, map->capacity, map->count + 1)) {
    for (int i = 0; i < 3; ++i) map->entries[map->count].parts[i] = weir_tensor_retain(parts[i]);
    *out_number = map->first + (int64_t)map->count++;
  } else {
    status = weir_out_of_memory();
  }
  weir_mutex_unlock(&map->mu);
  return status;
}

// Moves what |number| stands for to |out_entry|, which is empty.
static weir_status_t* map_take(tensors_map_t* map, const char* name, int64_t number,
                               entry_t* out_entry) {
  weir_mutex_lock(&map->mu);
  uint64_t at = (uint64_t)number - (uint64_t)map->first;
  bool is_there = number >= map->first && at < map->count && map->entries[at].parts[0];
  if (is_there) {
    *out_entry = map->entries[at];
    map->entries[at] = (entry_t){{NULL, NULL, NULL}};
    size_t gone = 0;
    while (gone < map->count && !map->entries[gone].parts[0]) ++gone;
    if (gone == map->count || gone > 64 + map->count / 2) {  // seldom enough to be cheap
      memmove(map->entries, map->entries + gone, (map->count - gone) * sizeof(*map->entries));
      map->count -= gone;
      map->first += (int64_t)gone;
    }
  }
  weir_mutex_unlock(&map->mu);
  if (is_there) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Unable to find SparseTensor: %" PRId64 " in map: %s",
                     number, name);
}

// ---- kernels ----

typedef struct map_state_t {
  weir_shared_handle_t handle;
} map_state_t;

static weir_status_t* map_init(const weir_kernel_init_t* init, void* state) {
  return weir_shared_handle_init(init, "N10tensorflow16SparseTensorsMapE",
                                 &((map_state_t*)state)->handle);
}

static void map_deinit(void* state) { weir_shared_handle_deinit(&((map_state_t*)state)->handle); }

static weir_status_t* find_map(weir_kernel_ctx_t* ctx, tensors_map_t** out_map) {
  map_state_t* state = ctx->state;
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_shared_handle_create(ctx, &state->handle, &map_type, map_create, NULL, &resource));
  *out_map = (tensors_map_t*)resource;
  return NULL;
}

static weir_status_t* add_cpu(weir_kernel_ctx_t* ctx) {
  weir_sparse_t s;
  weir_tensor_t* out = NULL;
  tensors_map_t* map = NULL;
  weir_tensor_t* const parts[] = {ctx->inputs[0].tensor, ctx->inputs[1].tensor,
                                  ctx->inputs[2].tensor};
  weir_sparse_get(parts[0], parts[1], parts[2], &s);
  WEIR_TRY(weir_sparse_check_ranks(&s));
  WEIR_TRY(weir_sparse_check_dims(s.dims, s.shape->count, NULL));
  WEIR_TRY(weir_sparse_check_parts(&s));
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &out));
  WEIR_TRY(find_map(ctx, &map));
  weir_status_t* status = map_add(map, parts, out->data);
  weir_resource_release(&map->base);
  return status;
}

static weir_status_t* add_row(tensors_map_t* map, const weir_sparse_t* s, int64_t begin,
                              int64_t end, int64_t* out_number) {
  weir_tensor_t* parts[3] = {NULL, NULL, NULL};
  weir_status_t* status = weir_sparse_cut_row(s, begin, end, parts);
  if (!status) status = map_add(map, parts, out_number);
  for (int i = 0; i < 3; ++i) weir_tensor_release(parts[i]);
  return status;
}

// Adds those rows that are empty, or those that are not: in TensorFlow these have lower numbers.
static weir_status_t* add_rows(tensors_map_t* map, const weir_sparse_t* s, bool empty,
                               int64_t* numbers) {
  int64_t at = 0;
  for (int64_t row = 0; row < s->dims[0]; ++row) {
    int64_t begin = at;
    while (at < s->count && weir_sparse_row(s, at)[0] == row) ++at;
    if ((at == begin) == empty) WEIR_TRY(add_row(map, s, begin, at, numbers + row));
  }
  return NULL;
}

static weir_status_t* add_many_cpu(weir_kernel_ctx_t* ctx) {
  weir_sparse_t s;
  weir_tensor_t* out = NULL;
  tensors_map_t* map = NULL;
  WEIR_TRY(weir_sparse_read_rows(ctx, &s));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, s.dims, &out));
  WEIR_TRY(find_map(ctx, &map));
  weir_status_t* status = add_rows(map, &s, false, out->data);
  if (!status) status = add_rows(map, &s, true, out->data);
  weir_resource_release(&map->base);
  return status;
}

static weir_status_t* take_cpu(weir_kernel_ctx_t* ctx) {
  const map_state_t* state = ctx->state;
  const weir_tensor_t* numbers = weir_kernel_input(ctx, 0);
  tensors_map_t* map = NULL;
  if (numbers->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "sparse_handles should be a vector but received shape %s",
                       weir_tensor_shape_text(numbers, text));
  }
  if (numbers->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Must have at least 1 SparseTensor handle to take from the map");
  }
  WEIR_TRY(find_map(ctx, &map));
  entry_t* taken = weir_calloc((size_t)numbers->count, sizeof(*taken));
  weir_status_t* status = taken ? NULL : weir_out_of_memory();
  for (int64_t i = 0; i < numbers->count && !status; ++i) {
    status = map_take(map, state->handle.name, WEIR_TENSOR_DATA(numbers, int64_t)[i], &taken[i]);
  }
  if (!status) status = weir_sparse_join(ctx, taken[0].parts, numbers->count, 1, numbers->dims);
  for (int64_t i = 0; taken && i < numbers->count; ++i) release_entry(&taken[i]);
  weir_free(taken);
  weir_resource_release(&map->base);
  return status;
}

// ---- shape functions ----

static weir_status_t* add_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_sparse_shape_check(ctx, 0));
  return weir_shape_set_scalar(ctx, 0);
}

static weir_status_t* add_many_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_sparse_shape_check(ctx, 0));
  return weir_shape_set_vector(ctx, 0, -1);
}

static weir_status_t* take_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  return weir_sparse_shape_set(ctx, 0, -1, -1);
}

#define MAP_KERNEL(...)                                                                      \
  WEIR_CPU_KERNEL(.init = map_init, .deinit = map_deinit, .state_size = sizeof(map_state_t), \
                  __VA_ARGS__)
#define MAP_ATTRS "; container: string = ''; shared_name: string = ''"
#define PARTS_IN "sparse_indices: int64; sparse_values: T; sparse_shape: int64"

const weir_op_module_t weir_ops_sparse_tensors_map = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "AddSparseToTensorsMap",
         .attrs = "T: type" MAP_ATTRS,
         .inputs = PARTS_IN,
         .outputs = "sparse_handle: int64",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Keeps a sparse tensor and returns its number.",
         .infer_shape = add_shape,
         .kernels = MAP_KERNEL(.compute = add_cpu)},
        {.name = "AddManySparseToTensorsMap",
         .attrs = "T: type" MAP_ATTRS,
         .inputs = PARTS_IN,
         .outputs = "sparse_handles: int64",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Keeps the rows of a sparse tensor and returns their numbers.",
         .infer_shape = add_many_shape,
         .kernels = MAP_KERNEL(.types = SPARSE_ANY, .compute = add_many_cpu)},
        {.name = "TakeManySparseFromTensorsMap",
         .attrs = "dtype: type" MAP_ATTRS,
         .inputs = "sparse_handles: int64",
         .outputs = "sparse_indices: int64; sparse_values: dtype; sparse_shape: int64",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Takes sparse tensors by their numbers, as one.",
         .infer_shape = take_shape,
         .kernels = MAP_KERNEL(.compute = take_cpu)},
        {0}}};
