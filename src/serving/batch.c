// batch.c — Lanes: which jobs wait for which run.
#include "serving/batch.h"

#include <inttypes.h>

#include "base/map.h"
#include "serving/join.h"
#include "tensor/tensor.h"

typedef struct lane_t {
  char* key;
  weir_job_t *first, *last;  // that wait
  int64_t rows;              // of those
  int runs;                  // under way
  weir_cond_t filled;        // a run that waits has enough now
} lane_t;

struct weir_lanes_t {
  weir_lanes_options_t options;
  weir_mutex_t mu;
  weir_map_t by_key;  // guarded by mu, and so are the lanes
};

weir_status_t* weir_lanes_create(const weir_lanes_options_t* options, weir_lanes_t** out_lanes) {
  weir_lanes_t* lanes = weir_calloc(1, sizeof(*lanes));
  if (!lanes) return weir_out_of_memory();
  lanes->options = *options;
  weir_mutex_init(&lanes->mu);
  *out_lanes = lanes;
  return NULL;
}

void weir_lanes_destroy(weir_lanes_t* lanes) {
  if (!lanes) return;
  weir_map_free(&lanes->by_key);
  weir_mutex_destroy(&lanes->mu);
  weir_free(lanes);
}

// ---- which lane ----

// Sets the rows and writes what jobs must agree in. False: there is no common first dimension.
static bool put_key(weir_job_t* job, weir_strbuf_t* out) {
  job->rows = -1;
  weir_strbuf_printf(out, "%s\n", job->signature->name);
  for (int i = 0; i < job->output_count; ++i) weir_strbuf_printf(out, "%s\n", job->outputs[i].name);
  for (int i = 0; i < job->input_count; ++i) {
    const weir_tensor_t* tensor = job->inputs[i].tensor;
    if (tensor->rank == 0 || (job->rows >= 0 && job->rows != tensor->dims[0])) return false;
    job->rows = tensor->dims[0];
    weir_strbuf_printf(out, "%s %d", job->inputs[i].name, (int)tensor->dtype);
    for (int k = 1; k < tensor->rank; ++k) weir_strbuf_printf(out, ",%" PRId64, tensor->dims[k]);
    weir_strbuf_putc(out, '\n');
  }
  return job->rows > 0 && !out->failed;
}

static lane_t* make_lane(weir_lanes_t* lanes, weir_view_t key) {
  lane_t* lane = weir_calloc(1, sizeof(*lane));
  if (!lane) return NULL;
  lane->key = weir_strndup(key.data, key.size);
  weir_cond_init(&lane->filled);
  weir_status_t* status = lane->key ? weir_map_put(&lanes->by_key, weir_view_of(lane->key), lane)
                                    : weir_out_of_memory();
  if (!status) return lane;
  weir_status_destroy(status);
  weir_cond_destroy(&lane->filled);
  weir_free(lane->key);
  weir_free(lane);
  return NULL;
}

// With the lock held. A lane that nobody needs any more goes, so that there are never more than
// requests.
static void leave_lane(weir_lanes_t* lanes, lane_t* lane) {
  if (--lane->runs > 0 || lane->first) return;
  weir_map_remove(&lanes->by_key, weir_view_of(lane->key));
  weir_cond_destroy(&lane->filled);
  weir_free(lane->key);
  weir_free(lane);
}

static void append(lane_t* lane, weir_job_t* job) {
  job->next = NULL;
  if (lane->last) lane->last->next = job;
  else lane->first = job;
  lane->last = job;
  lane->rows += job->rows;
}

// ---- a run ----

// Takes as many of those that wait as fit; always one. With the lock held.
static weir_job_t* take_batch(lane_t* lane, int64_t max_rows) {
  weir_job_t* first = lane->first;
  weir_job_t* last = first;
  int64_t rows = first->rows;
  while (last->next && rows + last->next->rows <= max_rows) {
    last = last->next;
    rows += last->rows;
  }
  lane->first = last->next;
  if (!lane->first) lane->last = NULL;
  lane->rows -= rows;
  last->next = NULL;
  return first;
}

// Waits for company, as long as the options say.
static void wait_for_more(weir_lanes_t* lanes, lane_t* lane) {
  int64_t deadline_ns = weir_clock_ns() + lanes->options.timeout_us * 1000;
  bool is_in_time = lanes->options.timeout_us > 0;
  while (is_in_time && lane->first && lane->rows < lanes->options.max_rows)
    is_in_time = weir_cond_wait_until(&lane->filled, &lanes->mu, deadline_ns);
}

bool weir_lanes_take(weir_lanes_t* lanes, weir_job_t* job) {
  weir_strbuf_t key = {0};
  bool is_joinable = put_key(job, &key) && job->rows < lanes->options.max_rows;
  weir_mutex_lock(&lanes->mu);
  lane_t* lane = is_joinable ? weir_map_find(&lanes->by_key, weir_strbuf_view(&key)) : NULL;
  if (is_joinable && !lane) lane = make_lane(lanes, weir_strbuf_view(&key));
  weir_strbuf_free(&key);
  if (!lane) {
    weir_mutex_unlock(&lanes->mu);
    return false;
  }
  append(lane, job);
  weir_cond_signal(&lane->filled);
  if (lane->runs >= lanes->options.max_runs) {  // one of those will take it
    weir_mutex_unlock(&lanes->mu);
    return true;
  }
  // A job's version, and so these lanes, may be gone once it is done: the run holds it.
  weir_version_t* version = job->version;
  weir_ref_inc(&version->ref, 1);
  ++lane->runs;
  wait_for_more(lanes, lane);
  while (lane->first) {
    weir_job_t* batch = take_batch(lane, lanes->options.max_rows);
    weir_mutex_unlock(&lanes->mu);
    weir_jobs_run(batch, lanes->options.pool);
    weir_mutex_lock(&lanes->mu);
  }
  leave_lane(lanes, lane);
  weir_mutex_unlock(&lanes->mu);
  weir_version_release(version);
  return true;
}
