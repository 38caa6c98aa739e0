// recorded.c — Recording a step while the executor runs it, and repeating it.
//
// Which plans can be recorded, recordable.c says: those where all that the host computes is the
// same in every step that is fed the same shapes. Such a step is run once with the device recording
// in place of running (weir_recorder_t): the executor goes through it as ever, on this thread
// alone, and kernels launch. Nothing that others can see changes meanwhile: variables have
// stand-ins (shadow.c), and all other state is the step's own. So a recording that fails, for
// whatever reason, is dropped, and the step is run as ever. One that does not is launched, and that
// was the step.
//
// What the step copied to the device went to memory that the recording keeps: constants stay there,
// what was fed is copied anew before each launch. Results are copied to the host by those who wait,
// before the next launch: one at a time uses a recording, and whoever finds it in use runs his step
// as ever, as does whoever finds a variable not as it was.
#include "exec/recorded.h"

#include "base/log.h"
#include "base/outcome.h"
#include "base/perturb.h"
#include "exec/node_run.h"
#include "exec/recordable.h"
#include "exec/shadow.h"

enum {
  TAKES = 4,       // recordings of a plan, by what shapes are fed
  FIRST_RUNS = 3,  // steps before the first is recorded: choices of algorithms are made by then
  MOST_DOUBLED = 12,
};
static const size_t kAtOnce = (size_t)1 << 20;  // bytes that are pinned sooner than handed around

// Where an argument goes, or what a variable in host memory holds.
typedef struct fed_t {
  int32_t arg;   // -1: it is a variable
  int variable;  // number among the shadows
  weir_tensor_t* there;
  weir_tensor_t* pinned;  // on its way; NULL: it is large
} fed_t;

// What is recorded of steps that are fed certain shapes.
typedef struct take_t {
  int64_t* shapes;  // of all arguments: the rank, then the dimensions, of each; NULL: not in use
  size_t shape_count;
  int64_t runs, last_run;  // of such steps; of any, when it was used last
  int64_t next_try;        // the run that is recorded
  int failures;
  weir_recording_t* recording;  // NULL: there is none, nor what follows
  weir_shadows_t variables;
  fed_t* feds;
  size_t fed_count, fed_capacity;
  weir_tensor_t** constants;
  size_t constant_count, constant_capacity;
  weir_tensor_t** rets;  // in the device's memory or the host's
} take_t;

struct weir_recorded_t {
  weir_device_t* device;  // borrowed, as by the plan
  int32_t ret_count;
  weir_mutex_t mu;
  bool is_busy;  // guarded by mu; whoever set it has all below to himself
  int64_t runs;
  take_t takes[TAKES];
};

// The recording that this thread makes.
typedef struct making_t {
  const weir_run_params_t* params;
  take_t* take;
} making_t;
static _Thread_local making_t* current;

// ---- copies to the device ----

// Whether |tensor| shows all elements of |of|, which may be NULL, and nothing else.
static bool shows(const weir_tensor_t* tensor, const weir_tensor_t* of) {
  return of && of->data == tensor->data && of->dtype == tensor->dtype && of->count == tensor->count;
}

// Whose elements |tensor| shows. FAILED_PRECONDITION: nobody's, or those of more than one.
static weir_status_t* find_source(const making_t* making, const weir_tensor_t* tensor,
                                  fed_t* out_fed) {
  const weir_run_params_t* params = making->params;
  int found = 0;
  *out_fed = (fed_t){.arg = -1, .variable = -1};
  for (int32_t i = 0; i < params->plan->arg_count; ++i) {
    if (!shows(tensor, params->args[i])) continue;
    out_fed->arg = i;
    ++found;
  }
  for (int i = 0; i < making->take->variables.count; ++i) {
    const weir_shadow_t* variable = &making->take->variables.items[i];
    if (!variable->is_host || !shows(tensor, variable->stand_in->tensor)) continue;
    out_fed->variable = i;
    ++found;
  }
  if (found == 1) return NULL;
  return WEIR_STATUS(FAILED_PRECONDITION, "what is copied is not as it was fed");
}

