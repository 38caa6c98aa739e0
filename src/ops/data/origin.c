// origin.c — Op and attributes of the nodes that make datasets.
#include "ops/data/origin.h"

weir_origin_t* weir_origin_retain(weir_origin_t* origin) {
  if (origin) weir_ref_inc(&origin->ref, 1);
  return origin;
}

void weir_origin_release(weir_origin_t* origin) {
  if (!origin || !weir_ref_dec(&origin->ref)) return;
  weir_tensor_list_free(&origin->tensors);
  weir_arena_free(&origin->arena);
  weir_free(origin);
}

// What others noted on the node (names that begin with '_') is not the dataset's.
static weir_status_t* copy_attrs(const weir_node_def_t* node, weir_origin_t* origin) {
  const weir_op_t* op = node->op;
  size_t room = (size_t)op->attr_count;
  weir_named_attr_t* items = weir_arena_array(&origin->arena, room, sizeof(*items));
  if (!items) return weir_out_of_memory();
  size_t count = 0;
  for (int i = 0; i < op->attr_count; ++i) {
    const weir_attr_t* value = weir_attrs_find(node->attrs, op->attrs[i].name);
    if (!value) continue;
    items[count].name = op->attrs[i].name;
    WEIR_TRY(weir_attr_clone(value, &origin->arena, &origin->tensors, &items[count++].value));
  }
  origin->attrs = (weir_attrs_t){.items = items, .count = count};
  return NULL;
}

weir_status_t* weir_origin_init(const weir_kernel_init_t* init, void* state) {
  weir_origin_t* origin = weir_calloc(1, sizeof(*origin));
  if (!origin) return weir_out_of_memory();
  weir_ref_init(&origin->ref);
  origin->op = init->node->op;
  *(weir_origin_t**)state = origin;  // deinit releases it, also after an error
  return copy_attrs(init->node, origin);
}

void weir_origin_deinit(void* state) { weir_origin_release(*(weir_origin_t**)state); }
