// resource.c — The resource manager: a table of reference-counted state by container, name and
// type.
#include "op/resource.h"

#include "base/alloc.h"
#include "base/map.h"
#include "op/gate.h"

struct weir_resources_t {
  weir_mutex_t mu;
  weir_map_t table;  // guarded by mu; "container\0name\0type" → weir_resource_t, one reference each
  char* default_container;  // immutable
  weir_resources_t* next;   // of the next device; guarded by mu, and then stays
  weir_gate_t* gate;        // before its variables; immutable once steps run; NULL: none
};

// ---- references ----

void weir_resource_init(weir_resource_t* resource, const weir_resource_type_t* type) {
  resource->type = type;
  weir_ref_init(&resource->ref);
}

weir_resource_t* weir_resource_retain(weir_resource_t* resource) {
  if (resource) weir_ref_inc(&resource->ref, 1);
  return resource;
}

void weir_resource_release(weir_resource_t* resource) {
  if (resource && weir_ref_dec(&resource->ref)) resource->type->destroy(resource);
}

// ---- keys ----

// A key is built on the stack; only very long names take memory.
typedef struct resource_key_t {
  char small[256];
  char* large;
  weir_view_t view;
} resource_key_t;

static weir_status_t* key_init(resource_key_t* key, const weir_resources_t* resources,
                               weir_view_t container, weir_view_t name, const char* type) {
  if (container.size == 0) container = weir_view_of(resources->default_container);
  size_t type_size = strlen(type);
  size_t size = container.size + 1 + name.size + 1 + type_size;
  key->large = NULL;
  char* at = key->small;
  if (size > sizeof(key->small)) {
    key->large = weir_malloc(size);
    if (!key->large) return weir_out_of_memory();
    at = key->large;
  }
  key->view = weir_view(at, size);
  memcpy(at, container.data, container.size);
  at += container.size;
  *at++ = '\0';
  if (name.size) memcpy(at, name.data, name.size);
  at += name.size;
  *at++ = '\0';
  memcpy(at, type, type_size);
  return NULL;
}

static void key_free(resource_key_t* key) { weir_free(key->large); }

static weir_status_t* not_found(const resource_key_t* key) {
  const char* container = key->view.data;
  const char* name = container + strlen(container) + 1;
  size_t type_at = (size_t)(name - container) + strlen(name) + 1;
  weir_view_t type = weir_view(container + type_at, key->view.size - type_at);
  return WEIR_STATUS(NOT_FOUND, "Resource %s/%s/%.*s does not exist.", container, name,
                     WEIR_VIEW_ARG(type));
}

// ---- lifetime ----

weir_status_t* weir_resources_create(const char* default_container,
                                     weir_resources_t** out_resources) {
  weir_resources_t* resources = weir_calloc(1, sizeof(*resources));
  if (!resources) return weir_out_of_memory();
  resources->default_container = weir_strdup(default_container);
  if (!resources->default_container) {
    weir_free(resources);
    return weir_out_of_memory();
  }
  weir_mutex_init(&resources->mu);
  resources->table.owns_keys = true;
  *out_resources = resources;
  return NULL;
}

static weir_resources_t* next_of(weir_resources_t* resources) {
  weir_mutex_lock(&resources->mu);
  weir_resources_t* next = resources->next;
  weir_mutex_unlock(&resources->mu);
  return next;
}

weir_status_t* weir_resources_reserve(weir_resources_t* resources, int count) {
  for (int i = 1; i < count; ++i) {
    weir_status_t* status = NULL;
    weir_mutex_lock(&resources->mu);
    if (!resources->next)
      status = weir_resources_create(resources->default_container, &resources->next);
    weir_mutex_unlock(&resources->mu);
    if (status) return status;
    resources = next_of(resources);
  }
  return NULL;
}

weir_resources_t* weir_resources_of(weir_resources_t* resources, int ordinal) {
  for (int i = 0; i < ordinal; ++i) resources = next_of(resources);
  return resources;
}

static void clear_own(weir_resources_t* resources);

void weir_resources_destroy(weir_resources_t* resources) {
  if (!resources) return;
  clear_own(resources);
  weir_resources_destroy(resources->next);
  weir_map_free(&resources->table);
  weir_mutex_destroy(&resources->mu);
  weir_free(resources->default_container);
  weir_free(resources);
}

// ---- access ----

weir_status_t* weir_resources_find(weir_resources_t* resources, weir_view_t container,
                                   weir_view_t name, const weir_resource_type_t* type,
                                   weir_resource_t** out_resource) {
  resource_key_t key;
  WEIR_TRY(key_init(&key, resources, container, name, type->name));
  weir_mutex_lock(&resources->mu);
  weir_resource_t* resource = weir_resource_retain(weir_map_find(&resources->table, key.view));
  weir_mutex_unlock(&resources->mu);
  weir_status_t* status = resource ? NULL : not_found(&key);
  key_free(&key);
  if (!status) *out_resource = resource;
  return status;
}

static weir_status_t* find_or_create_locked(weir_resources_t* resources, weir_view_t key,
                                            weir_resource_create_fn_t create, void* arg,
                                            weir_resource_t** out_resource)
    WEIR_REQUIRES(resources->mu) {
  weir_resource_t* resource = weir_map_find(&resources->table, key);
  if (!resource) {
    WEIR_TRY(create(arg, &resource));
    weir_status_t* status = weir_map_put(&resources->table, key, resource);
    if (status) {
      weir_resource_release(resource);
      return status;
    }
  }
  *out_resource = weir_resource_retain(resource);
  return NULL;
}

