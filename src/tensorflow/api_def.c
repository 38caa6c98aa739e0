// api_def.c — ApiDef messages: made of OpDefs, read, applied, written.
#include "tensorflow/api_def.h"

#include "wire/wire.h"

enum {
  API_NAME = 1,
  API_VISIBILITY = 2,
  API_ENDPOINT = 3,
  API_IN_ARG = 4,
  API_OUT_ARG = 5,
  API_ATTR = 6,
  API_SUMMARY = 7,
  API_DESCRIPTION = 8,
  API_DESCRIPTION_PREFIX = 9,
  API_DESCRIPTION_SUFFIX = 10,
  API_ARG_ORDER = 11,
  API_DEPRECATION_MESSAGE = 12,
  API_DEPRECATION_VERSION = 13,
};
enum { ITEM_NAME = 1, ITEM_RENAME_TO = 2, ARG_DESCRIPTION = 3 };
enum { ATTR_DEFAULT_VALUE = 3, ATTR_DESCRIPTION = 4 };
enum { ENDPOINT_NAME = 1 };
enum { VISIBLE = 1 };
enum {
  OP_NAME = 1,
  OP_INPUT = 2,
  OP_OUTPUT = 3,
  OP_ATTR = 4,
  OP_SUMMARY = 5,
  OP_DESCRIPTION = 6,
};
enum { OP_ARG_NAME = 1, OP_ARG_DESCRIPTION = 2 };
enum { OP_ATTR_NAME = 1, OP_ATTR_DEFAULT_VALUE = 3, OP_ATTR_DESCRIPTION = 4 };

// ---- lists ----

// Room for one more at the end; the arena keeps what was before.
static void* grow(weir_arena_t* arena, const void* items, size_t count, size_t size) {
  char* grown = weir_arena_array(arena, count + 1, size);
  if (grown && count) memcpy(grown, items, count * size);
  return grown;
}

static weir_status_t* add_item(weir_arena_t* arena, tf_api_items_t* list, tf_api_item_t item) {
  tf_api_item_t* items = grow(arena, list->items, list->count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  items[list->count] = item;
  *list = (tf_api_items_t){.items = items, .count = list->count + 1};
  return NULL;
}

static weir_status_t* add_view(weir_arena_t* arena, tf_api_views_t* list, weir_view_t view) {
  weir_view_t* items = grow(arena, list->items, list->count, sizeof(*items));
  if (!items) return weir_out_of_memory();
  items[list->count] = view;
  *list = (tf_api_views_t){.items = items, .count = list->count + 1};
  return NULL;
}

// ---- of an OpDef ----

// Fields by number, of messages that are all strings and messages.
static weir_status_t* read_op_item(weir_view_t message, bool is_attr, tf_api_item_t* out) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == OP_ARG_NAME) out->name = r.bytes;
    if (is_attr && r.field == OP_ATTR_DEFAULT_VALUE) out->default_value = r.bytes;
    if (r.field == (is_attr ? (uint32_t)OP_ATTR_DESCRIPTION : (uint32_t)OP_ARG_DESCRIPTION))
      out->description = r.bytes;
  }
  out->rename_to = out->name;
  return weir_wire_check(&r, "OpDef");
}

static weir_status_t* add_endpoint(weir_arena_t* arena, tf_api_def_t* def) {
  weir_strbuf_t endpoint = {0};
  weir_wire_put_bytes(&endpoint, ENDPOINT_NAME, def->name.data, def->name.size);
  weir_status_t* status = weir_strbuf_finish(&endpoint);
  const char* copy = status ? NULL : weir_arena_strndup(arena, endpoint.data, endpoint.size);
  if (!status && !copy) status = weir_out_of_memory();
  if (!status) status = add_view(arena, &def->endpoints, weir_view(copy, endpoint.size));
  weir_strbuf_free(&endpoint);
  return status;
}

