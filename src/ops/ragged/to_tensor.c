// to_tensor.c — RaggedTensorToTensor: a ragged tensor as a dense one, short rows filled up with a
// default value, long ones cut off.
#include "base/string.h"
#include "ops/ragged/ragged.h"

typedef enum partition_t { FIRST_DIM_SIZE, VALUE_ROWIDS, ROW_SPLITS } partition_t;

typedef struct to_tensor_state_t {
  partition_t* types;  // owned
  int count;
  int levels;  // ragged dimensions: types without FIRST_DIM_SIZE
} to_tensor_state_t;

// ---- attributes ----

static weir_status_t* parse_type(weir_view_t name, partition_t* out) {
  static const char* const known[] = {"FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS"};
  static const char* const others[] = {"ROW_LENGTHS", "ROW_LIMITS", "ROW_STARTS"};
  for (int i = 0; i < 3; ++i) {
    if (weir_view_equal(name, weir_view_of(known[i]))) {
      *out = (partition_t)i;
      return NULL;
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (!weir_view_equal(name, weir_view_of(others[i]))) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported partition type: %s", others[i]);
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "Unknown string for partition info type: %.*s",
                     WEIR_VIEW_ARG(name));
}

// |types| has a place for each of the attribute's.
static weir_status_t* parse_types(weir_attrs_t attrs, partition_t* types, int* out_levels) {
  const weir_attr_t* list = weir_attrs_list(attrs, "row_partition_types");
  const int64_t tensors = weir_attrs_int(attrs, "num_row_partition_tensors");
  const int count = (int)list->count;
  for (int i = 0; i < count; ++i) WEIR_TRY(parse_type(list->u.strings[i], &types[i]));
  if (count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Partition info types should not be empty");
  if (types[0] == VALUE_ROWIDS)
    return WEIR_STATUS(INVALID_ARGUMENT, "VALUE_ROWIDS cannot be first");
  for (int i = 0; i < count; ++i) {
    bool is_first = types[i] == FIRST_DIM_SIZE;
    if (is_first && i > 0) return WEIR_STATUS(INVALID_ARGUMENT, "FIRST_DIM_SIZE must be first");
    if (is_first && (count == 1 || types[1] != VALUE_ROWIDS)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "FIRST_DIM_SIZE must be followed by VALUE_ROWIDS");
    }
  }
  if (tensors != count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of row partition tensors (%" PRId64
                       ") does not equal the number of row partition types(%d).",
                       tensors, count);
  }
  *out_levels = types[0] == FIRST_DIM_SIZE ? count - 1 : count;
  return NULL;
}

static weir_status_t* to_tensor_init(const weir_kernel_init_t* init, void* state) {
  to_tensor_state_t* self = state;
  const weir_attr_t* list = weir_attrs_list(init->node->attrs, "row_partition_types");
  self->count = (int)list->count;
  self->types = weir_alloc_array(list->count, sizeof(*self->types));
  if (!self->types) return weir_out_of_memory();
  return parse_types(init->node->attrs, self->types, &self->levels);
}

static void to_tensor_deinit(void* state) { weir_free(((to_tensor_state_t*)state)->types); }

// ---- shapes ----

typedef struct dims_t {
  int rank;  // -1: not known
  const int64_t* dims;
} dims_t;
static dims_t dims_of(const weir_shape_t* shape) { return (dims_t){shape->rank, shape->dims}; }

static const char* shape_text(dims_t shape, char text[WEIR_SHAPE_TEXT_SIZE]) {
  weir_strbuf_t out = {0};
  weir_strbuf_putc(&out, '[');
  for (int d = 0; d < shape.rank; ++d) {
    if (d) weir_strbuf_putc(&out, ',');
    if (shape.dims[d] < 0) weir_strbuf_putc(&out, '?');
    else weir_strbuf_printf(&out, "%" PRId64, shape.dims[d]);
  }
  weir_strbuf_putc(&out, ']');
  size_t size = out.failed ? 0 : WEIR_MIN(out.size, (size_t)WEIR_SHAPE_TEXT_SIZE - 1);
  if (size > 0) memcpy(text, out.data, size);
  text[size] = 0;
  weir_strbuf_free(&out);
  return text;
}

// The shape asked for, completed by what the values say of the inner dimensions; |dims| are those.
static weir_status_t* combine_shapes(int levels, dims_t asked, dims_t values, int* out_rank,
                                     int64_t* dims) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  *out_rank = asked.rank;
  if (values.rank >= 0) {
    const int rank = values.rank + levels;
    if (asked.rank >= 0 && asked.rank != rank) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "rt_input.shape and shape=%s are incompatible: rt_input.rank = %d but "
                         "shape.rank = %d",
                         shape_text(asked, text), rank, asked.rank);
    }
    *out_rank = rank;
  }
  if (*out_rank > WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "Too many dimensions in tensor: %d", *out_rank);
  for (int d = 0; d < *out_rank; ++d) {
    dims[d] = asked.rank >= 0 ? asked.dims[d] : -1;
    if (values.rank < 0 || d <= levels) continue;
    int64_t own = values.dims[d - levels];
    if (dims[d] >= 0 && own >= 0 && dims[d] != own) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "rt_input.shape and shape=%s are incompatible: rt_input.shape[%d] = "
                         "%" PRId64 " but shape[%d] = %" PRId64,
                         shape_text(asked, text), d, own, d, dims[d]);
    }
    if (dims[d] < 0) dims[d] = own;
  }
  return NULL;
}

