// meta_graph.c — Reads MetaGraphDef: the savers, collections, assets and signatures beside a graph.
#include "model/meta_graph.h"

#include <stdlib.h>

#include "model/fields.h"

enum {
  META_GRAPH_DEF = 2,
  META_SAVER = 3,
  META_COLLECTION = 4,
  META_SIGNATURE = 5,
  META_ASSET = 6
};
enum { SAVER_FILENAME = 1, SAVER_SAVE = 2, SAVER_RESTORE = 3 };
enum { SIGNATURE_INPUT = 1, SIGNATURE_OUTPUT = 2, SIGNATURE_METHOD = 3, SIGNATURE_DEFAULT = 4 };
enum { INFO_NAME = 1, INFO_DTYPE = 2, INFO_SHAPE = 3, INFO_SPARSE = 4, INFO_COMPOSITE = 5 };
enum { COMPOSITE_COMPONENT = 2 };
enum { ASSET_INFO = 1, ASSET_FILE = 2 };
enum { COLLECTION_NODES = 1 };
enum { LIST_VALUE = 1 };

// The signature that says what initialises a graph, and the collections that did so before.
#define INIT_SIGNATURE "__saved_model_init_op"
#define HIDDEN_SIGNATURES "__saved_model_"
#define MAIN_OP "saved_model_main_op"
#define LEGACY_INIT_OP "legacy_init_op"
#define TABLE_INITIALIZERS "table_initializer"

typedef struct reading_t {
  weir_meta_graph_t* meta;
  size_t signature_capacity, asset_capacity, table_capacity;
  const char* main_op;
  const char* legacy_init_op;
  const char* init_signature;  // the op that INIT_SIGNATURE names
} reading_t;

static weir_status_t* keep(weir_arena_t* arena, weir_view_t text, const char* what,
                           const char** out_text) {
  if (text.size && memchr(text.data, 0, text.size))
    return WEIR_STATUS(INVALID_ARGUMENT, "%s '%.*s' holds a zero byte", what, WEIR_VIEW_ARG(text));
  *out_text = weir_arena_strndup(arena, text.data, text.size);
  return *out_text ? NULL : weir_out_of_memory();
}

// ---- signatures ----

static weir_status_t* add_port(weir_port_list_t* list, const weir_port_info_t* port) {
  if (!WEIR_GROW(list->items, list->capacity, list->count + 1)) return weir_out_of_memory();
  list->items[list->count++] = *port;
  return NULL;
}

static weir_status_t* read_port(weir_arena_t* arena, const char* name, weir_view_t message,
                                int depth, weir_port_list_t* list);

// Each dense tensor of a sparse one is a port by itself.
static weir_status_t* read_sparse(weir_arena_t* arena, const char* name, weir_view_t message,
                                  weir_port_list_t* list) {
  static const char* const parts[] = {NULL, "values", "indices", "dense_shape"};
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field == 0 || r.field >= WEIR_COUNT_OF(parts) || r.type != WEIR_WIRE_BYTES) continue;
    weir_port_info_t port = {.name = weir_arena_printf(arena, "%s/%s", name, parts[r.field]),
                             .shape = &weir_shape_unknown};
    if (!port.name) return weir_out_of_memory();
    WEIR_TRY(keep(arena, r.bytes, "tensor", &port.tensor));
    WEIR_TRY(add_port(list, &port));
  }
  return weir_model_check(&r, "TensorInfo.coo_sparse");
}

static weir_status_t* read_composite(weir_arena_t* arena, const char* name, weir_view_t message,
                                     int depth, weir_port_list_t* list) {
  int index = 0;
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field != COMPOSITE_COMPONENT || r.type != WEIR_WIRE_BYTES) continue;
    char* part = weir_arena_printf(arena, "%s/%d", name, index++);
    if (!part) return weir_out_of_memory();
    WEIR_TRY(read_port(arena, part, r.bytes, depth + 1, list));
  }
  return weir_model_check(&r, "TensorInfo.composite_tensor");
}

