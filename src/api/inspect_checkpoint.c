// inspect_checkpoint.c — What is in checkpoints.
#include "api/inspect.h"
#include "file/fs.h"
#include "file/object_graph.h"
#include "weir/checkpoint.h"
#include "weir/objects.h"

static void report_tensor(weir_report_t* report, const weir_checkpoint_tensor_t* tensor) {
  weir_strbuf_t shape = {0};
  weir_report_line(
      report, "  %-48s %-9s %-16s %12lld bytes", tensor->name, weir_dtype_name(tensor->dtype),
      weir_report_shape(tensor->rank, tensor->dims, &shape), (long long)tensor->byte_size);
  if (tensor->slice_count) weir_report_line(report, ", %d slices", tensor->slice_count);
  weir_report_line(report, "\n");
  weir_report_open(report, NULL, '{');
  weir_report_string(report, "name", weir_view_of(tensor->name));
  weir_report_type(report, tensor->dtype, tensor->rank, tensor->dims);
  weir_report_number(report, "bytes", tensor->byte_size);
  weir_report_number(report, "slices", tensor->slice_count);
  weir_report_close(report, '}');
  weir_strbuf_free(&shape);
}

static int64_t total_bytes(const weir_checkpoint_t* checkpoint) {
  int64_t total = 0;
  for (size_t i = 0; i < weir_checkpoint_count(checkpoint); ++i)
    total += weir_checkpoint_at(checkpoint, i)->byte_size;
  return total;
}

// ---- of objects ----

static void report_value(weir_report_t* report, const weir_object_value_t* value) {
  bool is_variable = strcmp(value->attribute, WEIR_OBJECT_VALUE) == 0;
  weir_report_open(report, NULL, '{');
  weir_report_string(report, "path", weir_view_of(value->path));
  weir_report_string(report, "attribute", weir_view_of(value->attribute));
  weir_report_string(report, "name", weir_view_of(value->name));
  weir_report_string(report, "key", weir_view_of(value->key));
  weir_report_close(report, '}');
  weir_report_line(report, "  %-48s %s%s%s\n", value->path, value->name,
                   *value->name && !is_variable ? " " : "", is_variable ? "" : value->attribute);
}

static void report_values(weir_report_t* report, const weir_objects_t* objects) {
  size_t count = weir_objects_count(objects);
  weir_report_line(report, "%zu values of objects, by path, with the name that a variable had:\n",
                   count);
  weir_report_open(report, "objects", '[');
  for (size_t i = 0; i < count; ++i) report_value(report, weir_objects_at(objects, i));
  weir_report_close(report, ']');
}

// Where the checkpoint is of objects, which are read before anything of it is reported.
static weir_status_t* open_objects(const char* prefix, const weir_checkpoint_t* checkpoint,
                                   weir_objects_t** out_objects) {
  if (!weir_checkpoint_find(checkpoint, WEIR_OBJECT_GRAPH_KEY)) return NULL;
  return weir_objects_open(prefix, out_objects);
}

// ---- the whole ----

weir_status_t* weir_inspect_checkpoint(weir_report_t* report, const char* prefix) {
  weir_checkpoint_t* checkpoint = NULL;
  weir_objects_t* objects = NULL;
  WEIR_TRY(weir_checkpoint_open(prefix, &checkpoint));
  weir_status_t* status = open_objects(prefix, checkpoint, &objects);
  if (status) {
    weir_checkpoint_close(checkpoint);
    return status;
  }
  bool is_first = weir_checkpoint_version(checkpoint) == 1;
  size_t count = weir_checkpoint_count(checkpoint);
  int shards = weir_checkpoint_shard_count(checkpoint);
  weir_report_begin(report, "checkpoint",
                    is_first ? "checkpoint, format V1" : "checkpoint, format V2");
  weir_report_string(report, "prefix", weir_view_of(weir_checkpoint_prefix(checkpoint)));
  weir_report_number(report, "version", is_first ? 1 : 2);
  weir_report_number(report, "shards", shards);
  weir_report_number(report, "bytes", total_bytes(checkpoint));
  weir_report_line(report, "%zu tensors, %lld bytes in %d data file%s; prefix %s\n", count,
                   (long long)total_bytes(checkpoint), shards, shards == 1 ? "" : "s",
                   weir_checkpoint_prefix(checkpoint));
  weir_report_open(report, "tensors", '[');
  for (size_t i = 0; i < count; ++i) report_tensor(report, weir_checkpoint_at(checkpoint, i));
  weir_report_close(report, ']');
  if (objects) report_values(report, objects);
  weir_report_close(report, '}');
  weir_objects_close(objects);
  weir_checkpoint_close(checkpoint);
  return NULL;
}

weir_status_t* weir_inspect_variables(weir_report_t* report, const char* prefix) {
  weir_checkpoint_t* checkpoint = NULL;
  weir_status_t* status = weir_checkpoint_open(prefix, &checkpoint);
  bool is_absent = weir_status_code(status) == WEIR_NOT_FOUND;
  if (status && !is_absent) return weir_status_prefix(status, "variables: ");
  weir_status_destroy(status);
  size_t count = checkpoint ? weir_checkpoint_count(checkpoint) : 0;
  weir_report_number(report, "variables", (int64_t)count);
  if (checkpoint)
    weir_report_line(report, "variables: %zu tensors, %lld bytes (weir show %s)\n", count,
                     (long long)total_bytes(checkpoint), prefix);
  else weir_report_line(report, "variables: none\n");
  weir_checkpoint_close(checkpoint);
  return NULL;
}
