// probe.c — Runs one node, its shape function and its kernel, for a test driver that speaks
// protobuf (oracle.py).
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/collective/hub.h"
#include "runtime/op_call.h"
#include "tensor/tensor_proto.h"
#include "testing/cuda_fake.h"
#include "testing/nccl_fake.h"
#include "wire/wire.h"

#define EXPORT __attribute__((visibility("default")))

enum { INPUT_TENSOR = 0, INPUT_REF = 1, INPUT_RESOURCE = 2 };
enum { MAX_VALUES = 512 };
enum { MAX_SECONDS = 60 };  // of a kernel

typedef struct probe_t {
  weir_arena_t arena;
  weir_arena_t shape_arena;  // what shape functions allocate
  weir_tensor_list_t tensors;
  char* name;
  char* op_name;
  char* node_bytes;
  weir_node_def_t node;
  const weir_kernel_def_t* kernel;
  weir_device_t* device;  // where it runs; what follows is in host memory before and after
  int input_count;
  weir_value_t inputs[MAX_VALUES];
  weir_variable_t* variables[MAX_VALUES];  // behind ref and resource inputs; NULL for others
  weir_value_t outputs[MAX_VALUES];
  const weir_shape_t* shapes[MAX_VALUES];  // inferred with constants
  weir_resources_t* session_resources;
  weir_resources_t* step_resources;
  weir_status_t* shape_status;     // of node checks and the shape function
  weir_status_t* unvalued_status;  // of the shape function that is not told values
  weir_status_t* kernel_status;
  weir_strbuf_t complaint;  // what the driver cannot see: shapes that contradict the result
  weir_strbuf_t scratch;    // last bytes handed out
} probe_t;

// ---- what all runs share ----

static weir_device_t** devices;
static int device_count;
static weir_pool_t* pool;
static weir_pool_t* inter_pool;

#define WEIR_OP_MODULE(group, file) extern const weir_op_module_t weir_ops_##group##_##file;
#include "op_modules.inc"
#undef WEIR_OP_MODULE
static const weir_op_module_t* const modules[] = {
#define WEIR_OP_MODULE(group, file) &weir_ops_##group##_##file,
#include "op_modules.inc"
#undef WEIR_OP_MODULE
    NULL};
static weir_registry_t* registry;

// One bad definition must not hold up work on the others: leaves out, aloud, each module that the
// registry refuses.
static weir_status_t* create_registry(void) {
  weir_status_t* status = weir_registry_create(modules, &registry);
  if (!status) return NULL;
  weir_status_destroy(status);
  static const weir_op_module_t* good[WEIR_COUNT_OF(modules)];
  size_t count = 0;
  for (size_t i = 0; modules[i]; ++i) {
    good[count] = modules[i];
    good[count + 1] = NULL;
    weir_registry_t* larger = NULL;
    status = weir_registry_create(good, &larger);
    if (status) {
      fprintf(stderr, "probe: left out: %s\n", weir_status_message(status));
      weir_status_destroy(status);
      good[count] = NULL;
      continue;
    }
    weir_registry_destroy(registry);
    registry = larger;
    ++count;
  }
  return registry ? NULL : weir_registry_create(good, &registry);
}

// Devices of kind cuda are fake ones: their kernels are compiled, not run. Before the start.
EXPORT void weir_probe_fake_cuda(void);
EXPORT void weir_probe_fake_cuda(void) {
  weir_cuda_driver_replace(&cuda_fake_driver);
  weir_nccl_replace(&nccl_fake);
}

// |spec| is that of weir_devices_create.
EXPORT const char* weir_probe_start(int thread_count, const char* spec);
EXPORT const char* weir_probe_start(int thread_count, const char* spec) {
  static char message[1024];
  weir_status_t* status = NULL;
  if (!devices) {
    status = weir_pool_create(thread_count, &pool);
    if (!status) status = weir_pool_create(2, &inter_pool);
    if (!status) status = weir_devices_create(spec, NULL, pool, &devices, &device_count);
    if (!status) status = create_registry();
  }
  if (!status) return NULL;
  strncpy(message, weir_status_message(status), sizeof(message) - 1);
  weir_status_destroy(status);
  return message;
}

