// write_meta.c — Writes SavedModel messages as TensorFlow's loaders expect them.
#include "model/write_meta.h"

#include "wire/wire.h"

enum { SAVED_MODEL_VERSION = 1, SAVED_MODEL_META_GRAPH = 2 };
enum {
  META_INFO = 1,
  META_GRAPH = 2,
  META_SAVER = 3,
  META_COLLECTION = 4,
  META_SIGNATURE = 5,
  META_ASSET = 6
};
enum { INFO_TAGS = 4, INFO_VERSION = 5 };
enum { SAVER_FILENAME = 1, SAVER_SAVE = 2, SAVER_RESTORE = 3, SAVER_KEEP = 4, SAVER_VERSION = 7 };
enum { SAVER_V2 = 2, KEPT = 5 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { COLLECTION_NODES = 1, COLLECTION_BYTES = 2 };
enum { LIST_VALUE = 1 };
enum {
  VARIABLE_NAME = 1,
  VARIABLE_INITIALIZER = 2,
  VARIABLE_IS_RESOURCE = 5,
  VARIABLE_SNAPSHOT = 3,
  VARIABLE_INITIAL = 6
};
enum { SIGNATURE_INPUT = 1, SIGNATURE_OUTPUT = 2, SIGNATURE_METHOD = 3 };
enum { TENSOR_NAME = 1, TENSOR_DTYPE = 2, TENSOR_SHAPE = 3 };
enum { ASSET_INFO = 1, ASSET_FILE = 2 };

// Whose ops these are: its client takes nothing but a version of its own.
#define TENSORFLOW_VERSION "2.21.0"
#define MAIN_OP "saved_model_main_op"

static void put_edge_name(weir_strbuf_t* out, uint32_t field, weir_edge_t edge) {
  weir_strbuf_t name = {0};
  weir_strbuf_printf(&name, "%s:%d", edge.node->def.name, edge.index);
  weir_wire_put_bytes(out, field, name.data, name.size);
  out->failed = out->failed || name.failed;
  weir_strbuf_free(&name);
}

// ---- signatures ----

static void put_tensor_info(weir_strbuf_t* out, uint32_t field, weir_edge_t edge) {
  size_t info = weir_wire_begin(out, field);
  put_edge_name(out, TENSOR_NAME, edge);
  weir_wire_put_int(out, TENSOR_DTYPE, weir_dtype_base(weir_edge_dtype(edge)));
  size_t shape = weir_wire_begin(out, TENSOR_SHAPE);
  weir_shape_write(weir_edge_shape(edge), out);
  weir_wire_end(out, shape);
  weir_wire_end(out, info);
}

static void put_ports(weir_strbuf_t* out, uint32_t field, const weir_named_edge_t* ports,
                      int count) {
  for (int i = 0; i < count; ++i) {
    size_t entry = weir_wire_begin(out, field);
    weir_wire_put_string(out, ENTRY_KEY, ports[i].name);
    put_tensor_info(out, ENTRY_VALUE, ports[i].edge);
    weir_wire_end(out, entry);
  }
}

static void put_signature(weir_strbuf_t* out, const weir_signature_spec_t* signature) {
  size_t entry = weir_wire_begin(out, META_SIGNATURE);
  weir_wire_put_string(out, ENTRY_KEY, signature->name ? signature->name : "serving_default");
  size_t value = weir_wire_begin(out, ENTRY_VALUE);
  put_ports(out, SIGNATURE_INPUT, signature->inputs, signature->input_count);
  put_ports(out, SIGNATURE_OUTPUT, signature->outputs, signature->output_count);
  weir_wire_put_string(out, SIGNATURE_METHOD,
                       signature->method ? signature->method : "tensorflow/serving/predict");
  weir_wire_end(out, value);
  weir_wire_end(out, entry);
}

// As a collection: TensorFlow 2 wants to call each signature, and calls none whose op needs an
// asset.
static void put_init(weir_strbuf_t* out, const weir_node_t* node) {
  size_t entry = weir_wire_begin(out, META_COLLECTION);
  weir_wire_put_string(out, ENTRY_KEY, MAIN_OP);
  size_t value = weir_wire_begin(out, ENTRY_VALUE);
  size_t list = weir_wire_begin(out, COLLECTION_NODES);
  weir_wire_put_string(out, LIST_VALUE, node->def.name);
  weir_wire_end(out, list);
  weir_wire_end(out, value);
  weir_wire_end(out, entry);
}

// ---- variables ----

static void put_variable(weir_strbuf_t* out, const weir_variable_info_t* variable) {
  size_t value = weir_wire_begin(out, LIST_VALUE);
  put_edge_name(out, VARIABLE_NAME, variable->handle);
  weir_wire_put_string(out, VARIABLE_INITIALIZER, variable->initializer->def.name);
  weir_wire_put_bool(out, VARIABLE_IS_RESOURCE, true);
  put_edge_name(out, VARIABLE_SNAPSHOT, variable->value);
  put_edge_name(out, VARIABLE_INITIAL, variable->initial);
  weir_wire_end(out, value);
}

static void put_variables(weir_strbuf_t* out, const weir_meta_spec_t* spec) {
  size_t entry = weir_wire_begin(out, META_COLLECTION);
  weir_wire_put_string(out, ENTRY_KEY, "variables");
  size_t value = weir_wire_begin(out, ENTRY_VALUE);
  size_t list = weir_wire_begin(out, COLLECTION_BYTES);
  for (int i = 0; i < spec->variable_count; ++i) put_variable(out, &spec->variables[i]);
  weir_wire_end(out, list);
  weir_wire_end(out, value);
  weir_wire_end(out, entry);
}

static void put_saver(weir_strbuf_t* out, const weir_saver_t* saver) {
  size_t value = weir_wire_begin(out, META_SAVER);
  put_edge_name(out, SAVER_FILENAME, saver->filename);
  put_edge_name(out, SAVER_SAVE, saver->saved);
  weir_wire_put_string(out, SAVER_RESTORE, saver->restored->def.name);
  weir_wire_put_int(out, SAVER_KEEP, KEPT);
  weir_wire_put_int(out, SAVER_VERSION, SAVER_V2);
  weir_wire_end(out, value);
}

// ---- the rest ----

static void put_info(weir_strbuf_t* out, const char* tags) {
  size_t info = weir_wire_begin(out, META_INFO);
  weir_view_t rest = weir_view_of(tags), tag = {0};
  while (weir_view_next(&rest, ',', &tag)) {
    tag = weir_view_trim(tag);
    weir_wire_put_bytes(out, INFO_TAGS, tag.data, tag.size);
  }
  weir_wire_put_string(out, INFO_VERSION, TENSORFLOW_VERSION);
  weir_wire_end(out, info);
}

static void put_asset(weir_strbuf_t* out, weir_edge_t tensor, const char* file) {
  size_t asset = weir_wire_begin(out, META_ASSET);
  size_t info = weir_wire_begin(out, ASSET_INFO);
  put_edge_name(out, TENSOR_NAME, tensor);
  weir_wire_end(out, info);
  weir_wire_put_string(out, ASSET_FILE, file);
  weir_wire_end(out, asset);
}

static weir_status_t* put_meta_graph(const weir_meta_spec_t* spec, weir_strbuf_t* out) {
  const weir_model_save_options_t* options = spec->options;
  put_info(out, options->tags ? options->tags : "serve");
  size_t graph = weir_wire_begin(out, META_GRAPH);
  WEIR_TRY(weir_graph_write_portable(spec->graph, 0, out));
  weir_wire_end(out, graph);
  if (spec->saver) put_saver(out, spec->saver);
  if (spec->variable_count) put_variables(out, spec);
  for (int i = 0; i < options->signature_count; ++i) put_signature(out, &options->signatures[i]);
  if (options->initializer) put_init(out, options->initializer);
  for (int i = 0; i < options->asset_count; ++i)
    put_asset(out, options->assets[i].tensor, spec->asset_files[i]);
  return NULL;
}

weir_status_t* weir_meta_write(const weir_meta_spec_t* spec, weir_strbuf_t* out) {
  weir_wire_put_int(out, SAVED_MODEL_VERSION, 1);
  size_t meta = weir_wire_begin(out, SAVED_MODEL_META_GRAPH);
  WEIR_TRY(put_meta_graph(spec, out));
  weir_wire_end(out, meta);
  return weir_strbuf_finish(out);
}