// A default value broadcasts to the inner dimensions of the values.
static weir_status_t* check_default(dims_t value, dims_t values) {
  char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
  if (value.rank < 0 || values.rank < 0) return NULL;
  if (value.rank >= values.rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "default_value.shape=%s and rt_input.flat_values.shape=%s are incompatible: "
                       "default_value.rank = %d  must be less than rt_input.flat_values.rank = %d",
                       shape_text(value, x), shape_text(values, y), value.rank, values.rank);
  }
  for (int d = 0; d < value.rank; ++d) {
    const int other = values.rank - value.rank + d;
    int64_t a = value.dims[d], b = values.dims[other];
    if (a < 0 || b < 0 || a == 1 || a == b) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "default_value.shape=%s and rt_input.flat_values.shape=%s are incompatible: "
                       "default_value.shape[%d] = %" PRId64
                       " but rt_input.flat_values.shape[%d] = %" PRId64,
                       shape_text(value, x), shape_text(values, y), d, a, other, b);
  }
  return NULL;
}

static weir_status_t* to_tensor_shape(weir_shape_ctx_t* ctx) {
  const weir_attr_t* list = weir_attrs_list(weir_shape_attrs(ctx), "row_partition_types");
  const weir_shape_t* asked = NULL;
  int64_t dims[WEIR_MAX_RANK] = {0};
  int levels = 0, rank = -1;
  partition_t* types = weir_arena_array(ctx->arena, list->count + 1, sizeof(*types));
  if (!types) return weir_out_of_memory();
  WEIR_TRY(parse_types(weir_shape_attrs(ctx), types, &levels));
  WEIR_TRY(weir_shape_from_value_or_scalar(ctx, 0, &asked));
  for (int i = 0; i < (int)list->count; ++i) {
    const weir_shape_t* partition = weir_shape_input(ctx, 3 + i);
    const int want = types[i] == FIRST_DIM_SIZE ? 0 : 1;
    if (partition->rank >= 0 && partition->rank != want)
      return WEIR_STATUS(INVALID_ARGUMENT, want ? "Row partition must be a vector."
                                                : "FIRST_DIM_SIZE must be a scalar.");
  }
  const weir_shape_t* values = weir_shape_input(ctx, 1);
  WEIR_TRY(check_default(dims_of(weir_shape_input(ctx, 2)), dims_of(values)));
  WEIR_TRY(combine_shapes(levels, dims_of(asked), dims_of(values), &rank, dims));
  if (rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  // A -1 may stand for a size that is not known yet, unless the values asked for are.
  const bool is_free = weir_shape_value(ctx, 0) && dims[0] < 0;
  if (is_free && types[0] == ROW_SPLITS) {
    int64_t splits = weir_shape_dim(weir_shape_input(ctx, 3), 0);
    if (splits > 0) dims[0] = splits - 1;
  }
  return weir_shape_set_dims(ctx, 0, rank, dims);
}

// ---- the kernel ----

static const weir_tensor_t* partition_at(const weir_kernel_ctx_t* ctx, int i) {
  return weir_kernel_input(ctx, 3 + i);
}

static int64_t widest_row(const weir_tensor_t* partition, partition_t type) {
  int64_t widest = 0, run = 0;
  for (int64_t i = 1; type == ROW_SPLITS && i < partition->count; ++i) {
    widest =
        WEIR_MAX(widest, weir_tensor_int_at(partition, i) - weir_tensor_int_at(partition, i - 1));
  }
  for (int64_t i = 0; type == VALUE_ROWIDS && i < partition->count; ++i) {
    bool is_new = i > 0 && weir_tensor_int_at(partition, i) != weir_tensor_int_at(partition, i - 1);
    run = is_new ? 1 : run + 1;
    widest = WEIR_MAX(widest, run);
  }
  return widest;
}

// The partition of ragged dimension |level|.
static int level_index(const to_tensor_state_t* s, int level) {
  return s->count - s->levels + level;
}

static weir_status_t* output_dims(const weir_kernel_ctx_t* ctx, int* out_rank, int64_t* dims,
                                  int64_t* out_rows) {
  const to_tensor_state_t* s = ctx->state;
  const weir_tensor_t* asked = weir_kernel_input(ctx, 0);
  const weir_tensor_t* values = weir_kernel_input(ctx, 1);
  const weir_tensor_t* first = partition_at(ctx, 0);
  dims_t known = {.rank = -1};
  int64_t asked_dims[WEIR_MAX_RANK];
  if (asked->rank > 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d",
                       asked->rank);
  if (asked->rank == 0 && weir_tensor_int_at(asked, 0) != -1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The only valid scalar shape tensor is the fully unknown shape specified as "
                       "-1.");
  }
  if (asked->rank == 1) {
    known.rank = (int)WEIR_MIN(asked->count, WEIR_MAX_RANK);
    for (int d = 0; d < known.rank; ++d) {
      asked_dims[d] = weir_tensor_int_at(asked, d);
      if (asked_dims[d] < -1)
        return WEIR_STATUS(INVALID_ARGUMENT, "Dimension %" PRId64 " must be >= -1", asked_dims[d]);
    }
    known.dims = asked_dims;
  }
  if (first->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid first partition input. Tensor requires at least one element.");
  }
  WEIR_TRY(combine_shapes(s->levels, known, (dims_t){values->rank, values->dims}, out_rank, dims));
  *out_rows = s->types[0] == ROW_SPLITS ? first->count - 1 : weir_tensor_int_at(first, 0);
  if (dims[0] < 0) dims[0] = *out_rows;
  for (int level = 0; level < s->levels; ++level) {
    int at = level_index(s, level);
    if (dims[level + 1] < 0) dims[level + 1] = widest_row(partition_at(ctx, at), s->types[at]);
  }
  return NULL;
}

