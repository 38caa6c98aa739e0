// homes.c — A table of device names, by what names state: container, and name there.
#include "runtime/homes.h"

#include "base/string.h"

typedef struct home_t {
  weir_lru_item_t lru;  // first
  char device[];
} home_t;

weir_status_t* weir_homes_create(size_t limit, weir_homes_t** out_homes) {
  weir_homes_t* homes = weir_calloc(1, sizeof(*homes));
  if (!homes) return weir_out_of_memory();
  weir_mutex_init(&homes->mu);
  weir_lru_init(&homes->items, limit);
  *out_homes = homes;
  return NULL;
}

void weir_homes_destroy(weir_homes_t* homes) {
  if (!homes) return;
  weir_map_entry_t* entry;
  for (size_t i = 0; (entry = weir_map_next(&homes->items.items, &i));) weir_free(entry->value);
  weir_lru_free(&homes->items);
  weir_mutex_destroy(&homes->mu);
  weir_free(homes);
}

bool weir_node_makes_state(const weir_node_t* node) {
  if (!weir_node_has(node, WEIR_OP_STATEFUL) || node->def.output_count != 1) return false;
  weir_dtype_t type = node->def.output_types[0];
  return node->def.input_count == 0 &&
         (weir_dtype_is_ref(type) || weir_dtype_base(type) == WEIR_DTYPE_RESOURCE);
}

static weir_view_t text_of(const weir_node_t* node, const char* attr) {
  const weir_attr_t* value = weir_attrs_find(node->def.attrs, attr);
  bool is_text = value && value->kind == WEIR_ATTR_STRING && !value->is_list;
  return is_text ? value->u.s : weir_view("", 0);
}

static weir_status_t* make_key(const weir_node_t* node, weir_strbuf_t* key) {
  weir_view_t container = text_of(node, "container"), name = text_of(node, "shared_name");
  if (!name.size) name = weir_view_of(node->def.name);
  weir_strbuf_append(key, container.data, container.size);
  weir_strbuf_putc(key, '\0');
  weir_strbuf_append(key, name.data, name.size);
  return weir_strbuf_finish(key);
}

weir_status_t* weir_homes_find(weir_homes_t* homes, const weir_node_t* node,
                               const weir_placement_t* devices, int device_count, int* out_device) {
  weir_strbuf_t key = {0};
  weir_status_t* status = make_key(node, &key);
  const home_t* home = status ? NULL : weir_lru_find(&homes->items, weir_strbuf_view(&key));
  weir_strbuf_free(&key);
  *out_device = -1;
  for (int i = 0; i < device_count && home && *out_device < 0; ++i) {
    if (strcmp(home->device, devices[i].device) == 0) *out_device = i;
  }
  return status;
}

static weir_status_t* put(weir_homes_t* homes, weir_view_t key, const char* device) {
  size_t size = strlen(device) + 1;
  void* evicted = NULL;
  home_t* home = weir_calloc(1, sizeof(*home) + size);
  if (!home) return weir_out_of_memory();
  memcpy(home->device, device, size);
  weir_status_t* status = weir_lru_put(&homes->items, key, home, &evicted);
  weir_free(status ? home : evicted);
  return status;
}

weir_status_t* weir_homes_add(weir_homes_t* homes, const weir_node_t* node, const char* device) {
  weir_strbuf_t key = {0};
  weir_status_t* status = make_key(node, &key);
  if (!status && !weir_lru_find(&homes->items, weir_strbuf_view(&key)))
    status = put(homes, weir_strbuf_view(&key), device);
  weir_strbuf_free(&key);
  return status;
}
