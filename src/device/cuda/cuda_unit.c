// cuda_unit.c — Who comes first compiles, the others wait.
#include "device/cuda/cuda_unit.h"

#include "base/alloc.h"
#include "device/cuda/cuda_compiler.h"

typedef enum unit_state_t { WAITING, COMPILING, DONE } unit_state_t;

struct cuda_unit_t {
  weir_ref_t ref;
  char* name;
  char* source;
  int architecture;
  weir_mutex_t mu;
  weir_cond_t changed;
  unit_state_t state;     // guarded by mu
  char* code;             // once it is DONE
  weir_status_t* status;  // likewise
};

weir_status_t* weir_cuda_unit_create(const char* name, const char* source, int architecture,
                                     cuda_unit_t** out_unit) {
  cuda_unit_t* unit = weir_calloc(1, sizeof(*unit));
  if (!unit) return weir_out_of_memory();
  weir_ref_init(&unit->ref);
  weir_mutex_init(&unit->mu);
  weir_cond_init(&unit->changed);
  unit->architecture = architecture;
  unit->name = weir_strdup(name);
  unit->source = weir_strdup(source);
  if (!unit->name || !unit->source) {
    weir_cuda_unit_release(unit);
    return weir_out_of_memory();
  }
  *out_unit = unit;
  return NULL;
}

cuda_unit_t* weir_cuda_unit_retain(cuda_unit_t* unit) {
  weir_ref_inc(&unit->ref, 1);
  return unit;
}

void weir_cuda_unit_release(cuda_unit_t* unit) {
  if (!unit || !weir_ref_dec(&unit->ref)) return;
  weir_status_destroy(unit->status);
  weir_free(unit->code);
  weir_free(unit->source);
  weir_free(unit->name);
  weir_cond_destroy(&unit->changed);
  weir_mutex_destroy(&unit->mu);
  weir_free(unit);
}

// Whether the calling thread is the one to compile.
static bool claim(cuda_unit_t* unit) {
  weir_mutex_lock(&unit->mu);
  bool is_first = unit->state == WAITING;
  if (is_first) unit->state = COMPILING;
  weir_mutex_unlock(&unit->mu);
  return is_first;
}

static void set_done(cuda_unit_t* unit, weir_status_t* take_status) {
  weir_mutex_lock(&unit->mu);
  unit->status = take_status;
  unit->state = DONE;
  weir_cond_broadcast(&unit->changed);
  weir_mutex_unlock(&unit->mu);
}

static void compile(cuda_unit_t* unit) {
  size_t size = 0;
  set_done(unit,
           weir_cuda_compile(unit->name, unit->source, unit->architecture, &unit->code, &size));
}

void weir_cuda_unit_assist(cuda_unit_t* unit) {
  if (claim(unit)) compile(unit);
}

static void task_main(void* arg) {
  cuda_unit_t* unit = arg;
  weir_cuda_unit_assist(unit);
  weir_cuda_unit_release(unit);
}

void weir_cuda_unit_start(cuda_unit_t* unit, weir_pool_t* pool) {
  weir_pool_submit(pool, task_main, weir_cuda_unit_retain(unit));
}

void weir_cuda_unit_abandon(cuda_unit_t* unit) {
  if (unit && claim(unit)) set_done(unit, WEIR_STATUS(CANCELLED, "%s is not needed", unit->name));
  weir_cuda_unit_release(unit);
}

weir_status_t* weir_cuda_unit_finish(cuda_unit_t* unit, const char** out_code) {
  weir_cuda_unit_assist(unit);
  weir_mutex_lock(&unit->mu);
  while (unit->state != DONE) weir_cond_wait(&unit->changed, &unit->mu);
  weir_mutex_unlock(&unit->mu);
  if (unit->status) return weir_status_copy(unit->status);
  *out_code = unit->code;
  return NULL;
}