EXPORT int weir_probe_device_count(void);
EXPORT int weir_probe_device_count(void) { return device_count; }

// Whether the build has the op, so that cases of ops that are not written yet are told apart from
// failures.
EXPORT int weir_probe_has_op(const char* name);
EXPORT int weir_probe_has_op(const char* name) {
  return weir_registry_find(registry, weir_view_of(name)) != NULL;
}

// The op as an OpDef, for comparing definitions; NULL when unknown. Valid until the next call.
EXPORT const char* weir_probe_op_def(const char* name, size_t* out_size);
EXPORT const char* weir_probe_op_def(const char* name, size_t* out_size) {
  static weir_strbuf_t text;
  text.size = 0;
  const weir_op_t* op = weir_registry_find(registry, weir_view_of(name));
  if (!op || weir_op_write(op, &text)) return NULL;
  *out_size = text.size;
  return text.data ? text.data : "";
}

// ---- memory that is not there ----

static int64_t failing;  // allocation of a kernel, and of a shape function; 0: none

// Of later runs the |n|-th allocation fails.
EXPORT void weir_probe_fail_at(int n);
EXPORT void weir_probe_fail_at(int n) { failing = n; }

// From now on, and whoever asks; 0 ends it. For programs (programs.py), which run through the
// public functions.
EXPORT void weir_probe_fail_now(int n);
EXPORT void weir_probe_fail_now(int n) { weir_alloc_fail_at(n, false); }

// ---- the node ----

static weir_status_t* parse_attr(probe_t* p, weir_view_t entry, weir_named_attr_t* out) {
  weir_view_t key = weir_view("", 0);
  weir_view_t value = weir_view("", 0);
  weir_wire_reader_t r = weir_wire_reader(entry);
  while (weir_wire_next(&r)) {
    if (r.field == 1) key = r.bytes;
    if (r.field == 2) value = r.bytes;
  }
  WEIR_TRY(weir_wire_check(&r, "attr"));
  out->name = weir_arena_strndup(&p->arena, key.data, key.size);
  return weir_attr_parse(value, &p->arena, &p->tensors, &out->value);
}

static weir_status_t* parse_node(probe_t* p, weir_view_t proto) {
  static weir_named_attr_t attrs[MAX_VALUES];
  size_t count = 0;
  weir_wire_reader_t r = weir_wire_reader(proto);
  p->name = p->op_name = (char*)"";
  while (weir_wire_next(&r)) {
    if (r.field == 1) p->name = weir_arena_strndup(&p->arena, r.bytes.data, r.bytes.size);
    if (r.field == 2) p->op_name = weir_arena_strndup(&p->arena, r.bytes.data, r.bytes.size);
    if (r.field == 5) WEIR_TRY(parse_attr(p, r.bytes, &attrs[count++]));
  }
  WEIR_TRY(weir_wire_check(&r, "NodeDef"));
  const weir_op_t* op = weir_registry_find(registry, weir_view_of(p->op_name));
  if (!op) return WEIR_STATUS(NOT_FOUND, "Op type not registered '%s'", p->op_name);
  weir_dtype_t types[MAX_VALUES] = {WEIR_DTYPE_INVALID};
  for (int i = 0; i < p->input_count; ++i) {
    const weir_variable_t* variable = p->variables[i];
    types[i] = p->inputs[i].ref ? weir_dtype_ref(variable->dtype)
               : variable       ? WEIR_DTYPE_RESOURCE
                                : weir_tensor_type(p->inputs[i].tensor);
  }
  weir_node_def_t* node = &p->node;
  *node = (weir_node_def_t){.name = p->name, .op_name = p->op_name, .op = op, .device = ""};
  WEIR_TRY(weir_op_resolve(op, p->name, (weir_attrs_t){attrs, count}, types, p->input_count,
                           &p->arena, &node->attrs));
  WEIR_TRY(weir_op_arg_types(op, p->name, node->attrs, false, &p->arena, &node->input_types,
                             &node->input_count));
  WEIR_TRY(weir_op_arg_types(op, p->name, node->attrs, true, &p->arena, &node->output_types,
                             &node->output_count));
  if (node->input_count != p->input_count || node->output_count > MAX_VALUES) {
    return WEIR_STATUS(INVALID_ARGUMENT, "NodeDef expected %d inputs, not %d", node->input_count,
                       p->input_count);
  }
  for (int i = 0; i < p->input_count; ++i) {
    if (weir_dtype_base(types[i]) != weir_dtype_base(node->input_types[i])) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input %d of node %s was passed %s incompatible with "
                         "expected %s.",
                         i, p->name, weir_dtype_name(types[i]),
                         weir_dtype_name(node->input_types[i]));
    }
  }
  return NULL;
}

