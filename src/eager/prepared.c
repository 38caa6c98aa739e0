// prepared.c — The cache of ops that are ready to run.
#include "eager/prepared.h"

#include "base/details.h"
#include "graph/function.h"
#include "graph/graph_internal.h"

// ---- what is asked for ----

uint64_t weir_eager_ask_hash(const weir_eager_ask_t* ask) {
  uint64_t hash = weir_hash_bytes(ask->op, strlen(ask->op), (uint64_t)ask->input_count);
  for (int i = 0; i < ask->input_count; ++i)
    hash = weir_hash_mix(hash + 31 * (uint64_t)ask->types[i] + 1);
  for (size_t i = 0; i < ask->attrs.count; ++i) {
    const weir_named_attr_t* attr = &ask->attrs.items[i];
    hash = weir_hash_mix(hash * 31 + weir_attr_hash(&attr->value) + (uint64_t)(uint8_t)*attr->name);
  }
  return hash;
}

static bool is_device(const char* a, const char* b) {
  return a == b || !strcmp(a ? a : "", b ? b : "");
}

bool weir_eager_op_answers(const weir_eager_op_t* op, const weir_eager_ask_t* ask, uint64_t hash) {
  const weir_eager_ask_t* own = &op->ask;
  // Relaxed: whoever removes a function while others call it cannot know which they call.
  bool is_retired = atomic_load_explicit(&op->is_retired, memory_order_relaxed);
  bool is_alike = !is_retired && op->hash == hash && own->input_count == ask->input_count &&
                  own->attrs.count == ask->attrs.count && !strcmp(own->op, ask->op) &&
                  is_device(own->device, ask->device);
  for (int i = 0; is_alike && i < ask->input_count; ++i) is_alike = own->types[i] == ask->types[i];
  for (size_t i = 0; is_alike && i < ask->attrs.count; ++i) {
    const weir_named_attr_t *a = &own->attrs.items[i], *b = &ask->attrs.items[i];
    is_alike = !strcmp(a->name, b->name) && weir_attr_equal(&a->value, &b->value);
  }
  return is_alike;
}

// |op| keeps a copy of what it was asked for as: the caller's does not last.
static weir_status_t* keep_ask(weir_eager_op_t* op, const weir_eager_ask_t* ask) {
  weir_arena_t* arena = &op->arena;
  size_t count = (size_t)ask->input_count;
  weir_dtype_t* types = weir_arena_array(arena, count + 1, sizeof(*types));
  weir_named_attr_t* items = weir_arena_array(arena, ask->attrs.count + 1, sizeof(*items));
  const char* device = ask->device ? ask->device : "";
  op->ask = (weir_eager_ask_t){.op = weir_arena_strndup(arena, ask->op, strlen(ask->op)),
                               .device = weir_arena_strndup(arena, device, strlen(device)),
                               .attrs = {.items = items, .count = ask->attrs.count},
                               .types = types,
                               .input_count = ask->input_count};
  if (!types || !items || !op->ask.op || !op->ask.device) return weir_out_of_memory();
  if (count) memcpy(types, ask->types, count * sizeof(*types));
  for (size_t i = 0; i < ask->attrs.count; ++i) {
    const weir_named_attr_t* attr = &ask->attrs.items[i];
    items[i].name = weir_arena_strndup(arena, attr->name, strlen(attr->name));
    if (!items[i].name) return weir_out_of_memory();
    WEIR_TRY(weir_attr_clone(&attr->value, arena, &op->tensors, &items[i].value));
  }
  return NULL;
}

// ---- making one ----

static bool has_functions(const weir_node_def_t* def) {
  if (!def->op->def) return true;  // is one
  for (size_t i = 0; i < def->attrs.count; ++i) {
    if (def->attrs.items[i].value.kind == WEIR_ATTR_FUNC) return true;
  }
  return false;
}

bool weir_eager_op_is_unique(const weir_op_t* op) {
  if (op->role == WEIR_ROLE_VARIABLE) return true;
  if (!op->def || !weir_op_attr(op, "shared_name")) return false;
  for (int i = 0; i < op->output_count; ++i) {
    if (op->outputs[i].is_ref || op->outputs[i].type == WEIR_DTYPE_RESOURCE) return true;
  }
  return false;
}

