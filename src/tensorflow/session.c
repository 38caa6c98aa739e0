// session.c — TF_Session: options, creation, steps, and closing.
#include "session/session.h"

#include "tensorflow/internal.h"
#include "wire/wire.h"
#ifdef WEIR_HAVE_CLUSTER
#include "cluster/task/messages.h"
#endif

enum {
  CONFIG_DEVICE_COUNT = 1,
  CONFIG_INTRA_OP_THREADS = 2,
  CONFIG_DEVICE_FILTERS = 4,
  CONFIG_INTER_OP_THREADS = 5,
  CONFIG_ALLOW_SOFT_PLACEMENT = 7,
  CONFIG_ISOLATE_SESSION_STATE = 15,
};
enum { RUN_TRACE_LEVEL = 1, RUN_TIMEOUT_IN_MS = 2 };

// ---- options ----

TF_SessionOptions* TF_NewSessionOptions(void) { return weir_calloc(1, sizeof(TF_SessionOptions)); }

void TF_DeleteSessionOptions(TF_SessionOptions* options) {
  if (!options) return;
  weir_free(options->target);
  weir_strbuf_free(&options->config);
  weir_free(options);
}

void TF_SetTarget(TF_SessionOptions* options, const char* target) {
  const bool is_here = !target || !*target || strcmp(target, "local") == 0;
  weir_free(options->target);
  options->target = is_here ? NULL : weir_strdup(target);
}

void TF_SetConfig(TF_SessionOptions* options, const void* proto, size_t proto_len,
                  TF_Status* status) {
  weir_wire_reader_t r = weir_wire_reader(weir_view(proto, proto_len));
  while (weir_wire_next(&r)) {
  }
  weir_status_t* result = weir_wire_check(&r, "ConfigProto");
  if (result) {
    weir_status_destroy(result);
    tf_status_take(status, WEIR_STATUS(INVALID_ARGUMENT, "Unparseable ConfigProto"));
    return;
  }
  weir_strbuf_free(&options->config);
  options->config = (weir_strbuf_t){0};
  weir_strbuf_append(&options->config, proto, proto_len);
  tf_status_take(status, weir_strbuf_finish(&options->config));
}

// One entry of the map device_count: only CPUs can be counted here.
static void read_device_count(weir_view_t entry, int64_t* out_cpus) {
  weir_view_t type = {0};
  int64_t count = 0;
  weir_wire_reader_t r = weir_wire_reader(entry);
  while (weir_wire_next(&r)) {
    if (r.field == 1 && r.type == WEIR_WIRE_BYTES) type = r.bytes;
    if (r.field == 2 && r.type == WEIR_WIRE_VARINT) count = weir_wire_int(&r);
  }
  if (weir_view_is(type, "CPU")) *out_cpus = count;
}

static weir_status_t* read_config(weir_view_t config, weir_arena_t* arena,
                                  weir_session_options_t* options) {
  enum { MAX_CPUS = 64 };
  int64_t cpus = 0, intra = 0, inter = 0;
  weir_wire_reader_t r = weir_wire_reader(config);
  while (weir_wire_next(&r)) {
    if (r.field == CONFIG_DEVICE_COUNT && r.type == WEIR_WIRE_BYTES)
      read_device_count(r.bytes, &cpus);
    if (r.field == CONFIG_INTRA_OP_THREADS) intra = (int32_t)weir_wire_int(&r);
    if (r.field == CONFIG_INTER_OP_THREADS) inter = (int32_t)weir_wire_int(&r);
    if (r.field == CONFIG_ALLOW_SOFT_PLACEMENT) options->allow_soft_placement = weir_wire_bool(&r);
    if (r.field == CONFIG_ISOLATE_SESSION_STATE) options->isolate_state = weir_wire_bool(&r);
    if (r.field == CONFIG_DEVICE_FILTERS && r.type == WEIR_WIRE_BYTES) {
      const char* before = options->device_filters;
      options->device_filters = weir_arena_printf(arena, "%s%s%.*s", before ? before : "",
                                                  before ? "," : "", WEIR_VIEW_ARG(r.bytes));
    }
  }
  WEIR_TRY(weir_wire_check(&r, "ConfigProto"));
  // Inter-op threads alone say nothing of how many there are in all, unless both are one.
  options->threads = (int)WEIR_MAX(intra, intra > 0 ? inter : 0);
  if (options->threads < 0) options->threads = 0;
  if (cpus > 1)
    options->devices = weir_arena_printf(arena, "cpu:%d", (int)WEIR_MIN(cpus, MAX_CPUS));
#ifdef WEIR_HAVE_CLUSTER
  if (weir_config_is_unoptimized(config)) options->disabled_passes = "all";
  options->mixed_precision = weir_config_mixed_precision(config);
#endif
  return NULL;
}