// A TensorInfo: a tensor, or several that stand for one value.
static weir_status_t* read_port(weir_arena_t* arena, const char* name, weir_view_t message,
                                int depth, weir_port_list_t* list) {
  enum { MAX_DEPTH = 16 };
  weir_port_info_t port = {.name = name, .shape = &weir_shape_unknown};
  if (depth > MAX_DEPTH) return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is nested too deeply", name);
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field == INFO_DTYPE && r.type == WEIR_WIRE_VARINT) {
      port.dtype = r.value < WEIR_DTYPE_REF_OFFSET * 2 ? weir_dtype_base((weir_dtype_t)r.value)
                                                       : WEIR_DTYPE_COUNT;
      if (port.dtype && !weir_dtype_is_valid(port.dtype))
        return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is of a type nobody knows, %llu", name,
                           (unsigned long long)r.value);
    }
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == INFO_NAME) WEIR_TRY(keep(arena, r.bytes, "tensor", &port.tensor));
    if (r.field == INFO_SHAPE) WEIR_TRY(weir_shape_parse(r.bytes, arena, &port.shape));
    if (r.field == INFO_SPARSE) WEIR_TRY(read_sparse(arena, name, r.bytes, list));
    if (r.field == INFO_COMPOSITE) WEIR_TRY(read_composite(arena, name, r.bytes, depth, list));
  }
  WEIR_TRY(weir_model_check(&r, "TensorInfo"));
  return port.tensor && *port.tensor ? add_port(list, &port) : NULL;
}

static weir_status_t* read_port_entry(weir_arena_t* arena, weir_view_t entry,
                                      weir_port_list_t* list) {
  weir_view_t key = {0}, value = {0};
  const char* name = NULL;
  WEIR_TRY(weir_model_map_entry(entry, "SignatureDef", &key, &value));
  WEIR_TRY(keep(arena, key, "name", &name));
  return weir_status_prefix(read_port(arena, name, value, 0, list), "'%s': ", name);
}

static int compare_ports(const void* a, const void* b) {
  return strcmp(((const weir_port_info_t*)a)->name, ((const weir_port_info_t*)b)->name);
}

// In order, and where the message is: in the arena.
static weir_status_t* settle_ports(weir_arena_t* arena, weir_port_list_t* list) {
  weir_port_info_t* items = weir_arena_array(arena, list->count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  if (list->count) memcpy(items, list->items, list->count * sizeof(*items));
  weir_free(list->items);
  list->items = items;
  list->capacity = 0;
  if (list->count) qsort(items, list->count, sizeof(*items), compare_ports);
  for (size_t i = 1; i < list->count; ++i) {
    if (strcmp(items[i - 1].name, items[i].name) == 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "'%s' is there twice", items[i].name);
  }
  return NULL;
}

static weir_status_t* read_default(weir_view_t entry, weir_signature_info_t* signature) {
  weir_view_t key = {0}, value = {0};
  WEIR_TRY(weir_model_map_entry(entry, "SignatureDef.defaults", &key, &value));
  for (size_t i = 0; i < signature->inputs.count; ++i) {
    weir_port_info_t* port = &signature->inputs.items[i];
    if (weir_view_is(key, port->name)) port->default_value = value;
  }
  return NULL;
}

static weir_status_t* read_signature_fields(weir_arena_t* arena, weir_view_t message,
                                            weir_signature_info_t* signature) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == SIGNATURE_INPUT) WEIR_TRY(read_port_entry(arena, r.bytes, &signature->inputs));
    if (r.field == SIGNATURE_OUTPUT) WEIR_TRY(read_port_entry(arena, r.bytes, &signature->outputs));
    if (r.field == SIGNATURE_METHOD) WEIR_TRY(keep(arena, r.bytes, "method", &signature->method));
  }
  return weir_model_check(&r, "SignatureDef");
}

static weir_status_t* read_defaults(weir_view_t message, weir_signature_info_t* signature) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field == SIGNATURE_DEFAULT && r.type == WEIR_WIRE_BYTES)
      WEIR_TRY(read_default(r.bytes, signature));
  }
  return weir_model_check(&r, "SignatureDef");
}

