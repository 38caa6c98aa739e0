// compile.c — From a signature to a plan, and the cache of plans.
#include "runtime/placing.h"
#include "runtime/predict.h"
#include "session/session.h"
#include "weir/argument.h"

static weir_status_t* make_source(weir_session_t* session, const weir_step_spec_t* spec,
                                  weir_source_t* out_source) {
  weir_graph_t* copy = NULL;
  weir_node_t** targets = NULL;
  WEIR_TRY(weir_signature_check(session->graph, spec));
  WEIR_TRY(weir_signature_prune(session->graph, spec, WEIR_NO_CONNECTIONS, &copy, &targets));
  *out_source = (weir_source_t){.graph = copy,
                                .targets = targets,
                                .target_count = spec->target_count,
                                .arg_count = spec->feed_count,
                                .ret_count = spec->fetch_count};
  return NULL;
}

static weir_status_t* build_plan(weir_session_t* session, const weir_step_spec_t* spec,
                                 weir_plan_t** out_plan) {
  weir_source_t source;
  WEIR_TRY(make_source(session, spec, &source));
  return weir_program_compile(session->program, &source, out_plan);
}

weir_status_t* weir_session_describe_step(weir_session_t* session, const weir_step_spec_t* spec,
                                          const weir_describe_options_t* options, char** out_text) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(spec);
  WEIR_REQUIRE_ARG(out_text);
  if (session->remote)
    return WEIR_STATUS(UNIMPLEMENTED, "where a step's nodes go is a remote session's secret");
  weir_predict_params_t params = {.cluster = options ? options->cluster : NULL,
                                  .trace = options ? options->trace : NULL,
                                  .json = options && options->json,
                                  .with_nodes = options && options->with_nodes};
  weir_strbuf_t text = {0};
  WEIR_TRY(weir_signature_check_arrays(spec));
  WEIR_TRY(make_source(session, spec, &params.source));
  weir_status_t* status = weir_program_predict(session->program, &params, &text);
  if (status) weir_strbuf_free(&text);
  else *out_text = text.data;
  return status;
}

weir_status_t* weir_session_describe_rates(weir_session_t* session, char** out_text) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(out_text);
  if (session->remote)
    return WEIR_STATUS(UNIMPLEMENTED, "how fast devices are is a remote session's secret");
  weir_strbuf_t text = {0};
  weir_status_t* status = weir_program_print_rates(session->program, &text);
  if (status) weir_strbuf_free(&text);
  else *out_text = text.data;
  return status;
}

int64_t weir_session_device_peak_bytes(const weir_session_t* session) {
  if (!session || session->remote) return 0;
  return weir_runtime_device_peak_bytes(session->program->runtime);
}

double weir_session_device_busy(const weir_session_t* session) {
  if (!session || session->remote) return -1;
  return weir_runtime_device_busy(session->program->runtime);
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
  WEIR_TRY(weir_signature_check_arrays(spec));
  weir_signature_append(spec, &key);
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