// ---- inputs ----

static weir_status_t* make_variable(probe_t* p, int i, int kind, weir_tensor_t* take_value,
                                    int dtype) {
  weir_variable_t* variable = NULL;
  weir_status_t* status = weir_variable_create((weir_dtype_t)dtype, NULL, &variable);
  if (status) {
    weir_tensor_release(take_value);
    return status;
  }
  p->variables[i] = variable;
  if (take_value) WEIR_TRY(weir_variable_assign(variable, take_value));
  if (kind == INPUT_RESOURCE) return NULL;
  weir_resource_retain(&variable->base);
  p->inputs[i].ref = variable;
  return NULL;
}

// The handle of a resource variable, which is state of the device that the node runs on.
static weir_status_t* make_handle(probe_t* p, int i) {
  weir_variable_t* variable = p->variables[i];
  weir_resources_t* resources = weir_resources_of(p->session_resources, p->device->ordinal);
  weir_handle_t* handle = NULL;
  char name[32];
  snprintf(name, sizeof(name), "var%d", i);
  weir_resource_retain(&variable->base);
  WEIR_TRY(weir_resources_add(resources, weir_view("", 0), weir_view_of(name), &variable->base));
  WEIR_TRY(weir_handle_create(p->device->name, "localhost", name, "N10tensorflow3VarE", &handle));
  handle->dtype = variable->dtype;
  weir_status_t* status = weir_tensor_create_handle(handle, &p->inputs[i].tensor);
  weir_handle_release(handle);
  return status;
}

static weir_status_t* make_input(probe_t* p, int i, int kind, weir_view_t proto, int dtype) {
  weir_tensor_t* tensor = NULL;
  if (kind == INPUT_TENSOR) return weir_tensor_parse(proto, &p->inputs[i].tensor);
  if (proto.size) WEIR_TRY(weir_tensor_parse(proto, &tensor));
  return make_variable(p, i, kind, tensor, dtype);
}

// ---- shapes ----

// How much the shape function is told.
typedef enum knowledge_t { KNOW_VALUES, KNOW_SHAPES, KNOW_RANKS, KNOW_NOTHING } knowledge_t;

static const weir_shape_t* input_shape(probe_t* p, int i, knowledge_t knowledge) {
  weir_tensor_t* t = p->inputs[i].tensor;
  bool is_ref = !t && p->inputs[i].ref;
  if (is_ref) t = p->inputs[i].ref->tensor;
  if (!t || knowledge == KNOW_NOTHING) return &weir_shape_unknown;
  int64_t dims[WEIR_MAX_RANK];
  for (int k = 0; k < t->rank; ++k) dims[k] = knowledge == KNOW_RANKS ? -1 : t->dims[k];
  return weir_shape_make(&p->arena, t->rank, dims);
}

