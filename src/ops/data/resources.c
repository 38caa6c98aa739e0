// resources.c — Handles that carry their resource, and what is found by such a handle's name.
#include "ops/data/resources.h"

#include <pthread.h>
#include <stdio.h>

#include "base/map.h"

// ---- names ----

// Of resources that handles carry, while these live. Names are of this process, as the handles are.
static weir_mutex_t mu = {PTHREAD_MUTEX_INITIALIZER};
static weir_map_t by_name = {.owns_keys = true};      // guarded by mu; name → resource
static weir_map_t by_resource = {.owns_keys = true};  // guarded by mu; its address → name

static weir_view_t address_of(weir_resource_t* const* resource) {
  return weir_view((const char*)resource, sizeof(*resource));
}

static void drop_name_locked(weir_resource_t* resource) {
  char* name = weir_map_remove(&by_resource, address_of(&resource));
  if (name) weir_map_remove(&by_name, weir_view_of(name));
  weir_free(name);
  if (by_name.count > 0) return;
  weir_map_free(&by_name);
  weir_map_free(&by_resource);
}

static weir_status_t* keep_name(weir_resource_t* resource, const char* name) {
  char* copy = weir_strdup(name);
  if (!copy) return weir_out_of_memory();
  weir_mutex_lock(&mu);
  weir_status_t* status = weir_map_put(&by_resource, address_of(&resource), copy);
  if (status) weir_free(copy);
  else status = weir_map_put(&by_name, weir_view_of(name), resource);
  if (status) drop_name_locked(resource);
  weir_mutex_unlock(&mu);
  return status;
}

weir_resource_t* weir_data_find_named(weir_view_t name, const weir_resource_type_t* type) {
  weir_mutex_lock(&mu);
  weir_resource_t* resource = weir_map_find(&by_name, name);
  // The handle has its reference until the name is gone.
  if (resource) resource = resource->type == type ? weir_resource_retain(resource) : NULL;
  weir_mutex_unlock(&mu);
  return resource;
}

static void release_named(void* object) {
  weir_mutex_lock(&mu);
  drop_name_locked(object);
  weir_mutex_unlock(&mu);
  weir_resource_release(object);
}

// ---- handles ----

static void release_resource(void* object) { weir_resource_release(object); }

void weir_data_carry(weir_handle_t* handle, weir_resource_t* take_resource) {
  handle->object = take_resource;
  handle->release_object = release_resource;
}

// Of a name that no other has.
static weir_status_t* create_handle(const weir_kernel_ctx_t* ctx, const char* container,
                                    const char* prefix, const char* type_name,
                                    weir_handle_t** out_handle) {
  static atomic_llong next_id;
  char name[96];
  snprintf(name, sizeof(name), "%s%lld", prefix, (long long)atomic_fetch_add(&next_id, 1));
  return weir_handle_create(ctx->device->name, container, name, type_name, out_handle);
}

static weir_status_t* output(weir_kernel_ctx_t* ctx, weir_handle_t* take_handle) {
  weir_tensor_t *handle = NULL, *deleter = NULL;
  weir_status_t* status = weir_tensor_create_handle(take_handle, &handle);
  weir_handle_release(take_handle);
  if (status) return status;
  weir_kernel_set(ctx, 0, handle);
  return ctx->output_count == 1 ? NULL : weir_kernel_output(ctx, 1, 0, NULL, &deleter);
}

weir_status_t* weir_data_output_handle(weir_kernel_ctx_t* ctx, weir_resource_t* take_resource,
                                       const char* prefix, const char* type_name) {
  weir_handle_t* handle = NULL;
  weir_status_t* status = create_handle(ctx, "localhost", prefix, type_name, &handle);
  if (status) {
    weir_resource_release(take_resource);
    return status;
  }
  if (take_resource) {
    weir_data_carry(handle, take_resource);
    status = keep_name(take_resource, handle->name);
    if (!status) handle->release_object = release_named;
  }
  if (!status) return output(ctx, handle);
  weir_handle_release(handle);
  return status;
}

weir_status_t* weir_data_output_kept(weir_kernel_ctx_t* ctx, weir_resource_t* take_resource,
                                     const char* prefix, const char* type_name) {
  weir_handle_t* handle = NULL;
  weir_status_t* status = create_handle(ctx, prefix, prefix, type_name, &handle);
  if (status) {
    weir_resource_release(take_resource);
    return status;
  }
  status = weir_resources_add(weir_kernel_resources(ctx), weir_view_of(handle->container),
                              weir_view_of(handle->name), take_resource);
  if (!status) return output(ctx, handle);
  weir_handle_release(handle);
  return status;
}

weir_status_t* weir_data_delete_handle(weir_kernel_ctx_t* ctx) {
  (void)ctx;
  return NULL;
}
