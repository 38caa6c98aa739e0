// compile.c — From a signature to a plan: prune, flatten, check devices, optimise, freeze.
#include "graph/flatten.h"
#include "session/session.h"

// ---- constant folding's evaluator ----

static weir_status_t* run_kernel(weir_session_t* session, const weir_node_t* node,
                                 const weir_kernel_def_t* kernel, weir_value_t* inputs,
                                 weir_value_t* outputs) {
  weir_status_t* status = NULL;
  void* state = kernel->state_size ? weir_calloc(1, kernel->state_size) : NULL;
  if (kernel->state_size && !state) return weir_out_of_memory();
  weir_kernel_init_t init = {.node = &node->def, .device = session->device};
  if (kernel->init) status = kernel->init(&init, state);
  weir_step_t step = {.session_resources = session->resources, .inter_pool = session->pool};
  weir_kernel_ctx_t ctx = {.node = &node->def,
                           .kernel = kernel,
                           .state = state,
                           .inputs = inputs,
                           .outputs = outputs,
                           .device = session->device,
                           .step = &step,
                           .input_count = node->def.input_count,
                           .output_count = node->def.output_count};
  if (!status) status = kernel->compute(&ctx);
  if (kernel->deinit) kernel->deinit(state);
  weir_free(state);
  return status;
}

// A node that fails here is left in the graph: it fails, or does not, when it is run.
static weir_status_t* evaluate(void* self, const weir_node_t* node, weir_tensor_t* const* inputs,
                               weir_tensor_t** outputs) {
  weir_session_t* session = self;
  const weir_kernel_def_t* kernel = NULL;
  weir_status_t* status = weir_op_find_kernel(&node->def, session->device->type, &kernel);
  if (!status && !kernel->compute) status = WEIR_STATUS(UNIMPLEMENTED, "asynchronous");
  size_t count = (size_t)node->def.input_count + (size_t)node->def.output_count;
  weir_value_t* values = status ? NULL : weir_calloc(count, sizeof(*values));
  if (!status && !values) status = weir_out_of_memory();
  if (!status) {
    weir_value_t* results = values + node->def.input_count;
    for (int i = 0; i < node->def.input_count; ++i)
      values[i].tensor = weir_tensor_retain(inputs[i]);
    status = run_kernel(session, node, kernel, values, results);
    for (int i = 0; i < node->def.output_count && !status; ++i) {
      outputs[i] = results[i].tensor;
      results[i].tensor = NULL;
    }
    for (size_t i = 0; i < count; ++i) weir_value_release(&values[i]);
  }
  weir_free(values);
  if (!status) return NULL;
  weir_status_destroy(status);
  return WEIR_STATUS(UNIMPLEMENTED, "node '%s' cannot be folded", node->def.name);
}

// ---- placement ----

// One device so far: every node must allow it.
static weir_status_t* check_device(const weir_session_t* session, const weir_node_t* node) {
  if (!*node->def.device) return NULL;
  weir_device_name_t want, have;
  WEIR_TRY(weir_status_prefix(weir_device_name_parse(weir_view_of(node->def.device), &want),
                              "Node '%s': ", node->def.name));
  WEIR_TRY(weir_device_name_parse(weir_view_of(session->device->name), &have));
  if (weir_device_name_matches(&want, &have) || session->allow_soft_placement) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Cannot assign a device for operation %s: it asks for '%s', and this process has only '%s'",
      node->def.name, node->def.device, session->device->name);
}

static weir_status_t* optimize(weir_session_t* session, weir_graph_t* graph, weir_node_t** targets,
                               int target_count, bool is_function) {
  weir_pass_ctx_t ctx = {.graph = graph,
                         .targets = targets,
                         .target_count = target_count,
                         .has_moving_args = is_function,
                         .evaluator = {.evaluate = evaluate, .self = session}};
  return weir_passes_run(&ctx, session->disabled_passes);
}

weir_status_t* weir_session_optimize(weir_session_t* session, weir_graph_t* graph,
                                     weir_node_t** targets, int target_count) {
  return optimize(session, graph, targets, target_count, false);
}

weir_status_t* weir_session_compile(weir_session_t* session, weir_graph_t* take_graph,
                                    weir_node_t** targets, int target_count, int arg_count,
                                    int ret_count, weir_kernel_cache_t* kernels,
                                    weir_plan_t** out_plan) {
  weir_status_t* status = NULL;
  bool is_function = kernels == NULL;
  for (size_t i = 0; i < take_graph->node_count && !status; ++i)
    status = check_device(session, take_graph->nodes[i]);
  if (!status) status = optimize(session, take_graph, targets, target_count, is_function);
  if (status) {
    weir_graph_unref(take_graph);
    return status;
  }
  weir_plan_params_t params = {.graph = take_graph,
                               .targets = targets,
                               .target_count = target_count,
                               .arg_count = arg_count,
                               .ret_count = ret_count,
                               .has_moving_args = is_function,
                               .device = session->device,
                               .functions = weir_session_functions_base(session->functions),
                               .kernels = kernels};
  return weir_plan_create(&params, out_plan);
}

// ---- signatures ----

static weir_status_t* check_target(const weir_graph_t* graph, const weir_node_t* node, int index) {
  if (!node) return WEIR_STATUS(INVALID_ARGUMENT, "target %d is no node", index);
  if (node->graph == graph) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "target %d is '%s' of another graph", index, node->def.name);
}

weir_status_t* weir_session_check_arrays(const weir_step_spec_t* spec) {
  const char* missing = spec->feed_count > 0 && !spec->feeds       ? "feeds"
                        : spec->fetch_count > 0 && !spec->fetches  ? "fetches"
                        : spec->target_count > 0 && !spec->targets ? "targets"
                                                                   : NULL;
  if (!missing) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "the %s of a step are counted, but NULL", missing);
}