static weir_status_t* infer(probe_t* p, knowledge_t knowledge, const weir_shape_t** shapes) {
  const weir_shape_t* inputs[MAX_VALUES];
  const weir_tensor_t* values[MAX_VALUES];
  const weir_shape_t* as_shapes[MAX_VALUES] = {NULL};
  const weir_handle_info_t* handles[MAX_VALUES];
  const weir_shape_t* out_as_shapes[MAX_VALUES] = {NULL};
  const weir_handle_info_t* out_handles[MAX_VALUES] = {NULL};
  weir_handle_info_t infos[MAX_VALUES];
  for (int i = 0; i < p->input_count; ++i) {
    inputs[i] = input_shape(p, i, knowledge);
    weir_variable_t* variable = p->variables[i];
    values[i] = knowledge == KNOW_VALUES && !variable ? p->inputs[i].tensor : NULL;
    handles[i] = NULL;
    if (!variable || !variable->tensor || knowledge == KNOW_NOTHING) continue;
    infos[i].dtype = variable->dtype;
    infos[i].shape = weir_shape_make(&p->arena, variable->tensor->rank, variable->tensor->dims);
    handles[i] = &infos[i];
  }
  for (int i = 0; i < p->node.output_count; ++i) shapes[i] = &weir_shape_unknown;
  weir_shape_ctx_t ctx = {.node = &p->node,
                          .arena = &p->shape_arena,
                          .input_shapes = inputs,
                          .input_values = values,
                          .input_values_as_shape = as_shapes,
                          .input_handles = handles,
                          .output_shapes = shapes,
                          .output_values_as_shape = out_as_shapes,
                          .output_handles = out_handles};
  weir_alloc_fail_at(failing, false);
  weir_status_t* status = p->node.op->def->infer_shape(&ctx);
  weir_alloc_fail_at(0, false);
  return status;
}

static void compare_shapes(probe_t* p, const weir_shape_t* const* shapes, const char* what) {
  for (int i = 0; i < p->node.output_count; ++i) {
    weir_tensor_t* t = p->outputs[i].tensor;
    if (!t || weir_shape_accepts(shapes[i], t->rank, t->dims)) continue;
    char text[WEIR_SHAPE_TEXT_SIZE];
    weir_strbuf_printf(&p->complaint, "output %d has shape %s but with %s was inferred ", i,
                       weir_tensor_shape_text(t, text), what);
    weir_shape_append(shapes[i], &p->complaint);
    weir_strbuf_puts(&p->complaint, "; ");
  }
}

// With less knowledge a shape function says less, but never something else.
static void check_shapes(probe_t* p, knowledge_t knowledge, const char* what) {
  const weir_shape_t* shapes[MAX_VALUES];
  weir_status_t* status = infer(p, knowledge, shapes);
  if (status) {
    weir_strbuf_printf(&p->complaint, "shape function fails with %s: %s; ", what,
                       weir_status_message(status));
    weir_status_destroy(status);
    return;
  }
  compare_shapes(p, shapes, what);
}

// ---- the kernel ----

// What waits for others does so on the host, as placement has it.
static weir_status_t* choose_device(probe_t* p, int ordinal) {
  p->device = devices[ordinal];
  weir_status_t* status = weir_op_find_kernel(&p->node, p->device->kernel_type, &p->kernel);
  bool is_own = !status && strcmp(p->kernel->device, p->device->type) == 0;
  if (!status && !p->kernel->compute && !is_own) p->device = devices[0];
  return status;
}

// Replaces |*tensor|, where there is one, by a copy in the device's memory or the host's.
static weir_status_t* move(weir_device_t* device, weir_memory_t memory, weir_tensor_t** tensor) {
  if (!*tensor || !weir_dtype_is_plain(weir_tensor_type(*tensor))) return NULL;
  if (weir_tensor_space(*tensor) == weir_device_allocator(device, memory)->space) return NULL;
  weir_tensor_t* moved = NULL;
  WEIR_TRY(weir_device_fetch(device, memory, *tensor, &moved));
  weir_tensor_release(*tensor);
  *tensor = moved;
  return NULL;
}

static weir_status_t* move_variables(probe_t* p, weir_memory_t memory) {
  for (int i = 0; i < p->input_count; ++i) {
    if (p->variables[i]) WEIR_TRY(move(p->device, memory, &p->variables[i]->tensor));
  }
  return NULL;
}