static weir_status_t* check_types(const weir_eager_op_t* op) {
  const weir_node_def_t* def = &op->def;
  if (op->ask.input_count != def->input_count)
    return WEIR_NODE_STATUS(INVALID_ARGUMENT, def->name, "op %s takes %d inputs, %d given",
                            def->op_name, def->input_count, op->ask.input_count);
  for (int i = 0; i < def->input_count; ++i) {
    weir_dtype_t have = op->ask.types[i], want = def->input_types[i];
    bool is_compatible = weir_dtype_is_ref(want) ? have == want : weir_dtype_base(have) == want;
    if (is_compatible) continue;
    return WEIR_NODE_STATUS(INVALID_ARGUMENT, def->name, "input %d is %s, but %s takes %s", i,
                            weir_dtype_name(have), def->op_name, weir_dtype_name(want));
  }
  return NULL;
}

static weir_status_t* find_asked(const weir_eager_t* eager, weir_eager_op_t* op) {
  const char* text = op->ask.device;
  weir_device_name_t name;
  op->asked = -1;
  if (!*text) return NULL;
  WEIR_TRY(weir_device_name_parse(weir_view_of(text), &name));
  // A name that leaves type or number open asks for the first that fits.
  op->asked = weir_runtime_find(eager->runtime, &name);
  if (op->asked >= 0 || eager->allow_soft_placement) return NULL;
  return WEIR_NODE_STATUS(INVALID_ARGUMENT, op->def.name,
                          "it was explicitly assigned to %s, but there are only %d devices, the "
                          "last one %s",
                          text, eager->runtime->device_count,
                          eager->runtime->devices[eager->runtime->device_count - 1]->name);
}

static weir_status_t* define(weir_eager_t* eager, weir_eager_op_t* op, const char* name,
                             bool refuse_attrs) {
  weir_node_def_t* def = &op->def;
  const weir_op_t* found = weir_graph_find_op(eager->graph, op->ask.op);
  if (!found)
    return WEIR_STATUS(NOT_FOUND, "Op type not registered '%s' (node '%s')", op->ask.op, name);
  if (refuse_attrs) WEIR_TRY(weir_op_check_attr_names(found, name, op->ask.attrs));
  *def = (weir_node_def_t){
      .name = name, .op_name = found->name, .op = found, .device = op->ask.device};
  WEIR_TRY(weir_op_resolve(found, name, op->ask.attrs, op->ask.types, op->ask.input_count,
                           &op->arena, &def->attrs));
  WEIR_TRY(weir_op_arg_types(found, name, def->attrs, false, &op->arena, &def->input_types,
                             &def->input_count));
  WEIR_TRY(weir_op_arg_types(found, name, def->attrs, true, &op->arena, &def->output_types,
                             &def->output_count));
  WEIR_TRY(check_types(op));
  op->kind = found->role == WEIR_ROLE_CONST ? WEIR_EAGER_CONST
             : has_functions(def)           ? WEIR_EAGER_PLAN
                                            : WEIR_EAGER_KERNEL;
  return find_asked(eager, op);
}

weir_status_t* weir_eager_make_op(weir_eager_t* eager, const weir_eager_ask_t* ask,
                                  const char* name, weir_eager_op_t** out_op) {
  size_t devices = (size_t)eager->runtime->device_count;
  weir_eager_op_t* op = weir_calloc(1, sizeof(*op) + devices * sizeof(op->kernels[0]));
  if (!op) return weir_out_of_memory();
  atomic_init(&op->home, -1);
  weir_status_t* status = keep_ask(op, ask);
  const char* kept = status ? NULL : weir_arena_strndup(&op->arena, name, strlen(name));
  if (!status) status = kept ? define(eager, op, kept, ask->refuse_attrs) : weir_out_of_memory();
  if (status) weir_eager_op_destroy(eager, op);
  else *out_op = op;
  return status;
}

void weir_eager_op_destroy(weir_eager_t* eager, weir_eager_op_t* op) {
  if (!op) return;
  for (int i = 0; i < eager->runtime->device_count; ++i)
    weir_op_call_destroy(atomic_load_explicit(&op->kernels[i].call, memory_order_relaxed));
  weir_plan_release(atomic_load_explicit(&op->plan, memory_order_relaxed));
  weir_tensor_list_free(&op->tensors);
  weir_arena_free(&op->arena);
  weir_free(op);
}

static void free_list(weir_eager_t* eager, weir_eager_op_t* first) {
  for (weir_eager_op_t *op = first, *next; op; op = next) {
    next = op->next;
    weir_eager_op_destroy(eager, op);
  }
}

void weir_eager_free_ops(weir_eager_t* eager) {
  for (size_t i = 0; i < eager->slot_count; ++i) free_list(eager, eager->slots[i]);
  free_list(eager, eager->retired);
  weir_free(eager->slots);
}

