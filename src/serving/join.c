// join.c — Inputs of several jobs one below the other, and outputs cut apart again.
#include "serving/join.h"

#include <stdatomic.h>

#include "serving/batch.h"
#include "tensor/tensor.h"

static atomic_llong joined_jobs, joined_runs;

void weir_batch_counts(long long* out_jobs, long long* out_runs) {
  *out_jobs = atomic_load_explicit(&joined_jobs, memory_order_relaxed);  // statistics
  *out_runs = atomic_load_explicit(&joined_runs, memory_order_relaxed);
}

// ---- inputs ----

static weir_status_t* append_rows(const weir_tensor_t* part, weir_tensor_t* whole, int64_t at) {
  if (part->dtype != WEIR_DTYPE_STRING) {
    size_t size = weir_dtype_size(weir_tensor_type(part));
    if (part->count > 0)
      memcpy((char*)whole->data + (size_t)at * size, part->data, (size_t)part->count * size);
    return NULL;
  }
  for (int64_t i = 0; i < part->count; ++i) {
    weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(part, weir_string_t) + i);
    WEIR_TRY(weir_tensor_set_string(whole, at + i, text.data, text.size));
  }
  return NULL;
}

// Input |index| of all jobs.
static weir_status_t* join_input(const weir_job_t* jobs, int index, int64_t rows,
                                 weir_tensor_t** out_tensor) {
  const weir_tensor_t* model = jobs->inputs[index].tensor;
  weir_tensor_t* whole = NULL;
  int64_t dims[WEIR_MAX_RANK], at = 0;
  memcpy(dims, model->dims, sizeof(dims[0]) * model->rank);
  dims[0] = rows;
  WEIR_TRY(weir_tensor_create(weir_tensor_type(model), model->rank, dims, &whole));
  weir_status_t* status = NULL;
  for (const weir_job_t* job = jobs; job && !status; job = job->next) {
    status = append_rows(job->inputs[index].tensor, whole, at);
    at += job->inputs[index].tensor->count;
  }
  if (status) weir_tensor_release(whole);
  else *out_tensor = whole;
  return status;
}

// ---- outputs ----

static void drop_outputs(weir_job_t* job) {
  for (int i = 0; i < job->output_count; ++i) {
    weir_tensor_release(job->outputs[i].tensor);
    job->outputs[i].tensor = NULL;
  }
}

// Gives each job its rows: views of the whole.
static weir_status_t* split_outputs(weir_job_t* jobs, const weir_job_t* whole) {
  for (int i = 0; i < whole->output_count; ++i) {
    weir_tensor_t* tensor = whole->outputs[i].tensor;
    int64_t at = 0;
    if (tensor->rank == 0 || tensor->dims[0] != whole->rows)
      return WEIR_STATUS(INVALID_ARGUMENT, "output '%s' has not a row for each row of the inputs",
                         whole->outputs[i].name);
    for (weir_job_t* job = jobs; job; job = job->next) {
      WEIR_TRY(weir_tensor_slice(tensor, at, at + job->rows, &job->outputs[i].tensor));
      at += job->rows;
    }
  }
  return NULL;
}

// ---- the run ----

// The job that stands for all: inputs joined, the latest deadline.
static weir_status_t* join(weir_job_t* jobs, weir_job_t* whole) {
  whole->signature = jobs->signature;
  whole->version = jobs->version;
  for (const weir_job_t* job = jobs; job; job = job->next) {
    whole->rows += job->rows;
    whole->deadline_ns = WEIR_MAX(whole->deadline_ns, job->deadline_ns);
  }
  whole->inputs =
      weir_arena_array(&whole->arena, (size_t)jobs->input_count + 1, sizeof(*whole->inputs));
  whole->outputs =
      weir_arena_array(&whole->arena, (size_t)jobs->output_count + 1, sizeof(*whole->outputs));
  if (!whole->inputs || !whole->outputs) return weir_out_of_memory();
  for (int i = 0; i < jobs->output_count; ++i) whole->outputs[i].name = jobs->outputs[i].name;
  whole->output_count = jobs->output_count;
  for (int i = 0; i < jobs->input_count; ++i) {
    whole->inputs[i].name = jobs->inputs[i].name;
    WEIR_TRY(join_input(jobs, i, whole->rows, &whole->inputs[i].tensor));
    ++whole->input_count;
  }
  return NULL;
}

// False: they did not run; nothing is set.
static bool run_joined(weir_job_t* jobs) {
  weir_job_t whole = {.deadline_ns = 0};
  weir_status_t* status = join(jobs, &whole);
  if (!status) status = weir_job_run(&whole);
  if (!status) status = split_outputs(jobs, &whole);
  for (weir_job_t* job = jobs; job; job = job->next) {
    job->run_ns = whole.run_ns;
    if (status) drop_outputs(job);
  }
  whole.version = NULL;  // borrowed
  weir_job_clear(&whole);
  bool is_good = !status;
  weir_status_destroy(status);  // each one's own run will tell
  return is_good;
}

static void finish_job(void* arg) {
  weir_job_t* job = arg;
  job->done(job, NULL);
}

static void run_one(void* arg) {
  weir_job_t* job = arg;
  job->done(job, weir_job_run(job));
}

void weir_jobs_run(weir_job_t* take_jobs, weir_pool_t* pool) {
  bool is_alone = !take_jobs->next;
  bool is_done = !is_alone && run_joined(take_jobs);
  long long count = 0;
  for (weir_job_t *job = take_jobs, *next = NULL; job; job = next, ++count) {
    next = job->next;
    job->next = NULL;
    if (next) weir_pool_submit(pool, is_done ? finish_job : run_one, job);
    else if (is_done) finish_job(job);
    else run_one(job);
  }
  atomic_fetch_add_explicit(&joined_jobs, count, memory_order_relaxed);  // statistics
  atomic_fetch_add_explicit(&joined_runs, is_done || is_alone ? 1 : count, memory_order_relaxed);
}