static weir_status_t* keep_fed(take_t* take, weir_device_t* device, fed_t fed,
                               weir_tensor_t* there) {
  if (!WEIR_GROW(take->feds, take->fed_capacity, take->fed_count + 1)) return weir_out_of_memory();
  if (weir_tensor_byte_size(there) <= kAtOnce)
    WEIR_TRY(weir_device_host_tensor(device, weir_tensor_type(there), there->rank, there->dims,
                                     &fed.pinned));
  fed.there = weir_tensor_retain(there);
  take->feds[take->fed_count++] = fed;
  return NULL;
}

static weir_status_t* keep_constant(take_t* take, weir_tensor_t* there) {
  if (!WEIR_GROW(take->constants, take->constant_capacity, take->constant_count + 1))
    return weir_out_of_memory();
  take->constants[take->constant_count++] = weir_tensor_retain(there);
  return NULL;
}

static weir_status_t* copy_and_wait(weir_device_t* device, const weir_tensor_t* src,
                                    weir_tensor_t* dst) {
  weir_outcome_t outcome;
  weir_outcome_init(&outcome);
  weir_device_copy(device, src, dst, weir_outcome_set, &outcome);
  return weir_outcome_wait(&outcome);
}

// What the copy's node does in a step that is recorded. The recording holds the tensor, so nobody
// writes to it.
static weir_status_t* record_copy(const making_t* making, weir_kernel_ctx_t* ctx, bool is_fed) {
  take_t* take = making->take;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* y = NULL;
  if (!weir_dtype_is_plain(weir_tensor_type(x)))
    return WEIR_STATUS(FAILED_PRECONDITION, "what is copied holds tensors");
  WEIR_TRY(
      take->recording->recorder->keep(take->recording, weir_tensor_type(x), x->rank, x->dims, &y));
  weir_kernel_set(ctx, 0, y);
  fed_t fed;
  is_fed = is_fed && x->count > 0;
  if (is_fed) WEIR_TRY(find_source(making, x, &fed));
  if (is_fed) WEIR_TRY(keep_fed(take, ctx->device, fed, y));
  else WEIR_TRY(keep_constant(take, y));
  return copy_and_wait(ctx->device, x, y);
}

static void copy_fed(weir_kernel_ctx_t* ctx, weir_done_t done) {
  if (WEIR_UNLIKELY(current != NULL)) weir_done_call(done, record_copy(current, ctx, true));
  else ctx->kernel->compute_async(ctx, done);
}

static void copy_constant(weir_kernel_ctx_t* ctx, weir_done_t done) {
  if (WEIR_UNLIKELY(current != NULL)) weir_done_call(done, record_copy(current, ctx, false));
  else ctx->kernel->compute_async(ctx, done);
}

// ---- takes ----

// Drops what is recorded. The next try is the later the more often that happened.
static void drop(take_t* take, int32_t ret_count) {
  for (int32_t i = 0; take->rets && i < ret_count; ++i) weir_tensor_release(take->rets[i]);
  for (size_t i = 0; i < take->fed_count; ++i) {
    weir_tensor_release(take->feds[i].there);
    weir_tensor_release(take->feds[i].pinned);
  }
  for (size_t i = 0; i < take->constant_count; ++i) weir_tensor_release(take->constants[i]);
  weir_free(take->rets);
  weir_free(take->feds);
  weir_free(take->constants);
  weir_shadows_free(&take->variables);
  if (take->recording) take->recording->recorder->destroy(take->recording);
  take_t kept = {.shapes = take->shapes,
                 .shape_count = take->shape_count,
                 .runs = take->runs,
                 .last_run = take->last_run,
                 .failures = WEIR_MIN(take->failures + 1, MOST_DOUBLED)};
  kept.next_try = kept.runs + ((int64_t)FIRST_RUNS << kept.failures);
  *take = kept;
}

