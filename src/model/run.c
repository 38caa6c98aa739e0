// run.c — Runs a signature: inputs and outputs by name, checked, on a step that was prepared once.
#include "model/model.h"
#include "weir/argument.h"

// ---- signatures ----

int weir_model_signature_count(const weir_model_t* model) {
  WEIR_ASSERT_ARG(model);
  return model->signature_count;
}

const weir_signature_t* weir_model_signature_at(const weir_model_t* model, int index) {
  WEIR_ASSERT_ARG(model);
  return index >= 0 && index < model->signature_count ? &model->signatures[index].info : NULL;
}

static weir_bound_signature_t* find_signature(const weir_model_t* model, const char* name) {
  const char* wanted = name ? name : "serving_default";
  for (int i = 0; i < model->signature_count; ++i) {
    if (strcmp(model->signatures[i].info.name, wanted) == 0) return &model->signatures[i];
  }
  return !name && model->signature_count == 1 ? &model->signatures[0] : NULL;
}

const weir_signature_t* weir_model_find_signature(const weir_model_t* model, const char* name) {
  WEIR_ASSERT_ARG(model);
  const weir_bound_signature_t* found = find_signature(model, name);
  return found ? &found->info : NULL;
}

weir_status_t* weir_model_no_signature(const weir_model_t* model, const char* name) {
  weir_strbuf_t names = {0};
  for (int i = 0; i < model->signature_count; ++i)
    weir_strbuf_printf(&names, "%s'%s'", i ? ", " : "", model->signatures[i].info.name);
  weir_status_t* status = weir_strbuf_finish(&names);
  if (!status) {
    status = WEIR_STATUS(NOT_FOUND, "the model has no signature '%s'; it has %s",
                         name ? name : "serving_default", names.size ? names.data : "none");
  }
  weir_strbuf_free(&names);
  return status;
}

// ---- what is fed ----

static int find_port(const weir_model_port_t* ports, int count, const char* name) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(ports[i].name, name) == 0) return i;
  }
  return -1;
}

// |what| is wrong with |name|: told with the names that there are.
static weir_status_t* bad_port(const weir_signature_t* signature, bool is_input, const char* name,
                               const char* what) {
  weir_strbuf_t names = {0};
  weir_model_list_ports(is_input ? signature->inputs : signature->outputs,
                        is_input ? signature->input_count : signature->output_count, &names);
  weir_status_t* status = weir_strbuf_finish(&names);
  if (!status) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "signature '%s': %s '%s' %s; %ss are %s",
                         signature->name, is_input ? "input" : "output", name, what,
                         is_input ? "input" : "output", names.data);
  }
  weir_strbuf_free(&names);
  return status;
}

static void append_dims(weir_strbuf_t* out, int rank, const int64_t* dims) {
  weir_strbuf_putc(out, '[');
  for (int i = 0; i < rank; ++i) {
    if (i) weir_strbuf_putc(out, ',');
    if (dims[i] < 0) weir_strbuf_putc(out, '?');
    else weir_strbuf_printf(out, "%lld", (long long)dims[i]);
  }
  weir_strbuf_putc(out, ']');
}

static bool accepts(const weir_model_port_t* port, const weir_tensor_t* tensor) {
  if (port->rank < 0) return true;
  if (port->rank != tensor->rank) return false;
  for (int i = 0; i < port->rank; ++i) {
    if (port->dims[i] >= 0 && port->dims[i] != tensor->dims[i]) return false;
  }
  return true;
}

static weir_status_t* bad_tensor(const weir_signature_t* signature, const weir_model_port_t* port,
                                 const weir_tensor_t* tensor) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "is %s", weir_dtype_name(port->dtype));
  if (port->rank >= 0) append_dims(&text, port->rank, port->dims);
  weir_strbuf_printf(&text, ", not %s", weir_dtype_name(weir_tensor_type(tensor)));
  append_dims(&text, tensor->rank, tensor->dims);
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) status = bad_port(signature, true, port->name, text.data);
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* take_input(const weir_signature_t* signature,
                                 const weir_named_tensor_t* input, weir_tensor_t** args) {
  int i = input->name ? find_port(signature->inputs, signature->input_count, input->name) : -1;
  if (i < 0) return bad_port(signature, true, input->name ? input->name : "", "is unknown");
  const weir_model_port_t* port = &signature->inputs[i];
  if (args[i]) return bad_port(signature, true, input->name, "is given twice");
  if (!input->tensor) return bad_port(signature, true, input->name, "has no tensor");
  bool fits = !port->dtype || port->dtype == weir_tensor_type(input->tensor);
  if (!fits || !accepts(port, input->tensor)) return bad_tensor(signature, port, input->tensor);
  WEIR_TRY(weir_signature_check_feed(port->edge, input->tensor));
  args[i] = input->tensor;
  return NULL;
}

