// captured.c — Calling functions of datasets.
#include "ops/data/captured.h"

#include "base/outcome.h"

// As in TensorFlow, a dataset is not made without its functions.
static weir_status_t* check_defined(const weir_kernel_ctx_t* ctx, const weir_func_t* func) {
  weir_functions_t* functions = ctx->step->functions;
  if (!functions || !functions->vtable->definition) return NULL;
  if (functions->vtable->definition(functions, func->name).size > 0) return NULL;
  return WEIR_STATUS(FAILED_PRECONDITION, "Could not find required function definition %.*s",
                     WEIR_VIEW_ARG(func->name));
}

weir_status_t* weir_captured_init(weir_kernel_ctx_t* ctx, const char* attr, int first, int count,
                                  weir_captured_t* captured) {
  weir_attr_t copy = {0};
  WEIR_TRY(weir_attr_clone(weir_attrs_find(weir_kernel_attrs(ctx), attr), &captured->arena,
                           &captured->tensors, &copy));
  captured->func = *copy.u.func;
  WEIR_TRY(check_defined(ctx, &captured->func));
  captured->values = weir_calloc((size_t)count + 1, sizeof(*captured->values));
  if (!captured->values) return weir_out_of_memory();
  captured->count = count;
  for (int i = 0; i < count; ++i)
    captured->values[i] = weir_tensor_retain(ctx->inputs[first + i].tensor);
  return NULL;
}

void weir_captured_deinit(weir_captured_t* captured) {
  if (captured->values) weir_element_clear(captured->values, captured->count);
  weir_free(captured->values);
  weir_tensor_list_free(&captured->tensors);
  weir_arena_free(&captured->arena);
}

int weir_captured_count(const weir_kernel_ctx_t* ctx, const char* attr) {
  return (int)weir_attrs_list(weir_kernel_attrs(ctx), attr)->count;
}

static weir_status_t* check_results(const weir_results_t* results) {
  for (int i = 0; i < results->count && results->types; ++i) {
    weir_dtype_t got = weir_tensor_type(results->items[i]);
    if (got != results->types[i])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Data type mismatch at component %d: expected %s but got %s.", i,
                         weir_dtype_name(results->types[i]), weir_dtype_name(got));
  }
  return NULL;
}

static weir_status_t* find(const weir_captured_t* captured, const weir_walk_t* walk,
                           weir_function_handle_t* out_handle) {
  weir_functions_t* functions = walk->functions;
  if (functions)
    return functions->vtable->instantiate_on_host(functions, &captured->func, out_handle);
  return WEIR_STATUS(FAILED_PRECONDITION,
                     "function '%.*s' cannot be called: the step has no function library",
                     WEIR_VIEW_ARG(captured->func.name));
}

weir_status_t* weir_captured_result_count(const weir_captured_t* captured, const weir_walk_t* walk,
                                          int* out_count) {
  weir_function_handle_t handle = 0;
  WEIR_TRY(find(captured, walk, &handle));
  *out_count = walk->functions->vtable->result_count(walk->functions, handle);
  return NULL;
}

static weir_status_t* call(const weir_captured_t* captured, const weir_walk_t* walk,
                           weir_cancel_t* cancel, weir_tensor_t** all, int count,
                           const weir_results_t* results) {
  weir_call_t what = {
      .args = all, .arg_count = count, .rets = results->items, .ret_count = results->count};
  weir_functions_t* functions = walk->functions;
  WEIR_TRY(find(captured, walk, &what.function));
  weir_outcome_t outcome;
  weir_outcome_init(&outcome);
  functions->vtable->start(functions, cancel, &what,
                           (weir_done_t){.fn = weir_outcome_set, .arg = &outcome});
  return weir_outcome_wait(&outcome);
}

weir_status_t* weir_captured_call(const weir_captured_t* captured, const weir_walk_t* walk,
                                  weir_cancel_t* cancel, weir_tensor_t* const* args, int arg_count,
                                  const weir_results_t* results) {
  int count = arg_count + captured->count;
  weir_tensor_t** all = weir_element_create(count + 1);
  if (!all) return weir_out_of_memory();
  for (int i = 0; i < arg_count; ++i) all[i] = args[i];
  for (int i = 0; i < captured->count; ++i) all[arg_count + i] = captured->values[i];
  for (int i = 0; i < results->count; ++i) results->items[i] = NULL;
  weir_status_t* status = call(captured, walk, cancel, all, count, results);
  weir_free(all);  // arguments were borrowed
  if (!status) status = check_results(results);
  if (status) weir_element_clear(results->items, results->count);
  return status;
}

weir_status_t* weir_captured_test(const weir_captured_t* captured, const weir_iterator_t* iterator,
                                  weir_cancel_t* cancel, weir_tensor_t* const* args,
                                  bool* out_is_true) {
  weir_tensor_t* truth = NULL;
  weir_results_t results = {.count = 1, .items = &truth};
  weir_status_t* status = weir_captured_call(captured, iterator->walk, cancel, args,
                                             iterator->dataset->inputs[0]->count, &results);
  if (status) return weir_captured_blame(iterator->dataset, status);
  if (weir_tensor_type(truth) != WEIR_DTYPE_BOOL || truth->count != 1)
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s predicate `predicate` must return a scalar bool.",
                         iterator->dataset->vtable->name);
  else *out_is_true = *WEIR_TENSOR_DATA(truth, bool);
  weir_tensor_release(truth);
  return status;
}

weir_status_t* weir_captured_walk(const weir_captured_t* captured, const weir_walk_t* walk,
                                  weir_cancel_t* cancel, weir_tensor_t* const* args, int arg_count,
                                  weir_iterator_t** out_iterator) {
  weir_tensor_t* made = NULL;
  weir_data_t* dataset = NULL;
  weir_results_t results = {.count = 1, .items = &made};
  WEIR_TRY(weir_captured_call(captured, walk, cancel, args, arg_count, &results));
  weir_status_t* status = weir_dataset_of(made, &dataset);
  if (!status) status = weir_iterator_create(dataset, walk, out_iterator);
  weir_tensor_release(made);
  return status;
}

weir_status_t* weir_captured_blame(const weir_data_t* dataset, weir_status_t* take_status) {
  return weir_status_prefix(
      take_status,
      "Error in user-defined function passed to %sDataset transformation: ", dataset->vtable->name);
}
