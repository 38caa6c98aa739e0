// checkpoint_reader.c — Checkpoints of either format without a graph: their tensors and values.
#include <stdlib.h>

#include "base/suggest.h"
#include "file/bundle.h"
#include "file/checkpoint_state.h"
#include "file/checkpoint_v1.h"
#include "tensor/shape.h"
#include "weir/argument.h"
#include "weir/checkpoint.h"

struct weir_checkpoint_t {
  char* prefix;
  weir_bundle_t* bundle;  // one of the two
  weir_v1_reader_t* first;
  int shard_count;
  weir_arena_t arena;  // names, shapes, paths
  weir_checkpoint_tensor_t* tensors;
  size_t count;
};

// ---- what it is ----

// The prefix of what |path| names; its directory, its index and itself are ways to say it.
static weir_status_t* find_prefix(const char* path, char** out_prefix) {
  weir_file_info_t info = {0};
  weir_strbuf_t prefix = {0};
  weir_status_t* status = NULL;
  weir_status_destroy(weir_fs_info(path, &info));
  if (info.is_directory) {
    status = weir_checkpoint_latest(path, &prefix);
  } else {
    weir_view_t name = weir_view_of(path);
    if (weir_view_ends_with(name, ".index")) name.size -= strlen(".index");
    weir_strbuf_append(&prefix, name.data, name.size);
  }
  if (!status) status = weir_strbuf_finish(&prefix);
  if (status) weir_strbuf_free(&prefix);
  else *out_prefix = prefix.data;
  return status;
}

static bool has_index(const char* prefix) {
  weir_strbuf_t path = {0};
  weir_bundle_append_index_path(prefix, &path);
  bool is_there = !path.failed && weir_fs_exists(path.data);
  weir_strbuf_free(&path);
  return is_there;
}

static char* copy_path(weir_checkpoint_t* checkpoint, int shard) {
  weir_strbuf_t path = {0};
  weir_bundle_append_data_path(checkpoint->prefix, shard, checkpoint->shard_count, &path);
  char* copy = path.failed ? NULL : weir_arena_strndup(&checkpoint->arena, path.data, path.size);
  weir_strbuf_free(&path);
  return copy;
}

// ---- its tensors ----

static weir_status_t* set_tensor(weir_checkpoint_t* checkpoint, weir_view_t name, int rank,
                                 const int64_t* dims, weir_checkpoint_tensor_t* out) {
  int64_t* copy = weir_arena_array(&checkpoint->arena, (size_t)WEIR_MAX(rank, 1), sizeof(*copy));
  out->name = weir_arena_strndup(&checkpoint->arena, name.data, name.size);
  if (!copy || !out->name) return weir_out_of_memory();
  for (int i = 0; i < rank; ++i) copy[i] = dims[i];
  out->rank = rank;
  out->dims = copy;
  return NULL;
}

// Of a tensor in slices, what its elements take.
static weir_status_t* element_bytes(weir_checkpoint_tensor_t* tensor) {
  int64_t count = 0;
  WEIR_TRY(weir_shape_count(tensor->dtype, tensor->rank, tensor->dims, &count));
  tensor->byte_size = count * (int64_t)weir_dtype_size(tensor->dtype);
  return NULL;
}

static weir_status_t* describe(weir_checkpoint_t* checkpoint, weir_view_t name,
                               weir_checkpoint_tensor_t* out) {
  weir_bundle_entry_t entry;
  WEIR_TRY(weir_bundle_find(checkpoint->bundle, name, &entry));
  if (entry.shard < 0 || entry.shard >= checkpoint->shard_count)
    return WEIR_STATUS(DATA_LOSS, "%s: tensor '%.*s' is in shard %d of %d", checkpoint->prefix,
                       WEIR_VIEW_ARG(name), entry.shard, checkpoint->shard_count);
  WEIR_TRY(set_tensor(checkpoint, name, entry.rank, entry.dims, out));
  out->dtype = entry.dtype;
  out->slice_count = entry.slice_count;
  out->byte_size = (int64_t)WEIR_MIN(entry.size, (uint64_t)INT64_MAX);
  if (entry.slice_count > 0) return element_bytes(out);
  out->file = copy_path(checkpoint, entry.shard);
  return out->file ? NULL : weir_out_of_memory();
}

static weir_status_t* alloc_tensors(weir_checkpoint_t* checkpoint, size_t count) {
  checkpoint->tensors = weir_calloc(WEIR_MAX(count, (size_t)1), sizeof(*checkpoint->tensors));
  return checkpoint->tensors ? NULL : weir_out_of_memory();
}

static weir_status_t* load_second(weir_checkpoint_t* checkpoint) {
  weir_names_t names = {0};
  weir_status_t* status = weir_bundle_open(checkpoint->prefix, &checkpoint->bundle);
  if (!status) status = weir_bundle_list(checkpoint->bundle, &names);
  if (!status) status = alloc_tensors(checkpoint, names.count);
  if (!status) checkpoint->shard_count = weir_bundle_shard_count(checkpoint->bundle);
  for (size_t i = 0; i < names.count && !status; ++i) {
    status = describe(checkpoint, weir_view_of(names.items[i]), &checkpoint->tensors[i]);
    checkpoint->count += !status;
  }
  weir_names_free(&names);
  return status;
}

static int by_name(const void* a, const void* b) {
  const weir_checkpoint_tensor_t* x = a;
  const weir_checkpoint_tensor_t* y = b;
  return strcmp(x->name, y->name);
}