// Copies of the inputs, where the kernel expects them; also |held|, if not NULL, has references.
static weir_status_t* copy_inputs(probe_t* p, weir_value_t* inputs, weir_value_t* held) {
  for (int i = 0; i < p->input_count; ++i) {
    const weir_tensor_t* tensor = p->inputs[i].tensor;
    bool is_host = weir_kernel_is_host_input(&p->node, p->kernel, i);
    if (tensor) WEIR_TRY(weir_tensor_copy(tensor, &inputs[i].tensor));
    if (!is_host) WEIR_TRY(move(p->device, WEIR_MEMORY_DEVICE, &inputs[i].tensor));
    if (held && tensor) held[i].tensor = weir_tensor_retain(inputs[i].tensor);
    inputs[i].ref = p->inputs[i].ref;
    if (inputs[i].ref) weir_resource_retain(&inputs[i].ref->base);
  }
  return NULL;
}

static weir_status_t* call_kernel(probe_t* p, weir_value_t* inputs) {
  weir_op_call_t* call = NULL;
  weir_step_t step = {.id = 1,
                      .inter_pool = inter_pool,
                      .resources = p->step_resources,
                      .session_resources = p->session_resources,
                      .devices = devices,
                      .device_count = device_count};
  weir_status_t* status = weir_cancel_create(NULL, &step.cancel);
  if (!status) status = weir_local_rendezvous_create(&step.rendezvous);
  if (!status) status = weir_hub_create(inter_pool, &step.hub);
  alarm(MAX_SECONDS);  // of a kernel that never ends the driver is told by the signal
  weir_alloc_fail_at(failing, false);
  if (!status) status = weir_op_call_create(&p->node, p->device, &call);
  if (!status) status = weir_op_call_run(call, &step, inputs, p->outputs);
  weir_alloc_fail_at(0, false);
  alarm(0);
  weir_op_call_destroy(call);
  weir_rendezvous_release(step.rendezvous);
  weir_hub_destroy(step.hub);
  weir_cancel_destroy(step.cancel);
  for (int i = 0; i < p->node.output_count && !status; ++i) {
    weir_variable_t* ref = p->outputs[i].ref;
    status = move(p->device, WEIR_MEMORY_HOST, ref ? &ref->tensor : &p->outputs[i].tensor);
  }
  return status;
}

// |are_held|: others hold the inputs, so that the kernel must not overwrite them.
static weir_status_t* run_kernel(probe_t* p, bool are_held) {
  static weir_value_t inputs[MAX_VALUES], held[MAX_VALUES];
  weir_status_t* status = copy_inputs(p, inputs, are_held ? held : NULL);
  if (!status) status = move_variables(p, WEIR_MEMORY_DEVICE);
  if (!status) status = call_kernel(p, inputs);
  for (int i = 0; i < p->input_count; ++i) {
    weir_value_release(&inputs[i]);
    weir_value_release(&held[i]);
  }
  weir_status_t* moved = move_variables(p, WEIR_MEMORY_HOST);
  if (!status) return moved;
  weir_status_destroy(moved);
  return status;
}

// A kernel that says it succeeded must have set outputs of the right types.
static void check_outputs(probe_t* p) {
  for (int i = 0; i < p->node.output_count; ++i) {
    weir_tensor_t* t = p->outputs[i].tensor;
    if (!t && !p->outputs[i].ref) {
      weir_strbuf_printf(&p->complaint, "output %d is not set; ", i);
    } else if (t && weir_tensor_type(t) != weir_dtype_base(p->node.output_types[i])) {
      weir_strbuf_printf(&p->complaint, "output %d is %s, not %s; ", i,
                         weir_dtype_name(weir_tensor_type(t)),
                         weir_dtype_name(p->node.output_types[i]));
    }
  }
}

