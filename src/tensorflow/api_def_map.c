// api_def_map.c — TF_ApiDefMap: how ops are presented, for generators of bindings.
#include "base/map.h"
#include "tensorflow/api_def.h"
#include "tensorflow/internal.h"
#include "wire/wire.h"

// A message that views point into.
typedef struct kept_t {
  weir_strbuf_t bytes;
  struct kept_t* next;
} kept_t;

struct TF_ApiDefMap {
  weir_mutex_t mu;  // guards what follows
  weir_arena_t arena;
  weir_map_t by_name;  // → tf_api_def_t
  kept_t* kept;
  bool is_final;  // asked for once: texts have the new names
};

enum { OP_LIST_OP = 1, API_DEFS_OP = 1 };

// ---- making ----

// A message of the map's own, for views to point into; owned by the map.
static weir_status_t* keep(TF_ApiDefMap* map, kept_t** out_kept) {
  kept_t* kept = weir_calloc(1, sizeof(*kept));
  if (!kept) return weir_out_of_memory();
  kept->next = map->kept;
  map->kept = kept;
  *out_kept = kept;
  return NULL;
}

static weir_status_t* add_op(TF_ApiDefMap* map, weir_view_t op_def) {
  tf_api_def_t* def = weir_arena_alloc(&map->arena, sizeof(*def));
  if (!def) return weir_out_of_memory();
  WEIR_TRY(tf_api_def_of_op(op_def, &map->arena, def));
  return weir_map_put(&map->by_name, def->name, def);
}

static weir_status_t* add_ops(TF_ApiDefMap* map, const TF_Buffer* op_list) {
  kept_t* kept = NULL;
  WEIR_TRY(keep(map, &kept));
  weir_strbuf_append(&kept->bytes, op_list->data, op_list->length);
  WEIR_TRY(weir_strbuf_finish(&kept->bytes));
  weir_wire_reader_t r = weir_wire_reader(weir_strbuf_view(&kept->bytes));
  while (weir_wire_next(&r)) {
    if (r.field == OP_LIST_OP && r.type == WEIR_WIRE_BYTES) WEIR_TRY(add_op(map, r.bytes));
  }
  return weir_wire_check(&r, "OpList");
}

TF_ApiDefMap* TF_NewApiDefMap(TF_Buffer* op_list_buffer, TF_Status* status) {
  TF_ApiDefMap* map = weir_calloc(1, sizeof(*map));
  if (map) weir_mutex_init(&map->mu);
  if (tf_status_take(status, map ? add_ops(map, op_list_buffer) : weir_out_of_memory())) return map;
  TF_DeleteApiDefMap(map);
  return NULL;
}

void TF_DeleteApiDefMap(TF_ApiDefMap* map) {
  if (!map) return;
  for (kept_t *kept = map->kept, *next; kept; kept = next) {
    next = kept->next;
    weir_strbuf_free(&kept->bytes);
    weir_free(kept);
  }
  weir_map_free(&map->by_name);
  weir_arena_free(&map->arena);
  weir_mutex_destroy(&map->mu);
  weir_free(map);
}

// ---- changing ----

static weir_status_t* change_op(TF_ApiDefMap* map, weir_view_t message) {
  tf_api_def_t changes;
  WEIR_TRY(tf_api_def_parse(message, &map->arena, &changes));
  tf_api_def_t* def = weir_map_find(&map->by_name, changes.name);
  return def ? tf_api_def_change(def, &changes, &map->arena) : NULL;  // of ops not listed: ignored
}

static weir_status_t* put_locked(TF_ApiDefMap* map, weir_view_t text) {
  if (map->is_final)
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "TF_ApiDefMapPut cannot be called after TF_ApiDefMapGet has been called.");
  kept_t* kept = NULL;
  WEIR_TRY(keep(map, &kept));
  WEIR_TRY(tf_api_defs_from_text(text, &kept->bytes));
  weir_wire_reader_t r = weir_wire_reader(weir_strbuf_view(&kept->bytes));
  while (weir_wire_next(&r)) {
    if (r.field == API_DEFS_OP && r.type == WEIR_WIRE_BYTES) WEIR_TRY(change_op(map, r.bytes));
  }
  return weir_wire_check(&r, "ApiDefs");
}

void TF_ApiDefMapPut(TF_ApiDefMap* api_def_map, const char* text, size_t text_len,
                     TF_Status* status) {
  weir_mutex_lock(&api_def_map->mu);
  weir_status_t* failure = put_locked(api_def_map, weir_view(text, text_len));
  weir_mutex_unlock(&api_def_map->mu);
  tf_status_take(status, failure);
}

// ---- asking ----

static weir_status_t* finish_locked(TF_ApiDefMap* map) {
  weir_map_entry_t* entry = NULL;
  if (map->is_final) return NULL;
  map->is_final = true;
  for (size_t i = 0; (entry = weir_map_next(&map->by_name, &i));)
    WEIR_TRY(tf_api_def_rename_in_texts(entry->value, &map->arena));
  return NULL;
}

static weir_status_t* get_locked(TF_ApiDefMap* map, weir_view_t name, TF_Buffer** out_buffer) {
  WEIR_TRY(finish_locked(map));
  const tf_api_def_t* def = weir_map_find(&map->by_name, name);
  if (!def) return NULL;
  weir_strbuf_t bytes = {0};
  tf_api_def_write(def, &bytes);
  weir_status_t* status = weir_strbuf_finish(&bytes);
  if (!status) *out_buffer = tf_buffer_new(&bytes);
  else weir_strbuf_free(&bytes);
  return status || *out_buffer ? status : weir_out_of_memory();
}

TF_Buffer* TF_ApiDefMapGet(TF_ApiDefMap* api_def_map, const char* name, size_t name_len,
                           TF_Status* status) {
  TF_Buffer* buffer = NULL;
  weir_mutex_lock(&api_def_map->mu);
  weir_status_t* failure = get_locked(api_def_map, weir_view(name, name_len), &buffer);
  weir_mutex_unlock(&api_def_map->mu);
  tf_status_take(status, failure);
  return buffer;
}
