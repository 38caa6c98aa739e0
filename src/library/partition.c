// partition.c — Variables in parts along their first dimension.
#include "weir/partition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "nodes.h"
#include "weights.h"
#include "weir/mapped.h"

// What TensorFlow takes a string for, when it counts bytes.
enum { STRING_BYTES = 16 };

weir_partitioner_t weir_partition_fixed(int parts) { return (weir_partitioner_t){.parts = parts}; }

weir_partitioner_t weir_partition_by_size(int64_t part_size, int most_parts) {
  return (weir_partitioner_t){.part_size = part_size, .most_parts = most_parts};
}

// ---- how many ----

static int64_t row_bytes(weir_dtype_t dtype, weir_dims_t shape) {
  int64_t bytes = (int64_t)weir_dtype_size(dtype);
  if (dtype == WEIR_DTYPE_STRING || bytes <= 0) bytes = STRING_BYTES;
  for (int i = 1; i < shape.rank; ++i) bytes *= shape.dims[i];
  return bytes > 0 ? bytes : 1;
}

static int64_t count_parts(weir_partitioner_t how, weir_dtype_t dtype, weir_dims_t shape) {
  const int64_t rows = shape.dims[0];
  if (how.parts > 0) return how.parts < rows ? how.parts : rows;
  int64_t rows_a_part = how.part_size / row_bytes(dtype, shape);
  if (rows_a_part < 1) rows_a_part = 1;
  const int64_t count = (rows - 1) / rows_a_part + 1;
  return how.most_parts > 0 && count > how.most_parts ? how.most_parts : count;
}

// ---- the parts ----

// A variable that is being cut.
typedef struct cut_t {
  weir_scope_t* scope;  // of the parts
  weir_init_t init;
  weir_dims_t shape;
  weir_dtype_t dtype;
  const weir_partitioned_options_t* options;
} cut_t;

// "10 4 0,5:0,4".
static const char* slice_text(const cut_t* cut, int64_t begin, int64_t rows) {
  enum { NUMBER = 24 };
  const int rank = cut->shape.rank;
  const size_t size = (size_t)rank * 3 * NUMBER;
  size_t used = 0;
  char* text = weir_scope_alloc(cut->scope, size, 1);
  if (!text) return NULL;
  for (int i = 0; i < rank; ++i)
    used += (size_t)snprintf(text + used, size - used, "%" PRId64 " ", cut->shape.dims[i]);
  used += (size_t)snprintf(text + used, size - used, "%" PRId64 ",%" PRId64, begin, rows);
  for (int i = 1; i < rank; ++i)
    used += (size_t)snprintf(text + used, size - used, ":0,%" PRId64, cut->shape.dims[i]);
  return text;
}

static weir_edge_t map_part(const cut_t* cut, weir_scope_t* there, const char* name,
                            const weir_variable_part_t* part, int64_t rows) {
  int64_t dims[WEIR_MAX_RANK];
  const size_t size = strlen(cut->options->path) + strlen(name) + 2;
  char* path = weir_scope_alloc(cut->scope, size, 1);
  if (!path) return WEIR_LIB_NONE;
  snprintf(path, size, "%s.%s", cut->options->path, name);
  memcpy(dims, cut->shape.dims, sizeof(*dims) * (size_t)cut->shape.rank);
  dims[0] = rows;
  return weir_mapped_variable(there, name, path, ((weir_dims_t){dims, cut->shape.rank, true}),
                              .dtype = cut->dtype, .part = part);
}

static weir_edge_t make_part(const cut_t* cut, int index, int64_t begin, int64_t rows) {
  const weir_partitioned_options_t* options = cut->options;
  char name[32];
  weir_scope_t* own = cut->scope;
  weir_variable_part_t part = {weir_scope_prefix(own), slice_text(cut, begin, rows)};
  if (!part.slice) return WEIR_LIB_NONE;
  if (options->device_count > 0)
    own = weir_scope_on(own, options->devices[index % options->device_count]);
  snprintf(name, sizeof(name), "part_%d", index);
  if (options->path) return map_part(cut, own, name, &part, rows);
  weir_scope_t* apart = weir_scope_in(weir_scope_lift(own), "initializer");
  weir_edge_t initial = weir_lib_init_part(apart, cut->init, cut->dtype,
                                           &(weir_lib_part_of_t){cut->shape, begin, rows});
  return weir_scope_status(own) ? WEIR_LIB_NONE
                                : weir_part_variable(own, name, initial, &part, true);
}

static weir_tables_t make_parts(const cut_t* cut, int count) {
  const int64_t least = cut->shape.dims[0] / count, extra = cut->shape.dims[0] % count;
  int64_t begin = 0;
  weir_edge_t* parts = weir_scope_alloc(cut->scope, (size_t)count, sizeof(*parts));
  if (!parts) return (weir_tables_t){0};
  for (int i = 0; i < count; ++i) {
    const int64_t rows = least + (i < extra);
    parts[i] = make_part(cut, i, begin, rows);
    begin += rows;
  }
  return weir_scope_status(cut->scope) ? (weir_tables_t){0} : (weir_tables_t){parts, count};
}

static bool check(weir_scope_t* scope, const char* name, weir_init_t init, weir_dims_t shape,
                  weir_partitioner_t how, const weir_partitioned_options_t* options) {
  if (weir_scope_status(scope)) return false;
  if (shape.rank < 1)
    weir_lib_fail(scope, "variable '%s': what has no dimensions has no parts", name);
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] < (i == 0))
      weir_lib_fail(scope, "variable '%s': dimension %d is %lld", name, i,
                    (long long)shape.dims[i]);
  }
  if (how.parts <= 0 && how.part_size <= 0)
    weir_lib_fail(scope, "variable '%s': neither %d parts nor parts of %lld bytes can be made",
                  name, how.parts, (long long)how.part_size);
  if (options->path && init.kind != WEIR_INIT_DEFAULT)
    weir_lib_fail(scope, "variable '%s' lies in files: it starts with what is there", name);
  if (options->device_count < 0 || (options->device_count > 0 && !options->devices))
    weir_lib_fail(scope, "variable '%s': %d devices are not given", name, options->device_count);
  return !weir_scope_status(scope);
}

weir_tables_t weir_partitioned_variable_with(weir_scope_t* scope, const char* name,
                                             weir_init_t init, weir_dims_t shape,
                                             weir_partitioner_t partitioner,
                                             const weir_partitioned_options_t* options) {
  enum { MOST_PARTS = 1 << 20 };
  const weir_tables_t none = {0};
  options = options ? options : &(const weir_partitioned_options_t){0};
  if (!WEIR_HAS_ARG(scope, name) || !check(scope, name, init, shape, partitioner, options))
    return none;
  const weir_dtype_t dtype = options->dtype ? options->dtype : WEIR_DTYPE_FLOAT;
  const int64_t count = count_parts(partitioner, dtype, shape);
  if (count > MOST_PARTS) {
    weir_lib_fail(scope, "variable '%s': %lld parts are too many", name, (long long)count);
    return none;
  }
  const cut_t cut = {.scope = weir_scope_in(scope, name),
                     .init = init,
                     .shape = shape,
                     .dtype = dtype,
                     .options = options};
  return weir_scope_status(scope) ? none : make_parts(&cut, (int)count);
}