static weir_status_t* add_op_item(const weir_wire_reader_t* r, weir_arena_t* arena,
                                  tf_api_def_t* out) {
  tf_api_item_t item = {.name = {0}};
  WEIR_TRY(read_op_item(r->bytes, r->field == OP_ATTR, &item));
  if (r->field == OP_INPUT) WEIR_TRY(add_view(arena, &out->arg_order, item.name));
  tf_api_items_t* list = r->field == OP_INPUT    ? &out->inputs
                         : r->field == OP_OUTPUT ? &out->outputs
                                                 : &out->attrs;
  return add_item(arena, list, item);
}

weir_status_t* tf_api_def_of_op(weir_view_t op_def, weir_arena_t* arena, tf_api_def_t* out) {
  *out = (tf_api_def_t){.visibility = VISIBLE};
  weir_wire_reader_t r = weir_wire_reader(op_def);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == OP_NAME) out->name = r.bytes;
    if (r.field == OP_SUMMARY) out->summary = r.bytes;
    if (r.field == OP_DESCRIPTION) out->description = r.bytes;
    if (r.field >= OP_INPUT && r.field <= OP_ATTR) WEIR_TRY(add_op_item(&r, arena, out));
  }
  WEIR_TRY(weir_wire_check(&r, "OpDef"));
  return add_endpoint(arena, out);
}

// ---- of an ApiDef ----

static weir_status_t* read_item(weir_view_t message, bool is_attr, tf_api_item_t* out) {
  const uint32_t description = is_attr ? (uint32_t)ATTR_DESCRIPTION : (uint32_t)ARG_DESCRIPTION;
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == ITEM_NAME) out->name = r.bytes;
    if (r.field == ITEM_RENAME_TO) out->rename_to = r.bytes;
    if (is_attr && r.field == ATTR_DEFAULT_VALUE) out->default_value = r.bytes;
    if (r.field == description) out->description = r.bytes;
  }
  return weir_wire_check(&r, "ApiDef");
}

static weir_status_t* read_field(const weir_wire_reader_t* r, weir_arena_t* arena,
                                 tf_api_def_t* out) {
  tf_api_item_t item = {.name = {0}};
  switch (r->field) {
    case API_NAME: out->name = r->bytes; break;
    case API_ENDPOINT: return add_view(arena, &out->endpoints, r->bytes);
    case API_IN_ARG:
      WEIR_TRY(read_item(r->bytes, false, &item));
      return add_item(arena, &out->inputs, item);
    case API_OUT_ARG:
      WEIR_TRY(read_item(r->bytes, false, &item));
      return add_item(arena, &out->outputs, item);
    case API_ATTR:
      WEIR_TRY(read_item(r->bytes, true, &item));
      return add_item(arena, &out->attrs, item);
    case API_SUMMARY: out->summary = r->bytes; break;
    case API_DESCRIPTION: out->description = r->bytes; break;
    case API_DESCRIPTION_PREFIX: out->description_prefix = r->bytes; break;
    case API_DESCRIPTION_SUFFIX: out->description_suffix = r->bytes; break;
    case API_ARG_ORDER: return add_view(arena, &out->arg_order, r->bytes);
    case API_DEPRECATION_MESSAGE: out->deprecation_message = r->bytes; break;
    default: break;
  }
  return NULL;
}

weir_status_t* tf_api_def_parse(weir_view_t api_def, weir_arena_t* arena, tf_api_def_t* out) {
  *out = (tf_api_def_t){.visibility = 0};
  weir_wire_reader_t r = weir_wire_reader(api_def);
  while (weir_wire_next(&r)) {
    if (r.type == WEIR_WIRE_BYTES) WEIR_TRY(read_field(&r, arena, out));
    if (r.type != WEIR_WIRE_VARINT) continue;
    if (r.field == API_VISIBILITY) out->visibility = weir_wire_int(&r);
    if (r.field == API_DEPRECATION_VERSION) out->deprecation_version = weir_wire_int(&r);
  }
  return weir_wire_check(&r, "ApiDef");
}

// ---- changes ----

