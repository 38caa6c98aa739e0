// checkpoint_writer.c — Checkpoints from memory: tensors spread over data files, then made visible.
#include "base/map.h"
#include "file/bundle.h"
#include "file/temporary.h"
#include "weir/argument.h"
#include "weir/checkpoint.h"

enum { MAX_SHARDS = 10000 };

// One data file is written in place; several are checkpoints of their own, which are merged.
typedef struct part_t {
  char* prefix;
  weir_bundle_writer_t* writer;
  uint64_t size;
} part_t;

struct weir_checkpoint_writer_t {
  char* prefix;
  part_t* parts;
  int part_count;
  weir_map_t names;  // so that no name is in two parts
};

static weir_status_t* open_part(weir_checkpoint_writer_t* writer, int index) {
  part_t* part = &writer->parts[index];
  weir_strbuf_t prefix = {0};
  weir_strbuf_puts(&prefix, writer->prefix);
  if (writer->part_count > 1) {
    weir_strbuf_printf(&prefix, "_part%d-of-%d", index, writer->part_count);
    weir_temporary_append(&prefix);
  }
  weir_status_t* status = weir_strbuf_finish(&prefix);
  if (status) {
    weir_strbuf_free(&prefix);
    return status;
  }
  part->prefix = prefix.data;
  return weir_bundle_writer_create(part->prefix, 1, &part->writer);
}

weir_status_t* weir_checkpoint_writer_create(const char* prefix, int shard_count,
                                             weir_checkpoint_writer_t** out_writer) {
  WEIR_REQUIRE_ARG(prefix);
  WEIR_REQUIRE_ARG(out_writer);
  if (shard_count < 0 || shard_count > MAX_SHARDS)
    return WEIR_STATUS(INVALID_ARGUMENT, "%d is not a number of data files (1 to %d)", shard_count,
                       MAX_SHARDS);
  if (!*prefix || prefix[strlen(prefix) - 1] == '/')
    return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is not the prefix of a checkpoint", prefix);
  weir_checkpoint_writer_t* writer = weir_calloc(1, sizeof(*writer));
  if (!writer) return weir_out_of_memory();
  writer->names.owns_keys = true;
  writer->part_count = WEIR_MAX(shard_count, 1);
  writer->prefix = weir_strdup(prefix);
  writer->parts = weir_calloc((size_t)writer->part_count, sizeof(*writer->parts));
  weir_status_t* status = writer->prefix && writer->parts ? NULL : weir_out_of_memory();
  for (int i = 0; i < writer->part_count && !status; ++i) status = open_part(writer, i);
  if (status) {
    weir_checkpoint_writer_destroy(writer);
    return status;
  }
  *out_writer = writer;
  return NULL;
}

static uint64_t size_of(const weir_tensor_t* tensor) {
  uint64_t size = (uint64_t)weir_tensor_byte_size(tensor);
  for (int64_t i = 0; tensor->dtype == WEIR_DTYPE_STRING && i < tensor->count; ++i) {
    size_t length = 0;
    (void)weir_tensor_string(tensor, i, &length);
    size += length;
  }
  return size;
}

weir_status_t* weir_checkpoint_add(weir_checkpoint_writer_t* writer, const char* name,
                                   const weir_tensor_t* tensor) {
  WEIR_REQUIRE_ARG(writer);
  WEIR_REQUIRE_ARG(name);
  WEIR_REQUIRE_ARG(tensor);
  if (!*name) return WEIR_STATUS(INVALID_ARGUMENT, "a tensor of a checkpoint has no name");
  if (weir_map_find(&writer->names, weir_view_of(name)))
    return WEIR_STATUS(INVALID_ARGUMENT, "tensor '%s' is added to the checkpoint twice", name);
  part_t* least = &writer->parts[0];
  for (int i = 1; i < writer->part_count; ++i) {
    if (writer->parts[i].size < least->size) least = &writer->parts[i];
  }
  WEIR_TRY(weir_bundle_add(least->writer, weir_view_of(name), tensor));
  least->size += size_of(tensor);
  return weir_map_put(&writer->names, weir_view_of(name), writer);
}

static weir_status_t* merge(weir_checkpoint_writer_t* writer) {
  const char** prefixes = weir_calloc((size_t)writer->part_count, sizeof(*prefixes));
  if (!prefixes) return weir_out_of_memory();
  for (int i = 0; i < writer->part_count; ++i) prefixes[i] = writer->parts[i].prefix;
  weir_status_t* status =
      weir_bundle_merge(prefixes, (size_t)writer->part_count, writer->prefix, false);
  weir_free(prefixes);
  return status;
}

weir_status_t* weir_checkpoint_finish(weir_checkpoint_writer_t* writer) {
  WEIR_REQUIRE_ARG(writer);
  if (writer->names.count == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: a checkpoint of no tensors", writer->prefix);
  for (int i = 0; i < writer->part_count; ++i) {
    WEIR_TRY(weir_bundle_finish(writer->parts[i].writer));
  }
  return writer->part_count > 1 ? merge(writer) : NULL;
}

// Of a part that was finished, but not merged, the files are there.
static void remove_part(const part_t* part) {
  weir_strbuf_t index = {0}, data = {0};
  weir_bundle_append_index_path(part->prefix, &index);
  weir_bundle_append_data_path(part->prefix, 0, 1, &data);
  if (!index.failed) weir_status_destroy(weir_fs_remove(index.data));
  if (!data.failed) weir_status_destroy(weir_fs_remove(data.data));
  weir_strbuf_free(&index);
  weir_strbuf_free(&data);
}

void weir_checkpoint_writer_destroy(weir_checkpoint_writer_t* writer) {
  if (!writer) return;
  for (int i = 0; writer->parts && i < writer->part_count; ++i) {
    part_t* part = &writer->parts[i];
    weir_bundle_writer_destroy(part->writer);
    if (part->prefix && writer->part_count > 1) remove_part(part);
    weir_free(part->prefix);
  }
  weir_map_free(&writer->names);
  weir_free(writer->parts);
  weir_free(writer->prefix);
  weir_free(writer);
}
