// job.c — Jobs: their names looked up, their tensors held, their runs.
#include "serving/job.h"

#include "serving/batch.h"

// ---- names ----

static weir_status_t* find_signature(weir_job_t* job, weir_view_t name) {
  const char* text = NULL;
  if (name.size > 0) {
    text = weir_arena_strndup(&job->arena, name.data, name.size);
    if (!text) return weir_out_of_memory();
  }
  bool is_text = !text || strlen(text) == name.size;
  if (is_text) job->signature = weir_model_find_signature(job->version->model, text);
  if (job->signature) return NULL;
  weir_strbuf_t names = {0};
  for (int i = 0; i < weir_model_signature_count(job->version->model); ++i)
    weir_strbuf_printf(&names, "%s\"%s\"", i ? ", " : "",
                       weir_model_signature_at(job->version->model, i)->name);
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT,
                  "Serving signature name: \"%s\" not found in signature def; "
                  "there are %s",
                  text ? text : "serving_default", names.size ? names.data : "none");
  weir_strbuf_free(&names);
  return status;
}

static weir_status_t* bind_signature(weir_job_t* job, weir_view_t name) {
  WEIR_TRY(find_signature(job, name));
  const weir_signature_t* signature = job->signature;
  job->inputs =
      weir_arena_array(&job->arena, (size_t)signature->input_count + 1, sizeof(*job->inputs));
  job->outputs =
      weir_arena_array(&job->arena, (size_t)signature->output_count + 1, sizeof(*job->outputs));
  if (!job->inputs || !job->outputs) return weir_out_of_memory();
  for (int i = 0; i < signature->output_count; ++i)
    job->outputs[i].name = signature->outputs[i].name;
  job->output_count = signature->output_count;
  return NULL;
}

weir_status_t* weir_job_bind(weir_job_t* job, weir_catalog_t* catalog,
                             const weir_model_spec_t* spec) {
  WEIR_TRY(weir_catalog_find(catalog, spec, &job->version));
  return bind_signature(job, spec->signature);
}

weir_status_t* weir_job_bind_version(weir_job_t* job, weir_version_t* version,
                                     weir_view_t signature) {
  weir_ref_inc(&version->ref, 1);
  job->version = version;
  return bind_signature(job, signature);
}

void weir_job_clear(weir_job_t* job) {
  for (int i = 0; i < job->input_count; ++i) weir_tensor_release(job->inputs[i].tensor);
  for (int i = 0; i < job->output_count; ++i) weir_tensor_release(job->outputs[i].tensor);
  weir_version_release(job->version);
  weir_arena_free(&job->arena);
  *job = (weir_job_t){.done = NULL};
}

static void put_names(const weir_model_port_t* ports, int count, weir_strbuf_t* out) {
  for (int i = 0; i < count; ++i) weir_strbuf_printf(out, "%s'%s'", i ? ", " : "", ports[i].name);
}

static weir_status_t* find_port(const weir_model_port_t* ports, int count, const char* kind,
                                weir_view_t name, const weir_model_port_t** out_port) {
  for (int i = 0; i < count; ++i) {
    if (!weir_view_is(name, ports[i].name)) continue;
    *out_port = &ports[i];
    return NULL;
  }
  weir_strbuf_t names = {0};
  put_names(ports, count, &names);
  weir_status_t* status = WEIR_STATUS(INVALID_ARGUMENT, "the signature has no %s '%.*s'; it has %s",
                                      kind, (int)WEIR_MIN(name.size, (size_t)200),
                                      name.data ? name.data : "", names.size ? names.data : "none");
  weir_strbuf_free(&names);
  return status;
}

weir_status_t* weir_job_find_input(const weir_job_t* job, weir_view_t name,
                                   const weir_model_port_t** out_port) {
  return find_port(job->signature->inputs, job->signature->input_count, "input", name, out_port);
}

weir_status_t* weir_job_add_input(weir_job_t* job, const weir_model_port_t* port,
                                  weir_tensor_t* take_tensor) {
  for (int i = 0; i < job->input_count; ++i) {
    if (job->inputs[i].name != port->name) continue;
    weir_tensor_release(take_tensor);
    return WEIR_STATUS(INVALID_ARGUMENT, "input '%s' is given twice", port->name);
  }
  job->inputs[job->input_count++] = (weir_named_tensor_t){port->name, take_tensor};
  return NULL;
}

weir_status_t* weir_job_only_output(weir_job_t* job, weir_view_t name) {
  const weir_signature_t* signature = job->signature;
  const weir_model_port_t* port = NULL;
  WEIR_TRY(find_port(signature->outputs, signature->output_count, "output", name, &port));
  for (int i = 0; i < job->output_count; ++i) {
    if (job->outputs[i].name == port->name)
      return WEIR_STATUS(INVALID_ARGUMENT, "output '%s' is asked for twice", port->name);
  }
  job->outputs[job->output_count++].name = port->name;
  return NULL;
}

weir_tensor_t* weir_job_output(const weir_job_t* job, const char* name) {
  for (int i = 0; i < job->output_count; ++i) {
    if (strcmp(job->outputs[i].name, name) == 0) return job->outputs[i].tensor;
  }
  return NULL;
}

// ---- running ----

weir_status_t* weir_job_time_left(const weir_job_t* job, int64_t* out_ms) {
  *out_ms = 0;
  if (job->deadline_ns == INT64_MAX) return NULL;
  int64_t left = job->deadline_ns - weir_clock_ns();
  if (left <= 0) return WEIR_STATUS(DEADLINE_EXCEEDED, "the request's time was up before its run");
  *out_ms = left / 1000000 + 1;
  return NULL;
}

weir_status_t* weir_job_run(weir_job_t* job) {
  weir_run_options_t options = {.timeout_ms = 0};
  WEIR_TRY(weir_job_time_left(job, &options.timeout_ms));
  int64_t begin = weir_clock_ns();
  weir_status_t* status =
      weir_model_run(job->version->model, job->signature->name, job->inputs, job->input_count,
                     job->outputs, job->output_count, options.timeout_ms ? &options : NULL);
  job->run_ns = weir_clock_ns() - begin;
  return status;
}

void weir_job_start(weir_job_t* job) {
  if (job->version->lanes && weir_lanes_take(job->version->lanes, job)) return;
  job->done(job, weir_job_run(job));
}