static void replace(weir_view_t* text, weir_view_t by) {
  if (by.size) *text = by;
}

static tf_api_item_t* find_item(const tf_api_items_t* list, weir_view_t name) {
  for (size_t i = 0; i < list->count; ++i) {
    if (weir_view_equal(list->items[i].name, name)) return &list->items[i];
  }
  return NULL;
}

static weir_status_t* change_items(const char* what, weir_view_t op, tf_api_items_t* list,
                                   const tf_api_items_t* changes) {
  for (size_t i = 0; i < changes->count; ++i) {
    const tf_api_item_t* change = &changes->items[i];
    tf_api_item_t* item = find_item(list, change->name);
    if (!item)
      return WEIR_STATUS(FAILED_PRECONDITION, "%s %.*s not defined in base api for %.*s", what,
                         WEIR_VIEW_ARG(change->name), WEIR_VIEW_ARG(op));
    replace(&item->rename_to, change->rename_to);
    replace(&item->description, change->description);
    if (change->default_value.data) item->default_value = change->default_value;
  }
  return NULL;
}

static size_t count_of(const tf_api_views_t* list, weir_view_t view) {
  size_t count = 0;
  for (size_t i = 0; i < list->count; ++i) count += weir_view_equal(list->items[i], view);
  return count;
}

static weir_status_t* change_order(tf_api_def_t* def, const tf_api_views_t* order) {
  if (!order->count) return NULL;
  bool is_same = order->count == def->arg_order.count;
  for (size_t i = 0; is_same && i < order->count; ++i)
    is_same = count_of(order, order->items[i]) == count_of(&def->arg_order, order->items[i]);
  if (!is_same)
    return WEIR_STATUS(FAILED_PRECONDITION, "Invalid arg_order for %.*s: not all of its arguments",
                       WEIR_VIEW_ARG(def->name));
  def->arg_order = *order;
  return NULL;
}

// |first|, a line end, |second|.
static weir_status_t* put_after(weir_view_t first, weir_view_t second, weir_arena_t* arena,
                                weir_view_t* out) {
  const char* text =
      weir_arena_printf(arena, "%.*s\n%.*s", WEIR_VIEW_ARG(first), WEIR_VIEW_ARG(second));
  if (!text) return weir_out_of_memory();
  *out = weir_view_of(text);
  return NULL;
}

weir_status_t* tf_api_def_change(tf_api_def_t* def, const tf_api_def_t* changes,
                                 weir_arena_t* arena) {
  if (changes->visibility) def->visibility = changes->visibility;
  replace(&def->deprecation_message, changes->deprecation_message);
  if (changes->deprecation_version) def->deprecation_version = changes->deprecation_version;
  if (changes->endpoints.count) def->endpoints = changes->endpoints;
  WEIR_TRY(change_items("Argument", def->name, &def->inputs, &changes->inputs));
  WEIR_TRY(change_items("Argument", def->name, &def->outputs, &changes->outputs));
  WEIR_TRY(change_order(def, &changes->arg_order));
  WEIR_TRY(change_items("Attribute", def->name, &def->attrs, &changes->attrs));
  replace(&def->summary, changes->summary);
  replace(&def->description, changes->description);
  weir_view_t* text = &def->description;
  if (changes->description_prefix.size)
    WEIR_TRY(put_after(changes->description_prefix, *text, arena, text));
  if (changes->description_suffix.size)
    WEIR_TRY(put_after(*text, changes->description_suffix, arena, text));
  return NULL;
}

// ---- names within texts ----

