// eager_op.c — TFE_Op: what is to run, and running it.
#include "graph/graph_internal.h"
#include "tensorflow/eager_internal.h"

// ---- making ----

static weir_status_t* name_op(TFE_Op* op, const char* name) {
  op->op = weir_graph_find_op(op->ctx->eager->graph, name);
  if (!op->op)
    return WEIR_STATUS(NOT_FOUND,
                       "'%s' is neither a type of a primitive operation nor a name of a function "
                       "registered in this context",
                       name);
  op->name = weir_arena_strndup(&op->arena, name, strlen(name));
  op->device = "";
  return op->name ? NULL : weir_out_of_memory();
}

TFE_Op* TFE_NewOp(TFE_Context* ctx, const char* op_or_function_name, TF_Status* status) {
  TFE_Op* op = weir_calloc(1, sizeof(*op));
  if (op) op->ctx = ctx;
  if (tf_status_take(status, op ? name_op(op, op_or_function_name) : weir_out_of_memory()))
    return op;
  TFE_DeleteOp(op);
  return NULL;
}

static void clear(TFE_Op* op) {
  for (size_t i = 0; i < op->input_count; ++i) TFE_DeleteTensorHandle(op->inputs[i]);
  weir_tensor_list_free(&op->tensors);
  weir_status_destroy(op->error);
  weir_arena_free(&op->arena);
  op->tensors = (weir_tensor_list_t){0};
  op->input_count = op->attr_count = 0;
  op->next_arg = 0;
  op->told = 0;
  op->error = NULL;
  op->cancel = NULL;
  op->name = op->device = "";
}

void TFE_DeleteOp(TFE_Op* op) {
  if (!op) return;
  clear(op);
  weir_free(op->inputs);
  weir_free(op->attrs);
  weir_free(op);
}

void TFE_OpReset(TFE_Op* op_to_reset, const char* op_or_function_name, const char* raw_device_name,
                 TF_Status* status) {
  clear(op_to_reset);
  if (tf_status_take(status, name_op(op_to_reset, op_or_function_name)) && raw_device_name)
    TFE_OpSetDevice(op_to_reset, raw_device_name, status);
}

// ---- looking ----

const char* TFE_OpGetName(const TFE_Op* op, TF_Status* status) {
  tf_status_clear(status);
  return op->name;
}

TFE_Context* TFE_OpGetContext(const TFE_Op* op, TF_Status* status) {
  tf_status_clear(status);
  return op->ctx;
}

void TFE_OpSetDevice(TFE_Op* op, const char* device_name, TF_Status* status) {
  weir_device_name_t name;
  const char* text = device_name ? device_name : "";
  weir_status_t* result = *text ? tfe_device_parse(text, &name) : NULL;
  bool is_short = *text && *text != '/';
  const char* copy =
      result ? NULL : weir_arena_printf(&op->arena, "%s%s", is_short ? "/device:" : "", text);
  if (!result && !copy) result = weir_out_of_memory();
  if (tf_status_take(status, result)) op->device = copy;
}

const char* TFE_OpGetDevice(const TFE_Op* op, TF_Status* status) {
  tf_status_clear(status);
  return op->device;
}

// ---- inputs ----

static weir_status_t* add_inputs(TFE_Op* op, TFE_TensorHandle** inputs, int count) {
  if (count < 0) return WEIR_STATUS(INVALID_ARGUMENT, "%d inputs", count);
  for (int i = 0; i < count; ++i) WEIR_TRY(TFE_REQUIRE(inputs[i], "input"));
  if (!WEIR_GROW(op->inputs, op->input_capacity, op->input_count + (size_t)count))
    return weir_out_of_memory();
  for (int i = 0; i < count; ++i) op->inputs[op->input_count++] = tfe_handle_ref(inputs[i]);
  return NULL;
}

static void note_told(TFE_Op* op, const char* attr) {
  for (int i = 0; attr && i < op->op->attr_count && i < 64; ++i) {
    if (strcmp(op->op->attrs[i].name, attr) == 0) op->told |= UINT64_C(1) << i;
  }
}

// The argument whose inputs come now; NULL: nobody knows.
static const weir_arg_t* next_arg(TFE_Op* op) {
  const bool is_known = op->next_arg >= 0 && op->next_arg < op->op->input_count;
  return is_known ? &op->op->inputs[op->next_arg++] : NULL;
}

void TFE_OpAddInputList(TFE_Op* op, TFE_TensorHandle** inputs, int num_inputs, TF_Status* status) {
  if (!tf_status_take(status, add_inputs(op, inputs, num_inputs))) return;
  const weir_arg_t* arg = next_arg(op);
  if (!arg) return;
  note_told(op, arg->number_attr);
  note_told(op, arg->type_list_attr);
  if (num_inputs > 0) note_told(op, arg->type_attr);
}

void TFE_OpAddInput(TFE_Op* op, TFE_TensorHandle* input, TF_Status* status) {
  if (!tf_status_take(status, add_inputs(op, &input, 1))) return;
  const weir_arg_t* arg = next_arg(op);
  if (!arg) return;
  if (arg->number_attr || arg->type_list_attr) op->next_arg = -1;  // how many are to come?
  else note_told(op, arg->type_attr);
}

int TFE_OpGetFlatInputCount(const TFE_Op* op, TF_Status* status) {
  tf_status_clear(status);
  return (int)op->input_count;
}

TFE_TensorHandle* TFE_OpGetFlatInput(const TFE_Op* op, int index, TF_Status* status) {
  bool is_there = index >= 0 && (size_t)index < op->input_count;
  weir_status_t* result =
      is_there ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "input %d of %zu", index, op->input_count);
  return tf_status_take(status, result) ? op->inputs[index] : NULL;
}