// What the initialising signature gives is an op, whatever its output is called.
static void note_init(reading_t* reading, const weir_signature_info_t* signature) {
  if (signature->outputs.count) reading->init_signature = signature->outputs.items[0].tensor;
}

static weir_status_t* add_signature(reading_t* reading, weir_signature_info_t* signature) {
  weir_meta_graph_t* meta = reading->meta;
  if (strcmp(signature->name, INIT_SIGNATURE) == 0) note_init(reading, signature);
  if (weir_view_starts_with(weir_view_of(signature->name), HIDDEN_SIGNATURES)) return NULL;
  if (!WEIR_GROW(meta->signatures, reading->signature_capacity, meta->signature_count + 1))
    return weir_out_of_memory();
  meta->signatures[meta->signature_count++] = *signature;
  return NULL;
}

static weir_status_t* read_signature(reading_t* reading, weir_view_t entry) {
  weir_arena_t* arena = &reading->meta->arena;
  weir_signature_info_t signature = {.method = ""};
  weir_view_t key = {0}, value = {0};
  WEIR_TRY(weir_model_map_entry(entry, "MetaGraphDef.signature_def", &key, &value));
  WEIR_TRY(keep(arena, key, "signature", &signature.name));
  weir_status_t* status = read_signature_fields(arena, value, &signature);
  weir_status_t* settled = settle_ports(arena, &signature.inputs);
  if (!status) status = settled;
  else weir_status_destroy(settled);
  settled = settle_ports(arena, &signature.outputs);
  if (!status) status = settled;
  else weir_status_destroy(settled);
  if (!status) status = read_defaults(value, &signature);
  if (!status) status = add_signature(reading, &signature);
  return weir_status_prefix(status, "signature '%s': ", signature.name);
}

static int compare_signatures(const void* a, const void* b) {
  return strcmp(((const weir_signature_info_t*)a)->name, ((const weir_signature_info_t*)b)->name);
}

static weir_status_t* order_signatures(weir_meta_graph_t* meta) {
  weir_signature_info_t* items = meta->signatures;
  if (meta->signature_count)
    qsort(items, meta->signature_count, sizeof(*items), compare_signatures);
  for (size_t i = 1; i < meta->signature_count; ++i) {
    if (strcmp(items[i - 1].name, items[i].name) == 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "signature '%s' is there twice", items[i].name);
  }
  return NULL;
}

// ---- savers, collections, assets ----

static weir_status_t* read_saver(weir_meta_graph_t* meta, weir_view_t message) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    const char** to = NULL;
    if (r.field == SAVER_FILENAME) to = &meta->filename_tensor;
    if (r.field == SAVER_SAVE) to = &meta->save_tensor;
    if (r.field == SAVER_RESTORE) to = &meta->restore_op;
    if (to && r.type == WEIR_WIRE_BYTES) WEIR_TRY(keep(&meta->arena, r.bytes, "saver", to));
  }
  return weir_model_check(&r, "SaverDef");
}

static weir_status_t* add_table_init(reading_t* reading, const char* name) {
  weir_meta_graph_t* meta = reading->meta;
  if (!WEIR_GROW(meta->table_inits, reading->table_capacity, meta->table_init_count + 1))
    return weir_out_of_memory();
  meta->table_inits[meta->table_init_count++] = name;
  return NULL;
}

static weir_status_t* note_node(reading_t* reading, weir_view_t collection, weir_view_t node) {
  const char* name = NULL;
  WEIR_TRY(keep(&reading->meta->arena, node, "node", &name));
  if (weir_view_is(collection, MAIN_OP)) reading->main_op = name;
  if (weir_view_is(collection, LEGACY_INIT_OP)) reading->legacy_init_op = name;
  return weir_view_is(collection, TABLE_INITIALIZERS) ? add_table_init(reading, name) : NULL;
}

