// external.c — Whether what a function makes depends on state that no iterator holds: variables,
// queues, random numbers.
#include "base/log.h"
#include "base/map.h"
#include "ops/data/captured.h"

enum {
  NODE_ATTR = 5,    // of NodeDef
  ATTR_VALUE = 2,   // of its entries
  VALUE_FUNC = 10,  // of AttrValue
  FUNC_NAME = 1,    // of NameAttrList
  MAX_DEPTH = 64,   // of branches within branches
};

typedef struct search_t {
  weir_functions_t* functions;
  weir_map_t seen;  // names of functions that were looked at
  int depth;
} search_t;

static weir_status_t* check_node(void* arg, const weir_op_t* op, weir_view_t node);

static weir_status_t* check_function(search_t* search, weir_view_t name) {
  if (weir_map_find(&search->seen, name)) return NULL;
  WEIR_TRY(weir_map_put(&search->seen, name, search));
  if (++search->depth > MAX_DEPTH)
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "branches and loops are nested too deep to be looked "
                       "through for state");
  weir_status_t* status =
      search->functions->vtable->visit(search->functions, name, check_node, search);
  --search->depth;
  return status;
}

// ---- functions that a node names ----

static weir_view_t field_of(weir_view_t message, uint32_t field) {
  weir_view_t found = {0};
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == field && reader.type == WEIR_WIRE_BYTES) found = reader.bytes;
  }
  return found;
}

static weir_status_t* check_named(search_t* search, weir_view_t node) {
  weir_wire_reader_t reader = weir_wire_reader(node);
  while (weir_wire_next(&reader)) {
    if (reader.field != NODE_ATTR || reader.type != WEIR_WIRE_BYTES) continue;
    weir_view_t value = field_of(reader.bytes, ATTR_VALUE);
    weir_view_t name = field_of(field_of(value, VALUE_FUNC), FUNC_NAME);
    if (name.size > 0) WEIR_TRY(check_function(search, name));
  }
  return NULL;
}

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
  static const char* const branching[] = {"If", "While", NULL};
  if (!op || !(op->flags & WEIR_OP_STATEFUL) || is_harmless(op)) return NULL;
  if (is_among(op->name, branching)) return check_named(arg, node);
  return WEIR_STATUS(FAILED_PRECONDITION, "%s is stateful.", op->name);
}

// What the policy makes of |take_status|, which says that a function is stateful.
static weir_status_t* judge(int policy, weir_status_t* take_status) {
  if (weir_status_code(take_status) != WEIR_FAILED_PRECONDITION || policy == WEIR_STATE_FAIL)
    return take_status;
  weir_status_t* status = NULL;
  if (policy == WEIR_STATE_WARN)
    WEIR_LOG(WARNING, "an iterator is saved without what its functions depend on: %s",
             weir_status_message(take_status));
  else
    status = WEIR_STATUS(INVALID_ARGUMENT, "Unexpected value %d for external_state_policy: %s",
                         policy, weir_status_message(take_status));
  weir_status_destroy(take_status);
  return status;
}

void weir_captured_state(const weir_captured_t* captured, const weir_iterator_t* iterator,
                         weir_state_t* state) {
  search_t search = {.functions = iterator->walk->functions, .seen = {.owns_keys = true}};
  if (state->policy == WEIR_STATE_IGNORE || !search.functions || !weir_state_is_good(state)) return;
  weir_status_t* status = check_function(&search, captured->func.name);
  weir_map_free(&search.seen);
  weir_state_fail(state, judge((int)state->policy, status));
}