weir_status_t* weir_session_check_spec(const weir_session_t* session,
                                       const weir_step_spec_t* spec) {
  WEIR_TRY(weir_session_check_arrays(spec));
  for (int i = 0; i < spec->feed_count; ++i) {
    weir_edge_t edge = spec->feeds[i].edge;
    WEIR_TRY(weir_graph_check_edge(session->graph, edge, "feed", i));
    for (int k = 0; k < i; ++k) {
      if (!weir_edge_equal(spec->feeds[k].edge, edge)) continue;
      return WEIR_STATUS(INVALID_ARGUMENT, "Tensor '%s:%d' is fed more than once",
                         edge.node->def.name, edge.index);
    }
  }
  for (int i = 0; i < spec->fetch_count; ++i)
    WEIR_TRY(weir_graph_check_edge(session->graph, spec->fetches[i], "fetch", i));
  for (int i = 0; i < spec->target_count; ++i)
    WEIR_TRY(check_target(session->graph, spec->targets[i], i));
  if (spec->fetch_count + spec->target_count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Must specify at least one target to fetch or execute.");
}

weir_status_t* weir_session_prune(weir_session_t* session, const weir_step_spec_t* spec,
                                  weir_connections_t connections, weir_graph_t** out_graph,
                                  weir_node_t*** out_targets) {
  weir_edge_t* feeds = weir_alloc_array((size_t)spec->feed_count, sizeof(*feeds));
  if (!feeds) return weir_out_of_memory();
  for (int i = 0; i < spec->feed_count; ++i) feeds[i] = spec->feeds[i].edge;
  weir_prune_params_t params = {.graph = session->graph,
                                .feeds = {.items = feeds, .count = spec->feed_count},
                                .connections = connections,
                                .fetches = {.items = spec->fetches, .count = spec->fetch_count},
                                .targets = spec->targets,
                                .target_count = spec->target_count};
  weir_mutex_lock(&session->graph->mu);
  weir_status_t* status = weir_prune(&params, out_graph, out_targets);
  weir_mutex_unlock(&session->graph->mu);
  weir_free(feeds);
  if (status) return status;
  status = weir_flatten(*out_graph, WEIR_FLATTEN_MARKED);
  if (status) weir_graph_unref(*out_graph);
  return status;
}

static weir_status_t* build_plan(weir_session_t* session, const weir_step_spec_t* spec,
                                 weir_plan_t** out_plan) {
  weir_graph_t* copy = NULL;
  weir_node_t** targets = NULL;
  WEIR_TRY(weir_session_check_spec(session, spec));
  WEIR_TRY(weir_session_prune(session, spec, WEIR_NO_CONNECTIONS, &copy, &targets));
  return weir_session_compile(session, copy, targets, spec->target_count, spec->feed_count,
                              spec->fetch_count, session->kernels, out_plan);
}

// The signature as bytes: which edges are fed and fetched, which nodes run.
void weir_session_append_signature(const weir_step_spec_t* spec, weir_strbuf_t* key) {
  int counts[3] = {spec->feed_count, spec->fetch_count, spec->target_count};
  weir_strbuf_append(key, counts, sizeof(counts));
  for (int i = 0; i < spec->feed_count; ++i) {
    weir_strbuf_append(key, &spec->feeds[i].edge.node, sizeof(void*));
    weir_strbuf_append(key, &spec->feeds[i].edge.index, sizeof(int));
  }
  for (int i = 0; i < spec->fetch_count; ++i) {
    weir_strbuf_append(key, &spec->fetches[i].node, sizeof(void*));
    weir_strbuf_append(key, &spec->fetches[i].index, sizeof(int));
  }
  for (int i = 0; i < spec->target_count; ++i)
    weir_strbuf_append(key, &spec->targets[i], sizeof(void*));
}

// The plan in the cache, retained; NULL: none.
static weir_plan_t* find_plan(weir_session_t* session, weir_view_t key) {
  weir_mutex_lock(&session->mu);
  weir_plan_t* plan = weir_lru_find(&session->plans, key);
  if (plan) weir_plan_retain(plan);
  weir_mutex_unlock(&session->mu);
  return plan;
}

static weir_status_t* keep_plan(weir_session_t* session, weir_view_t key, weir_plan_t* plan) {
  void* unused = NULL;
  weir_status_t* status = NULL;
  weir_mutex_lock(&session->mu);
  // Where another thread was faster, this plan serves once.
  if (!weir_lru_find(&session->plans, key)) {
    status = weir_lru_put(&session->plans, key, plan, &unused);
    if (!status) weir_plan_retain(plan);
  }
  weir_mutex_unlock(&session->mu);
  weir_plan_release(unused);
  return status;
}

weir_status_t* weir_session_plan(weir_session_t* session, const weir_step_spec_t* spec,
                                 weir_plan_t** out_plan) {
  weir_strbuf_t key = {0};
  WEIR_TRY(weir_session_check_arrays(spec));
  weir_session_append_signature(spec, &key);
  weir_status_t* status = weir_strbuf_finish(&key);
  weir_plan_t* plan = status ? NULL : find_plan(session, weir_strbuf_view(&key));
  if (!status && !plan) {
    status = build_plan(session, spec, &plan);
    if (!status) status = keep_plan(session, weir_strbuf_view(&key), plan);
  }
  weir_strbuf_free(&key);
  if (status) weir_plan_release(plan);
  else *out_plan = plan;
  return status;
}