static weir_status_t* read_nodes(reading_t* reading, weir_view_t collection, weir_view_t message) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field == LIST_VALUE && r.type == WEIR_WIRE_BYTES)
      WEIR_TRY(note_node(reading, collection, r.bytes));
  }
  return weir_model_check(&r, "CollectionDef.NodeList");
}

static weir_status_t* read_collection(reading_t* reading, weir_view_t entry) {
  weir_view_t key = {0}, value = {0};
  WEIR_TRY(weir_model_map_entry(entry, "MetaGraphDef.collection_def", &key, &value));
  bool is_known = weir_view_is(key, MAIN_OP) || weir_view_is(key, LEGACY_INIT_OP) ||
                  weir_view_is(key, TABLE_INITIALIZERS);
  weir_wire_reader_t r = weir_wire_reader(value);
  while (is_known && weir_wire_next(&r)) {
    if (r.field == COLLECTION_NODES && r.type == WEIR_WIRE_BYTES)
      WEIR_TRY(read_nodes(reading, key, r.bytes));
  }
  return weir_model_check(&r, "CollectionDef");
}

// Whether |path| stays below the folder that it is counted from.
static bool stays_below(const char* path) {
  weir_view_t rest = weir_view_of(path), part = {0};
  if (!*path || *path == '/') return false;
  while (weir_view_next(&rest, '/', &part)) {
    if (weir_view_is(part, "..")) return false;
  }
  return true;
}

static weir_status_t* read_asset(reading_t* reading, weir_view_t message) {
  weir_meta_graph_t* meta = reading->meta;
  weir_port_list_t ports = {0};
  weir_asset_info_t asset = {.file = ""};
  weir_status_t* status = NULL;
  weir_wire_reader_t r = weir_wire_reader(message);
  while (!status && weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == ASSET_INFO) status = read_port(&meta->arena, "asset", r.bytes, 0, &ports);
    if (r.field == ASSET_FILE) status = keep(&meta->arena, r.bytes, "asset", &asset.file);
  }
  if (!status) status = weir_model_check(&r, "AssetFileDef");
  if (ports.count) asset.tensor = ports.items[0].tensor;
  weir_free(ports.items);
  if (status) return status;
  if (!asset.tensor) return WEIR_STATUS(INVALID_ARGUMENT, "asset '%s' has no tensor", asset.file);
  if (!stays_below(asset.file))
    return WEIR_STATUS(INVALID_ARGUMENT, "asset '%s' is not below assets/", asset.file);
  if (!WEIR_GROW(meta->assets, reading->asset_capacity, meta->asset_count + 1))
    return weir_out_of_memory();
  meta->assets[meta->asset_count++] = asset;
  return NULL;
}

static weir_status_t* read_field(reading_t* reading, const weir_wire_reader_t* r) {
  switch (r->field) {
    case META_GRAPH_DEF: reading->meta->graph_def = r->bytes; return NULL;
    case META_SAVER: return read_saver(reading->meta, r->bytes);
    case META_COLLECTION: return read_collection(reading, r->bytes);
    case META_SIGNATURE: return read_signature(reading, r->bytes);
    case META_ASSET: return read_asset(reading, r->bytes);
    default: return NULL;
  }
}

weir_status_t* weir_meta_graph_read(weir_view_t message, weir_meta_graph_t* out_meta) {
  *out_meta = (weir_meta_graph_t){
      .filename_tensor = "", .save_tensor = "", .restore_op = "", .init_op = ""};
  reading_t reading = {.meta = out_meta};
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.type == WEIR_WIRE_BYTES) WEIR_TRY(read_field(&reading, &r));
  }
  WEIR_TRY(weir_model_check(&r, "MetaGraphDef"));
  const char* init = reading.init_signature;
  if (!init) init = reading.main_op;
  if (!init) init = reading.legacy_init_op;
  if (init) out_meta->init_op = init;
  return order_signatures(out_meta);
}

void weir_meta_graph_free(weir_meta_graph_t* meta) {
  weir_free(meta->signatures);
  weir_free(meta->assets);
  weir_free((void*)meta->table_inits);
  weir_arena_free(&meta->arena);
  *meta = (weir_meta_graph_t){0};
}
