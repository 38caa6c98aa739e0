// results.c — Checks that outputs are what classifiers and regressors must give.
#include "serving/results.h"

#include "tensor/tensor.h"

static weir_status_t* check(const weir_job_t* job, const weir_tensor_t* tensor, const char* name,
                            weir_dtype_t dtype, int max_rank) {
  int64_t examples = weir_tensor_dim(job->inputs[0].tensor, 0);
  bool is_good = tensor->dtype == dtype && tensor->rank >= 1 && tensor->rank <= max_rank &&
                 tensor->dims[0] == examples;
  if (is_good) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "output '%s' is not what the signature's method promises: %s with a row for "
                     "each of %lld examples",
                     name, weir_dtype_name(dtype), (long long)examples);
}

weir_status_t* weir_job_classes(const weir_job_t* job, weir_classes_t* out_classes) {
  weir_classes_t found = {weir_job_output(job, "classes"), weir_job_output(job, "scores"), 0, 0};
  const weir_tensor_t* some = found.classes ? found.classes : found.scores;
  if (!some)
    return WEIR_STATUS(INVALID_ARGUMENT, "signature '%s' has neither 'classes' nor 'scores'",
                       job->signature->name);
  if (found.classes) WEIR_TRY(check(job, found.classes, "classes", WEIR_DTYPE_STRING, 2));
  if (found.scores) WEIR_TRY(check(job, found.scores, "scores", WEIR_DTYPE_FLOAT, 2));
  if (found.classes && found.scores && found.classes->count != found.scores->count)
    return WEIR_STATUS(INVALID_ARGUMENT, "outputs 'classes' and 'scores' differ in size");
  found.examples = some->dims[0];
  found.count = some->rank == 2 ? some->dims[1] : 1;
  *out_classes = found;
  return NULL;
}

weir_status_t* weir_job_regressions(const weir_job_t* job, const float** out_values,
                                    int64_t* out_count) {
  const weir_tensor_t* tensor = weir_job_output(job, "outputs");
  if (!tensor && job->output_count == 1) tensor = job->outputs[0].tensor;
  if (!tensor)
    return WEIR_STATUS(INVALID_ARGUMENT, "signature '%s' has no output 'outputs'",
                       job->signature->name);
  WEIR_TRY(check(job, tensor, "outputs", WEIR_DTYPE_FLOAT, 2));
  if (tensor->rank == 2 && tensor->dims[1] != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "output 'outputs' has more than one value an example");
  *out_values = tensor->data;
  *out_count = tensor->dims[0];
  return NULL;
}
