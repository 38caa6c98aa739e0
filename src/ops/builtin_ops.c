// builtin_ops.c — The registry of every op in this build. op_modules.inc is written by the build
// from the files of ops/*/.
#include "ops/builtin_ops.h"

#include <pthread.h>

#define WEIR_OP_MODULE(group, file) extern const weir_op_module_t weir_ops_##group##_##file;
#include "op_modules.inc"
#undef WEIR_OP_MODULE

static const weir_op_module_t* const modules[] = {
#define WEIR_OP_MODULE(group, file) &weir_ops_##group##_##file,
#include "op_modules.inc"
#undef WEIR_OP_MODULE
    NULL};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static weir_registry_t* registry;  // written once, under |once|, and kept to the end of the process
static weir_status_t* failure;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;  // held while ops are added

static void create_registry(void) { failure = weir_registry_create(modules, &registry); }

weir_status_t* weir_registry_builtin(const weir_registry_t** out_registry) {
  pthread_once(&once, create_registry);
  if (failure) return weir_status_copy(failure);
  *out_registry = registry;
  return NULL;
}

weir_status_t* weir_registry_builtin_add(const weir_op_module_t* const* more) {
  const weir_registry_t* unused = NULL;
  WEIR_TRY(weir_registry_builtin(&unused));
  pthread_mutex_lock(&adding);
  weir_status_t* status = weir_registry_add(registry, more);
  pthread_mutex_unlock(&adding);
  return status;
}