// ---- preparing ----

weir_status_t* tfe_op_prepare(TFE_Op* op, weir_eager_op_t** out_op) {
  if (op->error) return weir_status_copy(op->error);
  weir_dtype_t* types = weir_alloc_array(op->input_count, sizeof(*types));
  if (!types) return weir_out_of_memory();
  for (size_t i = 0; i < op->input_count; ++i) types[i] = weir_tensor_type(op->inputs[i]->tensor);
  weir_eager_ask_t ask = {.op = op->name,
                          .device = op->device,
                          .attrs = {.items = op->attrs, .count = op->attr_count},
                          .types = types,
                          .input_count = (int)op->input_count,
                          .refuse_attrs = true};
  weir_status_t* status =
      weir_eager_find_op(op->ctx->eager, &ask, weir_eager_ask_hash(&ask), op->name, out_op);
  weir_free(types);
  return status;
}

typedef void (*range_fn_t)(const weir_node_def_t* node, int arg, int* out_first, int* out_count);

static int length_of(TFE_Op* op, const char* name, bool is_output, TF_Status* status) {
  weir_eager_op_t* prepared = NULL;
  const weir_arg_t* args = is_output ? op->op->outputs : op->op->inputs;
  int count = is_output ? op->op->output_count : op->op->input_count, arg = 0;
  while (arg < count && strcmp(args[arg].name, name)) ++arg;
  weir_status_t* result = arg < count ? tfe_op_prepare(op, &prepared)
                                      : WEIR_STATUS(INVALID_ARGUMENT, "%s '%s' not found",
                                                    is_output ? "Output" : "Input", name);
  if (!tf_status_take(status, result)) return -1;
  range_fn_t range = is_output ? weir_node_output_range : weir_node_input_range;
  int first = 0, length = 0;
  range(&prepared->def, arg, &first, &length);
  return length;
}

int TFE_OpGetInputLength(TFE_Op* op, const char* input_name, TF_Status* status) {
  return length_of(op, input_name, false, status);
}

int TFE_OpGetOutputLength(TFE_Op* op, const char* output_name, TF_Status* status) {
  return length_of(op, output_name, true, status);
}

// ---- running ----

// A step of its own, or part of the one that the context has begun.
static weir_status_t* begin_step(TFE_Op* op, weir_step_t* step, bool* out_is_lent) {
  TFE_Context* ctx = op->ctx;
  WEIR_TRY(weir_eager_step_init(ctx->eager, step));
  weir_mutex_lock(&ctx->mu);
  step->resources = ctx->step_resources;
  weir_mutex_unlock(&ctx->mu);
  *out_is_lent = step->resources != NULL;
  if (!op->cancel) return NULL;
  weir_cancel_destroy(step->cancel);
  step->cancel = NULL;
  return weir_cancel_create(op->cancel, &step->cancel);
}

static void end_step(weir_step_t* step, bool is_lent) {
  if (is_lent) step->resources = NULL;
  weir_eager_step_deinit(step);
}

static weir_status_t* give(TFE_Op* op, int device, weir_value_t* values, int count,
                           TFE_TensorHandle** retvals) {
  weir_status_t* status = NULL;
  for (int i = 0; i < count; ++i) {
    retvals[i] = NULL;
    if (!status && !values[i].tensor)
      status = WEIR_STATUS(UNIMPLEMENTED, "output %d of %s is a reference or dead", i, op->name);
    if (!status)
      status = tfe_handle_create(op->ctx->eager, device, weir_tensor_retain(values[i].tensor),
                                 &retvals[i]);
  }
  for (int i = 0; i < count && status; ++i) {
    TFE_DeleteTensorHandle(retvals[i]);
    retvals[i] = NULL;
  }
  return status;
}

static weir_status_t* run(TFE_Op* op, weir_eager_op_t* prepared, weir_value_t* values,
                          int* out_device) {
  weir_step_t step = {.id = 0};
  bool is_lent = false;
  weir_eager_value_t* inputs = weir_alloc_array(op->input_count, sizeof(*inputs));
  weir_status_t* status = inputs ? begin_step(op, &step, &is_lent) : weir_out_of_memory();
  for (size_t i = 0; i < op->input_count && !status; ++i)
    inputs[i] = (weir_eager_value_t){.value = {.tensor = op->inputs[i]->tensor},
                                     .device = op->inputs[i]->device};
  if (!status)
    status =
        weir_eager_execute(op->ctx->eager, prepared, &step, op->name, inputs, values, out_device);
  end_step(&step, is_lent);
  weir_free(inputs);
  return status;
}

static weir_status_t* execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals) {
  weir_eager_op_t* prepared = NULL;
  WEIR_TRY(tfe_op_prepare(op, &prepared));
  int count = prepared->def.output_count, device = 0;
  if (*num_retvals < count)
    return WEIR_STATUS(INVALID_ARGUMENT, "Expecting %d outputs, but *num_retvals is %d", count,
                       *num_retvals);
  weir_value_t* values = weir_calloc((size_t)count, sizeof(*values));
  if (!values) return weir_out_of_memory();
  weir_status_t* status = run(op, prepared, values, &device);
  if (!status) status = give(op, device, values, count, retvals);
  if (!status) *num_retvals = count;
  for (int i = 0; i < count; ++i) weir_value_release(&values[i]);
  weir_free(values);
  return status;
}

void TFE_Execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals, TF_Status* status) {
  tf_status_take(status, execute(op, retvals, num_retvals));
}