// ---- the cache ----

static weir_eager_op_t* look_up_locked(const weir_eager_t* eager, const weir_eager_ask_t* ask,
                                       uint64_t hash) {
  weir_eager_op_t* op = eager->slot_count ? eager->slots[hash & (eager->slot_count - 1)] : NULL;
  while (op && !weir_eager_op_answers(op, ask, hash)) op = op->next;
  return op;
}

static bool make_room_locked(weir_eager_t* eager) {
  if (eager->op_count < eager->slot_count) return true;
  size_t count = eager->slot_count ? 2 * eager->slot_count : 256;
  weir_eager_op_t** slots = weir_calloc(count, sizeof(*slots));
  if (!slots) return false;
  for (size_t i = 0; i < eager->slot_count; ++i) {
    for (weir_eager_op_t *op = eager->slots[i], *next; op; op = next) {
      next = op->next;
      op->next = slots[op->hash & (count - 1)];
      slots[op->hash & (count - 1)] = op;
    }
  }
  weir_free(eager->slots);
  eager->slots = slots;
  eager->slot_count = count;
  return true;
}

// Takes |op| in, or another that came first: then |op| is not needed.
static weir_status_t* put_locked(weir_eager_t* eager, const weir_eager_ask_t* ask,
                                 weir_eager_op_t** op) {
  weir_eager_op_t* found = look_up_locked(eager, ask, (*op)->hash);
  if (!found && !make_room_locked(eager)) return weir_out_of_memory();
  if (found) {
    weir_eager_op_destroy(eager, *op);
    *op = found;
    return NULL;
  }
  weir_eager_op_t** slot = &eager->slots[(*op)->hash & (eager->slot_count - 1)];
  (*op)->next = *slot;
  *slot = *op;
  ++eager->op_count;
  return NULL;
}

weir_status_t* weir_eager_find_op(weir_eager_t* eager, const weir_eager_ask_t* ask, uint64_t hash,
                                  const char* name, weir_eager_op_t** out_op) {
  weir_mutex_lock(&eager->mu);
  weir_eager_op_t* op = look_up_locked(eager, ask, hash);
  weir_mutex_unlock(&eager->mu);
  *out_op = op;
  if (op) return NULL;
  // Its own name is the op's: it serves nodes of all names.
  weir_status_t* status = weir_eager_make_op(eager, ask, ask->op, &op);
  if (status)
    return weir_status_has_node(status) ? status : weir_status_at_node(status, name, NULL);
  op->hash = hash;
  weir_mutex_lock(&eager->mu);
  status = put_locked(eager, ask, &op);
  weir_mutex_unlock(&eager->mu);
  if (status) weir_eager_op_destroy(eager, op);
  else *out_op = op;
  return status;
}

// ---- functions that are removed ----

static void retire_locked(weir_eager_t* eager, weir_eager_op_t** at) {
  weir_eager_op_t* op = *at;
  *at = op->next;
  op->next = eager->retired;
  eager->retired = op;
  --eager->op_count;
  atomic_store_explicit(&op->is_retired, true, memory_order_relaxed);
}

weir_status_t* weir_eager_remove_function(weir_eager_t* eager, weir_view_t name) {
  WEIR_TRY(weir_function_library_remove(eager->graph->library, name));
  weir_function_plans_forget(eager->program->functions);
  weir_mutex_lock(&eager->mu);
  for (size_t i = 0; i < eager->slot_count; ++i) {
    weir_eager_op_t** at = &eager->slots[i];
    while (*at) {
      if ((*at)->kind == WEIR_EAGER_PLAN) retire_locked(eager, at);
      else at = &(*at)->next;
    }
  }
  weir_mutex_unlock(&eager->mu);
  return NULL;
}

// ---- kernels ----

static weir_status_t* make_call_locked(weir_eager_t* eager, weir_eager_op_t* op, int ordinal,
                                       weir_op_call_t** out_call) {
  weir_device_t* device = eager->runtime->devices[ordinal];
  weir_eager_kernel_t* kernel = &op->kernels[ordinal];
  *out_call = atomic_load_explicit(&kernel->call, memory_order_relaxed);
  if (*out_call) return NULL;
  WEIR_TRY(weir_op_find_kernel(&op->def, device->kernel_type, &kernel->def));
  kernel->host_inputs = weir_kernel_host_args(&op->def, kernel->def, false);
  WEIR_TRY(weir_op_call_create(&op->def, device, out_call));
  atomic_store_explicit(&kernel->call, *out_call, memory_order_release);
  return NULL;
}