static size_t count_shapes(const weir_run_params_t* params) {
  size_t count = 0;
  for (int32_t i = 0; i < params->plan->arg_count; ++i) {
    const weir_tensor_t* arg = params->args[i];
    if (!arg || !weir_tensor_is_host(arg)) return SIZE_MAX;
    count += 1 + arg->rank;
  }
  return count;
}

static bool has_shapes(const take_t* take, const weir_run_params_t* params) {
  const int64_t* at = take->shapes;
  for (int32_t i = 0; i < params->plan->arg_count; ++i) {
    const weir_tensor_t* arg = params->args[i];
    if (*at++ != arg->rank) return false;
    if (arg->rank && memcmp(at, arg->dims, sizeof(*at) * arg->rank) != 0) return false;
    at += arg->rank;
  }
  return true;
}

static void write_shapes(const weir_run_params_t* params, int64_t* at) {
  for (int32_t i = 0; i < params->plan->arg_count; ++i) {
    const weir_tensor_t* arg = params->args[i];
    *at++ = arg->rank;
    for (int k = 0; k < arg->rank; ++k) *at++ = arg->dims[k];
  }
}

// The take for what is fed, in place of the one that was not used for longest where none is; NULL:
// it cannot be recorded.
static take_t* find_take(weir_recorded_t* recorded, const weir_run_params_t* params) {
  size_t count = count_shapes(params);
  if (count == SIZE_MAX) return NULL;
  take_t* oldest = &recorded->takes[0];
  for (int i = 0; i < TAKES; ++i) {
    take_t* take = &recorded->takes[i];
    if (take->shapes && take->shape_count == count && has_shapes(take, params)) return take;
    if (take->last_run < oldest->last_run) oldest = take;
  }
  int64_t* shapes = weir_alloc_array(count + 1, sizeof(*shapes));
  if (!shapes) return NULL;
  write_shapes(params, shapes);
  drop(oldest, params->plan->ret_count);
  weir_free(oldest->shapes);
  *oldest = (take_t){.shapes = shapes, .shape_count = count, .next_try = FIRST_RUNS + 1};
  return oldest;
}

// ---- results ----

// The recording copies a result to where it lasts.
static weir_status_t* keep_result(weir_recording_t* recording, weir_device_t* device,
                                  weir_tensor_t** result) {
  weir_allocator_t* allocator = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
  weir_tensor_t* kept = NULL;
  WEIR_TRY(weir_tensor_renew(result));
  weir_tensor_t* there = *result;
  if (weir_tensor_is_host(there)) return NULL;
  WEIR_TRY(recording->recorder->keep(recording, weir_tensor_type(there), there->rank, there->dims,
                                     &kept));
  *result = kept;
  weir_status_t* status = there->count ? allocator->vtable->copy(allocator, kept->data, there->data,
                                                                 weir_tensor_byte_size(there))
                                       : NULL;
  weir_tensor_release(there);
  return status;
}

// Gives the caller what he fetches, which nothing changes later.
static weir_status_t* give_results(const take_t* take, weir_device_t* device,
                                   const weir_run_params_t* params) {
  weir_status_t* status = NULL;
  int32_t count = params->plan->ret_count;
  for (int32_t i = 0; i < count; ++i) params->rets[i] = NULL;
  for (int32_t i = 0; i < count && !status; ++i) {
    if (weir_tensor_is_host(take->rets[i]))
      status = weir_tensor_copy(take->rets[i], &params->rets[i]);
    else params->rets[i] = weir_tensor_retain(take->rets[i]);
  }
  weir_status_t* waited = device->vtable->collect(device, params->rets, status ? 0 : count);
  if (status) weir_status_destroy(waited);
  else status = waited;
  for (int32_t i = 0; i < count && status; ++i) {
    weir_tensor_release(params->rets[i]);
    params->rets[i] = NULL;
  }
  return status;
}

