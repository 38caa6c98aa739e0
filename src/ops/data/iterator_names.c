// iterator_names.c — Names of iterators, and what they stand for.
#include "ops/data/iterator_names.h"

static weir_status_t* choose_name(const weir_node_def_t* node, weir_iterator_names_t* names) {
  static atomic_llong next_id;
  weir_view_t container = weir_attrs_string(node->attrs, "container");
  weir_view_t name = weir_attrs_string(node->attrs, "shared_name");
  if (container.size == 0) container = weir_view_of("localhost");
  if (name.size > 0 && name.data[0] == '_')
    return WEIR_STATUS(INVALID_ARGUMENT, "shared_name cannot start with '_':%.*s",
                       WEIR_VIEW_ARG(name));
  names->is_private = name.size == 0;
  weir_strbuf_t text = {0};
  if (names->is_private)
    weir_strbuf_printf(&text, "_%lld_%s", (long long)atomic_fetch_add(&next_id, 1), node->name);
  else weir_strbuf_append(&text, name.data, name.size);
  names->name = text.data;
  names->container = weir_strndup(container.data, container.size);
  return text.failed || !names->container ? weir_out_of_memory() : NULL;
}

weir_status_t* weir_iterator_names_init(const weir_kernel_init_t* init,
                                        const weir_resource_type_t* type,
                                        weir_iterator_names_t* names) {
  weir_mutex_init(&names->mu);
  names->type = type;
  WEIR_TRY(choose_name(init->node, names));
  weir_handle_t* handle = NULL;
  WEIR_TRY(
      weir_handle_create(init->device->name, names->container, names->name, type->name, &handle));
  weir_status_t* status = weir_tensor_create_handle(handle, &names->tensor);
  weir_handle_release(handle);
  return status;
}

void weir_iterator_names_deinit(weir_iterator_names_t* names) {
  // Nobody may have made it, or a Reset may have taken it: then there is nothing to remove.
  if (names->is_private && names->manager)
    weir_status_destroy(weir_resources_remove(names->manager, weir_view_of(names->container),
                                              weir_view_of(names->name), names->type));
  weir_tensor_release(names->tensor);
  weir_free(names->container);
  weir_free(names->name);
  weir_mutex_destroy(&names->mu);
}

weir_status_t* weir_iterator_names_find(weir_kernel_ctx_t* ctx, weir_iterator_names_t* names,
                                        weir_resource_create_fn_t create, void* arg,
                                        weir_resource_t** out_resource) {
  weir_resources_t* manager = weir_kernel_resources(ctx);
  WEIR_TRY(weir_resources_find_or_create(manager, weir_view_of(names->container),
                                         weir_view_of(names->name), names->type, create, arg,
                                         out_resource));
  weir_mutex_lock(&names->mu);
  names->manager = manager;
  weir_mutex_unlock(&names->mu);
  return NULL;
}

static weir_status_t* create(void* arg, weir_resource_t** out_resource) {
  return weir_iterator_resource_create(arg, out_resource);
}

weir_status_t* weir_iterator_names_resource(weir_kernel_ctx_t* ctx, weir_iterator_names_t* names,
                                            const weir_element_spec_t* spec,
                                            weir_iterator_resource_t** out_resource) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_iterator_names_find(ctx, names, create, (void*)spec, &resource));
  weir_status_t* status = weir_iterator_resource_matches((weir_iterator_resource_t*)resource, spec);
  if (status) weir_resource_release(resource);
  else *out_resource = (weir_iterator_resource_t*)resource;
  return status;
}