weir_status_t* weir_resources_find_or_create(weir_resources_t* resources, weir_view_t container,
                                             weir_view_t name, const weir_resource_type_t* type,
                                             weir_resource_create_fn_t create, void* arg,
                                             weir_resource_t** out_resource) {
  resource_key_t key;
  WEIR_TRY(key_init(&key, resources, container, name, type->name));
  weir_mutex_lock(&resources->mu);
  weir_status_t* status = find_or_create_locked(resources, key.view, create, arg, out_resource);
  weir_mutex_unlock(&resources->mu);
  key_free(&key);
  return status;
}

weir_status_t* weir_resources_add(weir_resources_t* resources, weir_view_t container,
                                  weir_view_t name, weir_resource_t* take_resource) {
  const char* type = take_resource->type->name;
  resource_key_t key = {.large = NULL};
  weir_status_t* status = key_init(&key, resources, container, name, type);
  if (status) goto done;
  weir_mutex_lock(&resources->mu);
  bool is_taken = weir_map_find(&resources->table, key.view) != NULL;
  if (!is_taken) status = weir_map_put(&resources->table, key.view, take_resource);
  weir_mutex_unlock(&resources->mu);
  if (is_taken) {
    status = WEIR_STATUS(ALREADY_EXISTS, "Resource %s/%.*s/%s", key.view.data, WEIR_VIEW_ARG(name),
                         type);
  }
done:
  if (status) weir_resource_release(take_resource);
  key_free(&key);
  return status;
}

// Outside the lock: closing wakes waiters, whose continuations may come back to the manager.
static void drop(weir_resource_t* take_resource) {
  if (take_resource->type->close) take_resource->type->close(take_resource);
  weir_resource_release(take_resource);
}

weir_status_t* weir_resources_remove(weir_resources_t* resources, weir_view_t container,
                                     weir_view_t name, const weir_resource_type_t* type) {
  resource_key_t key;
  WEIR_TRY(key_init(&key, resources, container, name, type->name));
  weir_mutex_lock(&resources->mu);
  weir_resource_t* resource = weir_map_remove(&resources->table, key.view);
  weir_mutex_unlock(&resources->mu);
  weir_status_t* status = resource ? NULL : not_found(&key);
  if (resource) drop(resource);
  key_free(&key);
  return status;
}

// Takes one resource of |container| (any when its data is NULL) out of the table; NULL when there
// is none.
static weir_resource_t* pop(weir_resources_t* resources, weir_view_t container) {
  weir_resource_t* resource = NULL;
  weir_mutex_lock(&resources->mu);
  weir_map_entry_t* entry = NULL;
  for (size_t i = 0; (entry = weir_map_next(&resources->table, &i));) {
    if (container.data && !weir_view_is(container, entry->key.data)) continue;
    resource = weir_map_remove(&resources->table, entry->key);
    break;
  }
  weir_mutex_unlock(&resources->mu);
  return resource;
}

void weir_resources_clear(weir_resources_t* resources, weir_view_t container) {
  if (container.size == 0) container = weir_view_of(resources->default_container);
  for (; resources; resources = next_of(resources)) {
    weir_resource_t* resource = NULL;
    while ((resource = pop(resources, container))) drop(resource);
  }
}

static void clear_own(weir_resources_t* resources) {
  weir_resource_t* resource = NULL;
  while ((resource = pop(resources, weir_view(NULL, 0)))) drop(resource);
}

void weir_resources_clear_all(weir_resources_t* resources) {
  for (; resources; resources = next_of(resources)) clear_own(resources);
}

void weir_resources_visit(weir_resources_t* resources, const weir_resource_type_t* type,
                          weir_resource_visit_fn_t fn, void* arg) {
  weir_mutex_lock(&resources->mu);
  weir_map_entry_t* entry = NULL;
  for (size_t i = 0; (entry = weir_map_next(&resources->table, &i));) {
    weir_resource_t* resource = entry->value;
    const char* container = entry->key.data;
    if (resource->type == type) fn(arg, container, container + strlen(container) + 1, resource);
  }
  weir_resources_t* next = resources->next;
  weir_mutex_unlock(&resources->mu);
  if (next) weir_resources_visit(next, type, fn, arg);
}

void weir_resources_describe(weir_resources_t* resources, weir_strbuf_t* out) {
  weir_mutex_lock(&resources->mu);
  weir_map_entry_t* entry = NULL;
  for (size_t i = 0; (entry = weir_map_next(&resources->table, &i));) {
    weir_resource_t* resource = entry->value;
    const char* container = entry->key.data;
    weir_strbuf_printf(out, "%s/%s %s", container, container + strlen(container) + 1,
                       resource->type->name);
    if (resource->type->describe) {
      weir_strbuf_puts(out, ": ");
      resource->type->describe(resource, out);
    }
    weir_strbuf_putc(out, '\n');
  }
  weir_resources_t* next = resources->next;
  weir_mutex_unlock(&resources->mu);
  if (next) weir_resources_describe(next, out);
}

weir_gate_t* weir_gate_of(const weir_resources_t* resources) {
  return resources ? resources->gate : NULL;
}

void weir_gate_set(weir_resources_t* resources, weir_gate_t* gate) { resources->gate = gate; }