static weir_status_t* take_inputs(const weir_bound_signature_t* bound,
                                  const weir_named_tensor_t* inputs, int count,
                                  weir_tensor_t** args) {
  const weir_signature_t* signature = &bound->info;
  for (int i = 0; i < count; ++i) WEIR_TRY(take_input(signature, &inputs[i], args));
  for (int i = 0; i < signature->input_count; ++i) {
    if (!args[i]) args[i] = bound->defaults[i];
    if (!args[i]) return bad_port(signature, true, signature->inputs[i].name, "is missing");
  }
  return NULL;
}

// ---- what is fetched ----

// Notes which outputs are wanted; |ports| says which one each name is.
static weir_status_t* take_outputs(const weir_signature_t* signature,
                                   const weir_named_tensor_t* outputs, int count, bool* wanted,
                                   int* ports) {
  for (int i = 0; i < count; ++i) {
    const char* name = outputs[i].name ? outputs[i].name : "";
    ports[i] = find_port(signature->outputs, signature->output_count, name);
    if (ports[i] < 0) return bad_port(signature, false, name, "is unknown");
    wanted[ports[i]] = true;
  }
  return NULL;
}

// ---- one run ----

typedef struct call_t {
  weir_model_t* model;
  weir_bound_signature_t* bound;
  const weir_run_options_t* options;
  weir_arena_t arena;  // what follows
  weir_tensor_t** args;
  bool* wanted;  // by output
  int* ports;    // by name that was asked for
  weir_feed_t* feeds;
  weir_edge_t* fetches;
  int fetch_count;
  weir_tensor_t** results;
} call_t;

static weir_status_t* make_arrays(call_t* call, int output_count) {
  size_t inputs = (size_t)call->bound->info.input_count;
  size_t outputs = (size_t)call->bound->info.output_count;
  call->args = weir_arena_array(&call->arena, inputs, sizeof(*call->args));
  call->feeds = weir_arena_array(&call->arena, inputs, sizeof(*call->feeds));
  call->wanted = weir_arena_array(&call->arena, outputs, sizeof(*call->wanted));
  call->fetches = weir_arena_array(&call->arena, outputs, sizeof(*call->fetches));
  call->results = weir_arena_array(&call->arena, outputs, sizeof(*call->results));
  call->ports = weir_arena_array(&call->arena, (size_t)output_count, sizeof(*call->ports));
  bool is_made = call->args && call->feeds && call->wanted && call->fetches && call->results;
  return is_made && call->ports ? NULL : weir_out_of_memory();
}

static weir_step_spec_t spec_of(call_t* call) {
  const weir_signature_t* signature = &call->bound->info;
  call->fetch_count = 0;
  for (int i = 0; i < signature->input_count; ++i)
    call->feeds[i] = (weir_feed_t){.edge = signature->inputs[i].edge, .tensor = call->args[i]};
  for (int i = 0; i < signature->output_count; ++i) {
    if (call->wanted[i]) call->fetches[call->fetch_count++] = signature->outputs[i].edge;
  }
  return (weir_step_spec_t){.feeds = call->feeds,
                            .feed_count = signature->input_count,
                            .fetches = call->fetches,
                            .fetch_count = call->fetch_count};
}

// Borrowed: what is prepared stays as long as the model. NULL: not yet.
static weir_plan_t* find_plan(call_t* call) {
  weir_plan_t* plan = NULL;
  weir_bound_signature_t* bound = call->bound;
  weir_mutex_lock(&call->model->mu);
  for (int i = 0; !plan && i < bound->prepared_count; ++i) {
    size_t size = (size_t)bound->info.output_count * sizeof(*call->wanted);
    if (memcmp(bound->prepared[i].wanted, call->wanted, size) == 0) plan = bound->prepared[i].plan;
  }
  weir_mutex_unlock(&call->model->mu);
  return plan;
}