// Where rows of one level go, in rows of inner elements; -1: nowhere.
typedef struct places_t {
  int64_t* at;
  int64_t count;
} places_t;

static weir_status_t* place_splits(const weir_tensor_t* splits, const places_t* from, int64_t size,
                                   int64_t step, places_t* to) {
  int64_t count = 0;
  for (int64_t r = 0; r + 1 < splits->count; ++r) {
    int64_t length = weir_tensor_int_at(splits, r + 1) - weir_tensor_int_at(splits, r);
    int64_t parent = r < from->count ? from->at[r] : -1;
    for (int64_t j = 0; j < length; ++j) {
      if (count >= to->count) return WEIR_STATUS(INVALID_ARGUMENT, "Invalid row split size.");
      to->at[count++] = parent >= 0 && j < size ? parent + j * step : -1;
    }
  }
  if (splits->count > 0 && count != weir_tensor_int_at(splits, splits->count - 1))
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid row split size.");
  to->count = count;
  return NULL;
}

static weir_status_t* place_rowids(const weir_tensor_t* ids, const places_t* from, int64_t size,
                                   int64_t step, places_t* to) {
  int64_t run = 0;
  for (int64_t i = 0; i < ids->count; ++i) {
    int64_t id = weir_tensor_int_at(ids, i);
    bool is_same = i > 0 && id == weir_tensor_int_at(ids, i - 1);
    if (id < 0 || id >= from->count) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Got %s_value_rowid=%" PRId64 " which is not less than %" PRId64,
                         i == 0 ? "current" : "next", id, from->count);
    }
    run = is_same ? run + 1 : 0;
    to->at[i] = from->at[id] >= 0 && run < size ? from->at[id] + run * step : -1;
  }
  to->count = ids->count;
  return NULL;
}

// How many rows there may be at most in a level.
static int64_t level_room(const weir_tensor_t* partition, partition_t type) {
  if (type == VALUE_ROWIDS) return partition->count;
  return partition->count > 0 ? WEIR_MAX(weir_tensor_int_at(partition, partition->count - 1), 0)
                              : 0;
}

