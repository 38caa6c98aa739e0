// external.c — Whether what a function makes depends on state that no iterator holds.
#include "ops/data/external.h"

#include "base/log.h"
#include "ops/data/captured.h"

// ---- nodes ----

static bool is_among(const char* name, const char* const* names) {
  while (*names && strcmp(*names, name)) ++names;
  return *names != NULL;
}

static bool ends_with(const char* text, const char* end) {
  size_t size = strlen(text), end_size = strlen(end);
  return size >= end_size && !strcmp(text + size - end_size, end);
}

// What TensorFlow takes for harmless: what only reads tables, says something or makes a dataset.
static bool is_harmless(const weir_op_t* op) {
  static const char* const names[] = {
      "Assert", "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2",
      "Print",  "PrintV2",           "Timestamp",       NULL};
  bool makes_variant = op->output_count == 1 && op->outputs[0].type == WEIR_DTYPE_VARIANT;
  return is_among(op->name, names) ||
         (makes_variant && (ends_with(op->name, "Dataset") || ends_with(op->name, "DatasetV2")));
}

static weir_status_t* check_node(void* arg, const weir_op_t* op, weir_view_t node) {
  // Their branches are among the functions that are needed. So are those of Case and of calls, but
  // TensorFlow does not go by that.
  static const char* const branching[] = {"If", "While", NULL};
  (void)arg;
  (void)node;
  if (!op || !(op->flags & WEIR_OP_STATEFUL) || is_harmless(op) || is_among(op->name, branching))
    return NULL;
  return WEIR_STATUS(FAILED_PRECONDITION, "%s is stateful.", op->name);
}

// ---- functions ----

static weir_status_t* check_function(void* arg, const weir_function_text_t* function) {
  weir_functions_t* functions = arg;
  return functions->vtable->visit(functions, function->name, check_node, NULL);
}

// What the policy makes of |take_status|, which says that a function is stateful.
static weir_status_t* judge(int policy, weir_status_t* take_status, const char* what) {
  if (weir_status_code(take_status) != WEIR_FAILED_PRECONDITION || policy == WEIR_STATE_FAIL)
    return take_status;
  weir_status_t* status = NULL;
  if (policy == WEIR_STATE_WARN)
    WEIR_LOG(WARNING, "%s is saved without what its functions depend on: %s", what,
             weir_status_message(take_status));
  else
    status = WEIR_STATUS(INVALID_ARGUMENT, "Unexpected value %d for external_state_policy: %s",
                         policy, weir_status_message(take_status));
  weir_status_destroy(take_status);
  return status;
}

weir_status_t* weir_external_check(weir_functions_t* functions, weir_view_t name,
                                   weir_state_policy_t policy, const char* what) {
  if (policy == WEIR_STATE_IGNORE) return NULL;
  weir_status_t* status =
      functions->vtable->visit_needed(functions, name, check_function, functions);
  return judge((int)policy, status, what);
}

void weir_captured_state(const weir_captured_t* captured, const weir_iterator_t* iterator,
                         weir_state_t* state) {
  weir_functions_t* functions = iterator->walk->functions;
  if (!functions || !weir_state_is_good(state)) return;
  weir_state_fail(
      state, weir_external_check(functions, captured->func.name, state->policy, "an iterator"));
}