// Keeps |plan|, with a reference of its own, if there is room.
static void keep_plan(call_t* call, weir_plan_t* plan) {
  weir_bound_signature_t* bound = call->bound;
  size_t size = (size_t)bound->info.output_count * sizeof(bool);
  bool* wanted = weir_malloc(size);
  if (!wanted) return;
  memcpy(wanted, call->wanted, size);
  weir_mutex_lock(&call->model->mu);
  if (bound->prepared_count < WEIR_MODEL_PREPARED) {
    weir_plan_retain(plan);
    bound->prepared[bound->prepared_count++] = (weir_prepared_t){.wanted = wanted, .plan = plan};
    wanted = NULL;
  }
  weir_mutex_unlock(&call->model->mu);
  weir_free(wanted);
}

static weir_status_t* execute(call_t* call, weir_plan_t* plan) {
  const weir_run_options_t* options = call->options;
  weir_session_run_params_t params = {
      .plan = plan,
      .args = call->args,
      .rets = call->results,
      .cancel =
          options && options->cancellation ? weir_cancellation_get(options->cancellation) : NULL,
      .timeout_ms = options ? options->timeout_ms : 0,
  };
  return weir_session_execute(call->model->session, &params);
}

static weir_status_t* run_here(call_t* call) {
  weir_plan_t* plan = find_plan(call);
  if (plan) return execute(call, plan);
  weir_step_spec_t spec = spec_of(call);
  WEIR_TRY(weir_session_plan(call->model->session, &spec, &plan));
  keep_plan(call, plan);
  weir_status_t* status = execute(call, plan);
  weir_plan_release(plan);
  return status;
}

static weir_status_t* run_call(call_t* call) {
  if (!call->model->session->remote) return run_here(call);
  weir_step_spec_t spec = spec_of(call);
  return weir_session_run_with(call->model->session, &spec, call->options, call->results, NULL,
                               NULL);
}

// Results come in the order of the signature; names were asked for in any, perhaps twice.
static void hand_out(call_t* call, weir_named_tensor_t* outputs, int count) {
  weir_tensor_t** by_port = call->results;
  for (int i = call->bound->info.output_count - 1, at = call->fetch_count; i >= 0; --i)
    by_port[i] = call->wanted[i] ? by_port[--at] : NULL;
  for (int i = 0; i < count; ++i) outputs[i].tensor = weir_tensor_retain(by_port[call->ports[i]]);
  for (int i = 0; i < call->bound->info.output_count; ++i) weir_tensor_release(by_port[i]);
}

static weir_status_t* run(call_t* call, const weir_named_tensor_t* inputs, int input_count,
                          weir_named_tensor_t* outputs, int output_count) {
  const weir_signature_t* signature = &call->bound->info;
  WEIR_TRY(make_arrays(call, output_count));
  WEIR_TRY(take_inputs(call->bound, inputs, input_count, call->args));
  WEIR_TRY(take_outputs(signature, outputs, output_count, call->wanted, call->ports));
  for (int i = 0; i < signature->output_count; ++i) call->fetch_count += call->wanted[i];
  WEIR_TRY(run_call(call));
  hand_out(call, outputs, output_count);
  return NULL;
}

weir_status_t* weir_model_run(weir_model_t* model, const char* name,
                              const weir_named_tensor_t* inputs, int input_count,
                              weir_named_tensor_t* outputs, int output_count,
                              const weir_run_options_t* options) {
  WEIR_REQUIRE_ARG(model);
  if (input_count > 0) WEIR_REQUIRE_ARG(inputs);
  if (output_count > 0) WEIR_REQUIRE_ARG(outputs);
  WEIR_REQUIRE_COUNT(input_count);
  if (output_count <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "weir_model_run: no output is asked for");
  call_t call = {.model = model, .bound = find_signature(model, name), .options = options};
  if (!call.bound) return weir_model_no_signature(model, name);
  weir_status_t* status = run(&call, inputs, input_count, outputs, output_count);
  weir_arena_free(&call.arena);
  return status;
}