// Follows the rows down to the values; |places| are the first dimension's, and are replaced.
static weir_status_t* place_values(const weir_kernel_ctx_t* ctx, const int64_t* dims,
                                   places_t* places) {
  const to_tensor_state_t* s = ctx->state;
  for (int level = 0; level < s->levels; ++level) {
    const int at = level_index(s, level);
    const weir_tensor_t* partition = partition_at(ctx, at);
    int64_t step = 1;
    for (int d = level + 2; d <= s->levels; ++d) step *= dims[d];
    places_t next = {.count = level_room(partition, s->types[at])};
    next.at = weir_alloc_array((size_t)next.count, sizeof(int64_t));
    if (!next.at) return weir_out_of_memory();
    weir_status_t* status = (s->types[at] == ROW_SPLITS ? place_splits : place_rowids)(
        partition, places, dims[level + 1], step, &next);
    weir_free(places->at);
    *places = next;
    if (status) return status;
  }
  return NULL;
}

// All of |out| is the default, repeated.
static weir_status_t* fill_default(weir_kernel_ctx_t* ctx, const weir_tensor_t* value,
                                   weir_tensor_t* out) {
  const weir_dtype_t dtype = weir_tensor_type(out);
  if (value->count == 1)
    return weir_move_fill(weir_kernel_pool(ctx), dtype, value->data, out->data, out->count);
  weir_move_dim_t box[WEIR_MAX_RANK];
  int64_t stride = 1, from = 1;
  const int rank = out->rank;
  for (int d = rank - 1; d >= 0; --d) {
    const int own = d - (rank - value->rank);
    int64_t size = own >= 0 ? value->dims[own] : 1;
    box[d] = (weir_move_dim_t){out->dims[d], size == 1 ? 0 : from, stride};
    stride *= out->dims[d];
    from *= size;
  }
  return weir_move_box(weir_kernel_pool(ctx), dtype, rank, box, value->data, out->data);
}

static weir_status_t* write_tensor(weir_kernel_ctx_t* ctx, int rank, const int64_t* dims,
                                   places_t* places) {
  const weir_tensor_t* values = weir_kernel_input(ctx, 1);
  weir_tensor_t* out = NULL;
  int64_t inner = 1;
  for (int d = 1; d < values->rank; ++d) inner *= values->dims[d];
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  if (out->count == 0) return NULL;
  WEIR_TRY(place_values(ctx, dims, places));
  WEIR_TRY(fill_default(ctx, weir_kernel_input(ctx, 2), out));
  for (int64_t i = 0; i < places->count; ++i) {
    if (places->at[i] < 0) continue;
    if (i >= values->dims[0]) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "The row partitions are of %" PRId64 " values, but there are %" PRId64,
                         places->count, values->dims[0]);
    }
    WEIR_TRY(weir_elements_copy(weir_tensor_type(out), weir_sparse_at(out, places->at[i] * inner),
                                weir_sparse_at(values, i * inner), inner));
  }
  return NULL;
}

static weir_status_t* to_tensor_cpu(weir_kernel_ctx_t* ctx) {
  const to_tensor_state_t* s = ctx->state;
  const weir_tensor_t* values = weir_kernel_input(ctx, 1);
  const weir_tensor_t* value = weir_kernel_input(ctx, 2);
  int64_t dims[WEIR_MAX_RANK] = {0};
  int64_t rows = 0;
  int rank = 0;
  WEIR_TRY(check_default((dims_t){value->rank, value->dims}, (dims_t){values->rank, values->dims}));
  WEIR_TRY(output_dims(ctx, &rank, dims, &rows));
  places_t places = {.count = WEIR_MAX(rows, 0)};
  places.at = weir_alloc_array((size_t)places.count, sizeof(int64_t));
  if (!places.at) return weir_out_of_memory();
  int64_t step = 1;
  for (int d = 1; d <= s->levels; ++d) step *= dims[d];
  for (int64_t r = 0; r < places.count; ++r) places.at[r] = r < dims[0] ? r * step : -1;
  weir_status_t* status = write_tensor(ctx, rank, dims, &places);
  weir_free(places.at);
  return status;
}

const weir_op_module_t weir_ops_ragged_to_tensor = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RaggedTensorToTensor",
         .attrs = "T: type; Tindex: {int64, int32}; Tshape: {int64, int32}; "
                  "num_row_partition_tensors: int >= 1; row_partition_types: list(string)",
         .inputs = "shape: Tshape; values: T; default_value: T; row_partition_tensors: "
                   "num_row_partition_tensors * Tindex",
         .outputs = "result: T",
         .summary = "A ragged tensor as a dense one, filled up with a default.",
         .infer_shape = to_tensor_shape,
         .build_grad = weir_ragged_to_tensor_grad,
         .kernels = WEIR_CPU_KERNEL(.types = RAGGED_VALUES("T"), .compute = to_tensor_cpu,
                                    .init = to_tensor_init, .deinit = to_tensor_deinit,
                                    .state_size = sizeof(to_tensor_state_t))},
        {0}}};