static bool same_tensor(const weir_tensor_t* a, const weir_tensor_t* b) {
  if (!a || !b) return a == b;
  weir_attr_t x = {.kind = WEIR_ATTR_TENSOR};
  weir_attr_t y = {.kind = WEIR_ATTR_TENSOR};
  x.u.tensor = (weir_tensor_t*)a;
  y.u.tensor = (weir_tensor_t*)b;
  return weir_attr_equal(&x, &y);
}

// Runs the kernel with inputs that others hold, then with inputs it may overwrite: the results must
// be the same.
static weir_status_t* run_twice(probe_t* p) {
  bool is_once = p->node.op->flags & WEIR_OP_STATEFUL;
  for (int i = 0; i < p->input_count; ++i) {
    bool is_plain =
        p->inputs[i].tensor && weir_dtype_is_plain(weir_tensor_type(p->inputs[i].tensor));
    is_once = is_once || !is_plain;
  }
  if (is_once) return run_kernel(p, false);
  weir_status_t* status = run_kernel(p, true);
  if (status) return status;
  weir_tensor_t* first[MAX_VALUES];
  for (int i = 0; i < p->node.output_count; ++i) {
    first[i] = p->outputs[i].tensor;
    p->outputs[i].tensor = NULL;
    weir_value_release(&p->outputs[i]);
  }
  status = run_kernel(p, false);
  for (int i = 0; i < p->node.output_count; ++i) {
    if (!status && !same_tensor(first[i], p->outputs[i].tensor)) {
      weir_strbuf_printf(&p->complaint, "output %d differs when inputs may be overwritten; ", i);
    }
    weir_tensor_release(first[i]);
  }
  return status;
}

// ---- the interface of the driver ----

EXPORT void weir_probe_free(probe_t* p);
EXPORT void weir_probe_free(probe_t* p) {
  if (!p) return;
  for (int i = 0; i < MAX_VALUES; ++i) {
    weir_value_release(&p->inputs[i]);
    weir_value_release(&p->outputs[i]);
    if (p->variables[i]) weir_resource_release(&p->variables[i]->base);
  }
  weir_resources_destroy(p->step_resources);
  weir_resources_destroy(p->session_resources);
  weir_status_destroy(p->shape_status);
  weir_status_destroy(p->unvalued_status);
  weir_status_destroy(p->kernel_status);
  weir_strbuf_free(&p->complaint);
  weir_strbuf_free(&p->scratch);
  weir_tensor_list_free(&p->tensors);
  weir_arena_free(&p->shape_arena);
  weir_arena_free(&p->arena);
  weir_free(p->node_bytes);
  weir_free(p);
}

static weir_status_t* prepare(probe_t* p, int input_count, const char* const* protos,
                              const size_t* sizes, const int* kinds, const int* dtypes) {
  if (input_count > MAX_VALUES) return WEIR_STATUS(INTERNAL, "too many inputs for the probe");
  p->input_count = input_count;
  WEIR_TRY(weir_resources_create("localhost", &p->session_resources));
  WEIR_TRY(weir_resources_reserve(p->session_resources, device_count));
  WEIR_TRY(weir_resources_create(WEIR_STEP_CONTAINER, &p->step_resources));
  for (int i = 0; i < input_count; ++i) {
    WEIR_TRY(make_input(p, i, kinds[i], weir_view(protos[i], sizes[i]), dtypes[i]));
  }
  return NULL;
}

// Runs the node on device |ordinal|. |kinds|: 0 a tensor, 1 a ref variable, 2 a handle of a
// resource variable, both of type |dtypes| and with the tensor as their value (none when the size
// is 0). The kernel runs also when the shape function fails.
EXPORT probe_t* weir_probe_run(int ordinal, const char* node, size_t node_size, int input_count,
                               const char* const* protos, const size_t* sizes, const int* kinds,
                               const int* dtypes);