// Replaces |from| between backquotes.
static weir_status_t* rename_in(weir_view_t* text, weir_view_t from, weir_view_t to,
                                weir_arena_t* arena) {
  weir_strbuf_t out = {0};
  bool is_changed = false;
  for (size_t i = 0; i < text->size;) {
    const char* at = text->data + i;
    const bool is_name = text->size - i >= from.size + 2 && at[0] == '`' &&
                         at[from.size + 1] == '`' && !memcmp(at + 1, from.data, from.size);
    if (is_name) weir_strbuf_printf(&out, "`%.*s`", WEIR_VIEW_ARG(to));
    else weir_strbuf_putc(&out, *at);
    i += is_name ? from.size + 2 : 1;
    is_changed |= is_name;
  }
  weir_status_t* status = weir_strbuf_finish(&out);
  const char* copy = status || !is_changed ? NULL : weir_arena_strndup(arena, out.data, out.size);
  if (!status && is_changed && !copy) status = weir_out_of_memory();
  if (copy) *text = weir_view(copy, out.size);
  weir_strbuf_free(&out);
  return status;
}

static weir_status_t* rename_everywhere(tf_api_def_t* def, const tf_api_item_t* item,
                                        weir_arena_t* arena) {
  tf_api_items_t* lists[] = {&def->inputs, &def->outputs, &def->attrs};
  const weir_view_t from = item->name;
  const weir_view_t to = item->rename_to;
  for (size_t l = 0; l < WEIR_COUNT_OF(lists); ++l) {
    for (size_t i = 0; i < lists[l]->count; ++i)
      WEIR_TRY(rename_in(&lists[l]->items[i].description, from, to, arena));
  }
  WEIR_TRY(rename_in(&def->summary, from, to, arena));
  return rename_in(&def->description, from, to, arena);
}

weir_status_t* tf_api_def_rename_in_texts(tf_api_def_t* def, weir_arena_t* arena) {
  const tf_api_items_t* lists[] = {&def->inputs, &def->outputs, &def->attrs};
  for (size_t l = 0; l < WEIR_COUNT_OF(lists); ++l) {
    for (size_t i = 0; i < lists[l]->count; ++i) {
      const tf_api_item_t* item = &lists[l]->items[i];
      if (!weir_view_equal(item->name, item->rename_to))
        WEIR_TRY(rename_everywhere(def, item, arena));
    }
  }
  return NULL;
}

// ---- writing ----

static void put_text(weir_strbuf_t* out, uint32_t field, weir_view_t text) {
  if (text.size) weir_wire_put_bytes(out, field, text.data, text.size);
}

static void put_items(weir_strbuf_t* out, uint32_t field, const tf_api_items_t* list) {
  const bool is_attr = field == API_ATTR;
  for (size_t i = 0; i < list->count; ++i) {
    const tf_api_item_t* item = &list->items[i];
    const size_t begin = weir_wire_begin(out, field);
    put_text(out, ITEM_NAME, item->name);
    put_text(out, ITEM_RENAME_TO, item->rename_to);
    if (item->default_value.data)
      weir_wire_put_bytes(out, ATTR_DEFAULT_VALUE, item->default_value.data,
                          item->default_value.size);
    put_text(out, is_attr ? ATTR_DESCRIPTION : ARG_DESCRIPTION, item->description);
    weir_wire_end(out, begin);
  }
}

static void put_views(weir_strbuf_t* out, uint32_t field, const tf_api_views_t* list) {
  for (size_t i = 0; i < list->count; ++i)
    weir_wire_put_bytes(out, field, list->items[i].data, list->items[i].size);
}

void tf_api_def_write(const tf_api_def_t* def, weir_strbuf_t* out) {
  put_text(out, API_NAME, def->name);
  if (def->visibility) weir_wire_put_int(out, API_VISIBILITY, def->visibility);
  put_views(out, API_ENDPOINT, &def->endpoints);
  put_items(out, API_IN_ARG, &def->inputs);
  put_items(out, API_OUT_ARG, &def->outputs);
  put_items(out, API_ATTR, &def->attrs);
  put_text(out, API_SUMMARY, def->summary);
  put_text(out, API_DESCRIPTION, def->description);
  put_views(out, API_ARG_ORDER, &def->arg_order);
  put_text(out, API_DEPRECATION_MESSAGE, def->deprecation_message);
  if (def->deprecation_version)
    weir_wire_put_int(out, API_DEPRECATION_VERSION, def->deprecation_version);
}