static weir_status_t* load_first(weir_checkpoint_t* checkpoint) {
  WEIR_TRY(weir_v1_reader_open(checkpoint->prefix, &checkpoint->first));
  size_t count = weir_v1_reader_count(checkpoint->first);
  WEIR_TRY(alloc_tensors(checkpoint, count));
  checkpoint->shard_count = 1;
  for (size_t i = 0; i < count; ++i) {
    const weir_v1_tensor_t* tensor = weir_v1_reader_at(checkpoint->first, i);
    weir_checkpoint_tensor_t* out = &checkpoint->tensors[i];
    WEIR_TRY(set_tensor(checkpoint, weir_v1_tensor_name(tensor), weir_v1_tensor_rank(tensor),
                        weir_v1_tensor_dims(tensor), out));
    out->dtype = weir_v1_tensor_dtype(tensor);
    size_t parts = weir_v1_tensor_part_count(tensor);
    out->slice_count = parts > 1 ? (int)parts : 0;
    out->file = checkpoint->prefix;
    WEIR_TRY(element_bytes(out));
    ++checkpoint->count;
  }
  qsort(checkpoint->tensors, count, sizeof(*checkpoint->tensors), by_name);
  return NULL;
}

// ---- the public functions ----

weir_status_t* weir_checkpoint_open(const char* path, weir_checkpoint_t** out_checkpoint) {
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_ARG(out_checkpoint);
  weir_checkpoint_t* checkpoint = weir_calloc(1, sizeof(*checkpoint));
  if (!checkpoint) return weir_out_of_memory();
  weir_status_t* status = find_prefix(path, &checkpoint->prefix);
  bool is_first = !status && !has_index(checkpoint->prefix) && weir_fs_exists(checkpoint->prefix);
  if (!status) status = is_first ? load_first(checkpoint) : load_second(checkpoint);
  if (status) {
    weir_checkpoint_close(checkpoint);
    return status;
  }
  *out_checkpoint = checkpoint;
  return NULL;
}

void weir_checkpoint_close(weir_checkpoint_t* checkpoint) {
  if (!checkpoint) return;
  weir_bundle_close(checkpoint->bundle);
  weir_v1_reader_close(checkpoint->first);
  weir_arena_free(&checkpoint->arena);
  weir_free(checkpoint->tensors);
  weir_free(checkpoint->prefix);
  weir_free(checkpoint);
}

const char* weir_checkpoint_prefix(const weir_checkpoint_t* checkpoint) {
  WEIR_ASSERT_ARG(checkpoint);
  return checkpoint->prefix;
}
int weir_checkpoint_version(const weir_checkpoint_t* checkpoint) {
  WEIR_ASSERT_ARG(checkpoint);
  return checkpoint->first ? 1 : 2;
}
int weir_checkpoint_shard_count(const weir_checkpoint_t* checkpoint) {
  WEIR_ASSERT_ARG(checkpoint);
  return checkpoint->shard_count;
}
size_t weir_checkpoint_count(const weir_checkpoint_t* checkpoint) {
  WEIR_ASSERT_ARG(checkpoint);
  return checkpoint->count;
}
const weir_checkpoint_tensor_t* weir_checkpoint_at(const weir_checkpoint_t* checkpoint,
                                                   size_t index) {
  WEIR_ASSERT_ARG(checkpoint);
  return index < checkpoint->count ? &checkpoint->tensors[index] : NULL;
}

const weir_checkpoint_tensor_t* weir_checkpoint_find(const weir_checkpoint_t* checkpoint,
                                                     const char* name) {
  WEIR_ASSERT_ARG(checkpoint);
  WEIR_ASSERT_ARG(name);
  const weir_checkpoint_tensor_t key = {.name = name};
  return bsearch(&key, checkpoint->tensors, checkpoint->count, sizeof(key), by_name);
}

static weir_status_t* no_tensor(const weir_checkpoint_t* checkpoint, const char* name) {
  weir_suggestion_t suggestion = weir_suggestion(weir_view_of(name));
  for (size_t i = 0; i < checkpoint->count; ++i)
    weir_suggestion_offer(&suggestion, weir_view_of(checkpoint->tensors[i].name));
  return weir_suggestion_add(
      &suggestion, WEIR_STATUS(NOT_FOUND, "%s: there is no tensor '%s'", checkpoint->prefix, name));
}

weir_status_t* weir_checkpoint_read(weir_checkpoint_t* checkpoint, const char* name,
                                    weir_tensor_t** out_tensor) {
  WEIR_REQUIRE_ARG(checkpoint);
  WEIR_REQUIRE_ARG(name);
  WEIR_REQUIRE_ARG(out_tensor);
  if (!weir_checkpoint_find(checkpoint, name)) return no_tensor(checkpoint, name);
  weir_view_t key = weir_view_of(name);
  if (checkpoint->bundle) return weir_bundle_read(checkpoint->bundle, key, out_tensor);
  const weir_v1_tensor_t* tensor = weir_v1_reader_find(checkpoint->first, key);
  weir_slice_t all;
  weir_slice_set_full(&all, weir_v1_tensor_rank(tensor));
  WEIR_TRY(weir_slice_resolve(&all, weir_v1_tensor_rank(tensor), weir_v1_tensor_dims(tensor)));
  return weir_v1_reader_read(checkpoint->first, tensor, &all, out_tensor);
}