weir_status_t* tf_session_options(const TF_SessionOptions* options, weir_arena_t* arena,
                                  weir_session_options_t* out_options) {
  // In TensorFlow sessions of one process share no variables, but for those on a server.
  *out_options = (weir_session_options_t){.isolate_state = true};
  if (!options) return NULL;
  out_options->target = options->target;
  if (options->target) out_options->isolate_state = false;
  return read_config(weir_strbuf_view(&options->config), arena, out_options);
}

// ---- creation ----

weir_status_t* tf_session_wrap(weir_graph_t* graph, const char* target,
                               weir_session_t* take_session, TF_Session** out_session) {
  TF_Session* session = weir_calloc(1, sizeof(*session));
  char* copy = target ? weir_strdup(target) : NULL;
  if (!session || (target && !copy)) {
    weir_free(session);
    weir_session_destroy(take_session);
    return weir_out_of_memory();
  }
  session->session = take_session;
  session->graph = weir_graph_ref(graph);
  session->target = copy;
  weir_mutex_init(&session->mu);
  *out_session = session;
  return NULL;
}

weir_status_t* tf_session_open(weir_graph_t* graph, const TF_SessionOptions* options,
                               TF_Session** out_session) {
  weir_arena_t arena = {0};
  weir_session_options_t wanted;
  weir_session_t* session = NULL;
  weir_status_t* status = tf_session_options(options, &arena, &wanted);
  if (!status) status = weir_session_create(graph, &wanted, &session);
  if (!status) status = tf_session_wrap(graph, wanted.target, session, out_session);
  weir_arena_free(&arena);
  return status;
}

TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* opts, TF_Status* status) {
  TF_Session* session = NULL;
  tf_status_take(status, tf_session_open(graph->graph, opts, &session));
  return session;
}

void TF_ExtendSession(TF_Session* session, TF_Status* status) {
  tf_status_take(status, tf_session_check(session));
}

// ---- closing ----

weir_status_t* tf_session_check(TF_Session* session) {
  weir_mutex_lock(&session->mu);
  const bool is_closed = session->is_closed;
  weir_mutex_unlock(&session->mu);
  return is_closed ? WEIR_STATUS(CANCELLED, "Session has been closed.") : NULL;
}

void TF_CloseSession(TF_Session* session, TF_Status* status) {
  weir_mutex_lock(&session->mu);
  const bool was_closed = session->is_closed;
  session->is_closed = true;
  weir_mutex_unlock(&session->mu);
  if (!was_closed) weir_session_cancel(session->session);
  tf_status_clear(status);
}

void tf_session_free(TF_Session* session) {
  if (!session) return;
  tf_partials_free(session);
  weir_session_destroy(session->session);
  weir_graph_unref(session->graph);
  weir_free(session->target);
  weir_mutex_destroy(&session->mu);
  weir_free(session);
}

void TF_DeleteSession(TF_Session* session, TF_Status* status) {
  tf_session_free(session);
  tf_status_clear(status);
}

// ---- steps ----

weir_status_t* tf_run_options_parse(const TF_Buffer* buffer, weir_run_options_t* out_options) {
  *out_options = (weir_run_options_t){0};
  weir_wire_reader_t r = weir_wire_reader(tf_buffer_view(buffer));
  while (weir_wire_next(&r)) {
    if (r.field == RUN_TRACE_LEVEL) out_options->trace = weir_wire_int(&r) > 0;
    if (r.field == RUN_TIMEOUT_IN_MS) out_options->timeout_ms = weir_wire_int(&r);
  }
  weir_status_t* status = weir_wire_check(&r, "RunOptions");
  if (!status) return NULL;
  weir_status_destroy(status);
  return WEIR_STATUS(INVALID_ARGUMENT, "Unparseable RunOptions proto");
}