// ---- recording ----

// Runs the step with stand-ins for variables, up to its last launch.
static weir_status_t* run_recorded(weir_device_t* device, making_t* making) {
  take_t* take = making->take;
  int32_t count = making->params->plan->ret_count;
  weir_run_params_t params = *making->params;
  take->rets = weir_calloc((size_t)count + 1, sizeof(*take->rets));
  if (!take->rets) return weir_out_of_memory();
  params.rets = take->rets;
  params.session_resources = take->variables.resources;
  params.inter_pool = NULL;  // all of it on this thread
  WEIR_TRY(weir_run_launch(&params));
  weir_status_t* status = NULL;
  for (int32_t i = 0; i < count && !status; ++i)
    status = keep_result(take->recording, device, &take->rets[i]);
  return status ? status : weir_shadows_settle(&take->variables, making->params);
}

static weir_status_t* make(weir_recorded_t* recorded, making_t* making) {
  take_t* take = making->take;
  WEIR_TRY(weir_shadows_create(making->params, recorded->device, &take->variables));
  WEIR_TRY(recorded->device->recorder->begin(recorded->device, &take->recording));
  current = making;
  weir_status_t* status = run_recorded(recorded->device, making);
  current = NULL;
  if (status) return status;
  WEIR_TRY(take->recording->recorder->end(take->recording));
  if (!take->recording->recorder->is_whole(take->recording))
    return WEIR_STATUS(FAILED_PRECONDITION, "the step frees memory that was there before");
  return NULL;
}

static weir_status_t* launch(take_t* take, weir_shadow_state_t* out_state) {
  *out_state = weir_shadows_lock(&take->variables);
  if (*out_state != WEIR_SHADOW_FIT) return NULL;
  weir_status_t* status = take->recording->recorder->launch(take->recording);
  weir_shadows_unlock(&take->variables);
  return status;
}

static bool record(weir_recorded_t* recorded, take_t* take, const weir_run_params_t* params,
                   weir_status_t** out_status) {
  making_t making = {.params = params, .take = take};
  int64_t start = weir_clock_ns();
  weir_shadow_state_t state = WEIR_SHADOW_FIT;
  weir_status_t* status = make(recorded, &making);
  if (!status) status = launch(take, &state);
  if (!status && state != WEIR_SHADOW_FIT)
    status = WEIR_STATUS(FAILED_PRECONDITION, "others use its variables");
  if (status) {
    bool is_early = weir_status_code(status) == WEIR_UNAVAILABLE;
    WEIR_LOG(INFO, "a step was not recorded: %s", weir_status_message(status));
    weir_status_destroy(status);
    drop(take, params->plan->ret_count);
    if (is_early) {
      take->failures = 0;
      take->next_try = take->runs + FIRST_RUNS;
    }
    return false;
  }
  WEIR_LOG(INFO, "a step of %d nodes was recorded in %lld us", params->plan->node_count,
           (long long)((weir_clock_ns() - start) / 1000));
  *out_status = give_results(take, recorded->device, params);
  return true;
}

// ---- repeating ----

static weir_status_t* copy_fed_now(const take_t* take, weir_device_t* device, const fed_t* fed,
                                   const weir_tensor_t* value) {
  size_t size = weir_tensor_byte_size(value);
  if (!fed->pinned) return copy_and_wait(device, value, fed->there);
  memcpy(fed->pinned->data, value->data, size);
  return take->recording->recorder->upload(take->recording, fed->there->data, fed->pinned->data,
                                           size);
}

// False: a variable is not what it was.
static bool feed(const take_t* take, weir_device_t* device, const weir_run_params_t* params,
                 weir_status_t** out_status) {
  for (size_t i = 0; i < take->fed_count && !*out_status; ++i) {
    const fed_t* fed = &take->feds[i];
    weir_tensor_t* value = fed->arg >= 0 ? weir_tensor_retain(params->args[fed->arg])
                                         : weir_shadow_read(&take->variables.items[fed->variable]);
    if (!value) return false;
    *out_status = copy_fed_now(take, device, fed, value);
    weir_tensor_release(value);
  }
  return true;
}