EXPORT probe_t* weir_probe_run(int ordinal, const char* node, size_t node_size, int input_count,
                               const char* const* protos, const size_t* sizes, const int* kinds,
                               const int* dtypes) {
  probe_t* p = weir_calloc(1, sizeof(*p));
  if (!p) return NULL;
  p->node_bytes = weir_strndup(node, node_size);
  p->shape_status = prepare(p, input_count, protos, sizes, kinds, dtypes);
  if (!p->shape_status) p->shape_status = parse_node(p, weir_view(p->node_bytes, node_size));
  if (p->shape_status) {
    p->kernel_status = weir_status_copy(p->shape_status);
    p->unvalued_status = weir_status_copy(p->shape_status);
    return p;
  }
  p->kernel_status = choose_device(p, ordinal);
  for (int i = 0; i < input_count && !p->kernel_status; ++i) {
    if (kinds[i] == INPUT_RESOURCE) p->kernel_status = make_handle(p, i);
  }
  const weir_shape_t* unused[MAX_VALUES];  // inferred first: a kernel may change its variables
  p->unvalued_status = infer(p, KNOW_SHAPES, unused);
  p->shape_status = infer(p, KNOW_VALUES, p->shapes);
  if (!p->kernel_status) p->kernel_status = run_twice(p);
  if (p->kernel_status || p->shape_status) return p;
  check_outputs(p);
  compare_shapes(p, p->shapes, "constant inputs");
  check_shapes(p, KNOW_SHAPES, "known shapes");
  check_shapes(p, KNOW_RANKS, "known ranks");
  check_shapes(p, KNOW_NOTHING, "unknown shapes");
  return p;
}

// Of the shape function, 1: the kernel, 2: the shape function without values.
EXPORT int weir_probe_code(probe_t* p, int which);
EXPORT int weir_probe_code(probe_t* p, int which) {
  return (int)weir_status_code(which == 0   ? p->shape_status
                               : which == 1 ? p->kernel_status
                                            : p->unvalued_status);
}

EXPORT const char* weir_probe_message(probe_t* p, int kernel);
EXPORT const char* weir_probe_message(probe_t* p, int kernel) {
  return weir_status_message(kernel ? p->kernel_status : p->shape_status);
}

EXPORT const char* weir_probe_complaint(probe_t* p);
EXPORT const char* weir_probe_complaint(probe_t* p) {
  return p->complaint.data ? p->complaint.data : "";
}

EXPORT int weir_probe_output_count(probe_t* p);
EXPORT int weir_probe_output_count(probe_t* p) { return p->node.output_count; }

static const char* write_proto(probe_t* p, const weir_tensor_t* t, size_t* out_size) {
  p->scratch.size = 0;
  *out_size = 0;
  if (!t) return NULL;
  weir_status_t* status = weir_tensor_write(t, &p->scratch);
  if (status) {
    weir_status_destroy(status);
    return NULL;
  }
  *out_size = p->scratch.size;
  return p->scratch.data;
}

// Output |i| as a TensorProto, valid until the next call; NULL when it is not set or has no such
// form.
EXPORT const char* weir_probe_output(probe_t* p, int i, size_t* out_size);
EXPORT const char* weir_probe_output(probe_t* p, int i, size_t* out_size) {
  weir_tensor_t* t = p->outputs[i].tensor;
  if (!t && p->outputs[i].ref) t = p->outputs[i].ref->tensor;
  return write_proto(p, t, out_size);
}

// The value of the variable behind input |i| after the run.
EXPORT const char* weir_probe_variable(probe_t* p, int i, size_t* out_size);
EXPORT const char* weir_probe_variable(probe_t* p, int i, size_t* out_size) {
  return write_proto(p, p->variables[i] ? p->variables[i]->tensor : NULL, out_size);
}

// The shape inferred for output |i|: its rank, -1 when unknown, and up to 254 dimensions.
EXPORT int weir_probe_shape(probe_t* p, int i, int64_t* dims);
EXPORT int weir_probe_shape(probe_t* p, int i, int64_t* dims) {
  const weir_shape_t* shape = p->shapes[i];
  if (!shape) return -1;
  for (int k = 0; k < shape->rank && k < WEIR_MAX_RANK; ++k) dims[k] = shape->dims[k];
  return shape->rank;
}