static weir_status_t* init_feeds(const tf_step_args_t* args, tf_step_t* step) {
  for (int i = 0; i < args->input_count; ++i) {
    weir_feed_t* feed = &step->feeds[i];
    feed->edge = tf_edge(args->inputs[i]);
    step->spec.feed_count = i + 1;
    if (args->input_values) WEIR_TRY(tf_tensor_in(args->input_values[i], &feed->tensor));
  }
  return NULL;
}

weir_status_t* tf_step_init(const tf_step_args_t* args, tf_step_t* out_step) {
  tf_step_t* step = out_step;
  *step = (tf_step_t){.spec = {.targets = (weir_node_t* const*)(uintptr_t)args->targets,
                               .target_count = args->target_count}};
  step->feeds = weir_calloc((size_t)args->input_count, sizeof(*step->feeds));
  step->fetches = weir_calloc((size_t)args->output_count, sizeof(*step->fetches));
  step->results = weir_calloc((size_t)args->output_count, sizeof(weir_tensor_t*));
  if (!step->feeds || !step->fetches || !step->results) return weir_out_of_memory();
  step->spec.feeds = step->feeds;
  step->spec.fetches = step->fetches;
  for (int i = 0; i < args->output_count; ++i) step->fetches[i] = tf_edge(args->outputs[i]);
  step->spec.fetch_count = args->output_count;
  return init_feeds(args, step);
}

weir_status_t* tf_step_give(tf_step_t* step, TF_Tensor** output_values) {
  weir_status_t* status = NULL;
  int given = 0;
  for (; given < step->spec.fetch_count && !status; ++given) {
    weir_tensor_t* tensor = step->results[given];
    step->results[given] = NULL;
    status = tf_tensor_out(tensor, &output_values[given]);
  }
  for (int i = 0; status && i < given; ++i) {
    TF_DeleteTensor(output_values[i]);
    output_values[i] = NULL;
  }
  return status;
}

void tf_step_free(tf_step_t* step) {
  for (int i = 0; step->feeds && i < step->spec.feed_count; ++i)
    weir_tensor_release(step->feeds[i].tensor);
  for (int i = 0; step->results && i < step->spec.fetch_count; ++i)
    weir_tensor_release(step->results[i]);
  weir_free(step->feeds);
  weir_free(step->fetches);
  weir_free(step->results);
}

static weir_status_t* give_metadata(char* take_data, size_t size, TF_Buffer* run_metadata) {
  weir_strbuf_t bytes = {.data = take_data, .size = size, .capacity = size};
  return tf_buffer_take(run_metadata, &bytes);
}

static weir_status_t* run(TF_Session* session, const TF_Buffer* run_options, tf_step_t* step,
                          TF_Buffer* run_metadata) {
  weir_run_options_t options;
  char* metadata = NULL;
  size_t size = 0;
  WEIR_TRY(tf_session_check(session));
  WEIR_TRY(tf_run_options_parse(run_options, &options));
  if (run_metadata && run_metadata->data)
    return WEIR_STATUS(INVALID_ARGUMENT, "Passing non-empty run_metadata is invalid.");
  WEIR_TRY(weir_session_run_with(session->session, &step->spec, &options, step->results,
                                 run_metadata ? &metadata : NULL, run_metadata ? &size : NULL));
  return run_metadata ? give_metadata(metadata, size, run_metadata) : NULL;
}

void TF_SessionRun(TF_Session* session, const TF_Buffer* run_options, const TF_Output* inputs,
                   TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
                   TF_Tensor** output_values, int noutputs, const TF_Operation* const* target_opers,
                   int ntargets, TF_Buffer* run_metadata, TF_Status* status) {
  const tf_step_args_t args = {inputs,   input_values, ninputs, outputs,
                               noutputs, target_opers, ntargets};
  tf_step_t step;
  for (int i = 0; i < noutputs; ++i) output_values[i] = NULL;
  weir_status_t* result = tf_step_init(&args, &step);
  if (!result) result = run(session, run_options, &step, run_metadata);
  if (!result) result = tf_step_give(&step, output_values);
  tf_step_free(&step);
  tf_status_take(status, result);
}