weir_status_t* weir_eager_op_call(weir_eager_t* eager, weir_eager_op_t* op, int ordinal,
                                  weir_op_call_t** out_call) {
  // Pairs with the release above: what the call points to is there.
  *out_call = atomic_load_explicit(&op->kernels[ordinal].call, memory_order_acquire);
  if (WEIR_LIKELY(*out_call != NULL)) return NULL;
  weir_mutex_lock(&eager->make_mu);
  weir_status_t* status = make_call_locked(eager, op, ordinal, out_call);
  weir_mutex_unlock(&eager->make_mu);
  return status;
}

// ---- plans ----

static weir_status_t* add_arg(weir_graph_t* graph, weir_dtype_t type, int index,
                              weir_edge_t* out_edge) {
  weir_named_attr_t attrs[] = {weir_attr_type("T", weir_dtype_base(type)),
                               weir_attr_int("index", index)};
  weir_node_params_t params = {.op = "_Arg",
                               .name = "arg",
                               .unique_name = true,
                               .attrs = {.items = attrs, .count = WEIR_COUNT_OF(attrs)}};
  weir_node_t* node = NULL;
  WEIR_TRY(weir_graph_add(graph, &params, &node));
  *out_edge = (weir_edge_t){.node = node, .index = 0};
  return NULL;
}

static weir_status_t* add_ret(weir_graph_t* graph, weir_edge_t value) {
  weir_node_params_t params = {.op = "_Retval",
                               .name = "ret",
                               .unique_name = true,
                               .inputs = WEIR_EDGES(value),
                               .attrs = WEIR_ATTRS(weir_attr_int("index", value.index))};
  weir_node_t* node = NULL;
  return weir_graph_add(graph, &params, &node);
}

// Arguments, the node, and its results. What was asked for is a device for the call itself, which
// computes nothing: what it calls says where its nodes go.
static weir_status_t* build(const weir_node_def_t* def, weir_graph_t* graph, weir_arena_t* scratch,
                            weir_node_t** out_node) {
  weir_edge_t* args = weir_arena_array(scratch, (size_t)def->input_count + 1, sizeof(*args));
  if (!args) return weir_out_of_memory();
  for (int i = 0; i < def->input_count; ++i)
    WEIR_TRY(add_arg(graph, def->input_types[i], i, &args[i]));
  weir_node_params_t params = {.op = def->op_name,
                               .name = def->name[0] == '_' ? def->name + 1 : def->name,
                               .unique_name = true,
                               .inputs = {.items = args, .count = def->input_count},
                               .attrs = def->attrs};
  WEIR_TRY(weir_graph_add(graph, &params, out_node));
  for (int i = 0; i < def->output_count; ++i)
    WEIR_TRY(add_ret(graph, (weir_edge_t){.node = *out_node, .index = i}));
  return NULL;
}

static weir_status_t* make_plan(weir_eager_t* eager, const weir_eager_op_t* op,
                                weir_plan_t** out_plan) {
  weir_graph_t* graph = NULL;
  weir_arena_t scratch = {0};
  weir_node_t* node = NULL;
  WEIR_TRY(weir_graph_new(eager->graph->registry, &graph));
  weir_function_library_release(graph->library);
  graph->library = weir_function_library_retain(eager->graph->library);
  weir_status_t* status = build(&op->def, graph, &scratch, &node);
  weir_source_t source = {.graph = graph,
                          .targets = &node,
                          .target_count = 1,
                          .arg_count = op->def.input_count,
                          .ret_count = op->def.output_count,
                          .is_function = true};
  if (status) weir_graph_unref(graph);
  else status = weir_program_compile(eager->program, &source, out_plan);
  weir_arena_free(&scratch);
  return status;
}

weir_status_t* weir_eager_op_plan(weir_eager_t* eager, weir_eager_op_t* op,
                                  weir_plan_t** out_plan) {
  *out_plan = atomic_load_explicit(&op->plan, memory_order_acquire);  // pairs with the release
  if (*out_plan) return NULL;
  weir_status_t* status = NULL;
  weir_mutex_lock(&eager->make_mu);
  *out_plan = atomic_load_explicit(&op->plan, memory_order_relaxed);
  if (!*out_plan) status = make_plan(eager, op, out_plan);
  if (!status) atomic_store_explicit(&op->plan, *out_plan, memory_order_release);
  weir_mutex_unlock(&eager->make_mu);
  return status;
}