static bool repeat(weir_recorded_t* recorded, take_t* take, const weir_run_params_t* params,
                   weir_status_t** out_status) {
  const weir_step_t step = {.cancel = params->cancel};
  if ((*out_status = weir_step_check(&step, params->deadline_ns))) return true;
  if (!weir_shadows_match(&take->variables, params) ||
      !feed(take, recorded->device, params, out_status)) {
    drop(take, params->plan->ret_count);
    return false;
  }
  if (*out_status) return true;
  weir_shadow_state_t state;
  *out_status = launch(take, &state);
  if (state == WEIR_SHADOW_CHANGED) drop(take, params->plan->ret_count);
  if (state != WEIR_SHADOW_FIT) return false;
  if (!*out_status) *out_status = give_results(take, recorded->device, params);
  return true;
}

// ---- the whole ----

static bool enter(weir_recorded_t* recorded) {
  weir_mutex_lock(&recorded->mu);
  bool is_free = !recorded->is_busy;
  recorded->is_busy = true;
  weir_mutex_unlock(&recorded->mu);
  return is_free;
}

static void leave(weir_recorded_t* recorded) {
  weir_mutex_lock(&recorded->mu);
  recorded->is_busy = false;
  weir_mutex_unlock(&recorded->mu);
}

bool weir_recorded_run(const weir_run_params_t* params, weir_status_t** out_status) {
  weir_recorded_t* recorded = params->plan->recorded;
  if (params->trace || params->is_plain || weir_perturb_is_on()) return false;
  if (!enter(recorded)) return false;
  take_t* take = find_take(recorded, params);
  bool is_done = false;
  if (take) {
    take->last_run = ++recorded->runs;
    ++take->runs;
    if (take->recording) is_done = repeat(recorded, take, params, out_status);
    else if (take->runs >= take->next_try) is_done = record(recorded, take, params, out_status);
  }
  leave(recorded);
  return is_done;
}

static void explain(const weir_recordable_t* recordable) {
  const weir_plan_node_t* node = recordable->node;
  WEIR_LOG(INFO, "steps are not recorded: %s (%s): %s", node ? node->def->name : "the graph",
           node ? node->def->op_name : "", recordable->why);
}

weir_status_t* weir_recorded_create(weir_plan_t* plan, weir_recorded_t** out_recorded) {
  weir_arena_t scratch = {0};
  weir_recordable_t recordable;
  weir_status_t* status = weir_plan_is_recordable(plan, &scratch, &recordable);
  weir_recorded_t* recorded = NULL;
  if (!status && !recordable.device && recordable.varies) explain(&recordable);
  if (!status && recordable.device) {
    recorded = weir_calloc(1, sizeof(*recorded));
    if (!recorded) status = weir_out_of_memory();
  }
  for (int32_t i = 0; recorded && i < plan->node_count; ++i) {
    weir_plan_node_t* node = &plan->nodes[i];
    if (weir_plan_node_uploads(node)) node->start = recordable.varies[i] ? copy_fed : copy_constant;
  }
  weir_arena_free(&scratch);
  if (!recorded) return status;
  recorded->device = recordable.device;
  recorded->ret_count = plan->ret_count;
  weir_mutex_init(&recorded->mu);
  *out_recorded = recorded;
  return NULL;
}

void weir_recorded_destroy(weir_recorded_t* recorded) {
  if (!recorded) return;
  for (int i = 0; i < TAKES; ++i) {
    drop(&recorded->takes[i], recorded->ret_count);
    weir_free(recorded->takes[i].shapes);
  }
  weir_mutex_destroy(&recorded->mu);
  weir_free(recorded);
}
