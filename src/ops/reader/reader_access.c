// reader_access.c — Reading from readers, their counters, and going back to the start.
#include "op/shape_ctx.h"
#include "ops/reader/reader_resource.h"

static void read_records(weir_kernel_ctx_t* ctx, int64_t limit, weir_done_t done) {
  weir_resource_t *reader = NULL, *queue = NULL;
  weir_status_t* status = weir_kernel_resource(ctx, 0, &weir_reader_type, &reader);
  if (!status) status = weir_kernel_resource(ctx, 1, &weir_queue_type, &queue);
  if (status) {
    weir_done_call(done, status);
  } else {
    weir_reader_read((weir_reader_t*)reader, (weir_queue_t*)queue, ctx, limit, done);
  }
  weir_resource_release(queue);
  weir_resource_release(reader);
}

static void read_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) { read_records(ctx, -1, done); }

static void read_up_to_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  int64_t limit = 0;
  weir_status_t* status = weir_kernel_int(ctx, 2, &limit);
  if (!status && limit < 0) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "num_records must be >= 0 not %lld", (long long)limit);
  }
  if (status) {
    weir_done_call(done, status);
  } else {
    read_records(ctx, limit, done);
  }
}

static weir_status_t* count_records(weir_kernel_ctx_t* ctx, int64_t (*count)(weir_reader_t*)) {
  weir_resource_t* reader = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, 0, &weir_reader_type, &reader));
  int64_t value = count((weir_reader_t*)reader);
  weir_resource_release(reader);
  return weir_kernel_output_int(ctx, 0, value);
}

static weir_status_t* records_produced_cpu(weir_kernel_ctx_t* ctx) {
  return count_records(ctx, weir_reader_records_produced);
}
static weir_status_t* units_completed_cpu(weir_kernel_ctx_t* ctx) {
  return count_records(ctx, weir_reader_files_finished);
}

static weir_status_t* reset_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* reader = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, 0, &weir_reader_type, &reader));
  weir_reader_reset((weir_reader_t*)reader);
  weir_resource_release(reader);
  return NULL;
}

// ---- shapes: every input is a scalar ----
static weir_status_t* check_scalars(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->input_count; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  return NULL;
}

static weir_status_t* scalars_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_scalars(ctx));
  return weir_shape_fn_scalar(ctx);
}

static weir_status_t* read_up_to_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_scalars(ctx));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, -1));
  return weir_shape_set_vector(ctx, 1, -1);
}

#define COUNT_OP(op, out, fn)                                                 \
  {                                                                           \
    .name = op, .inputs = "reader_handle: resource", .outputs = out,          \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP, .infer_shape = scalars_shape,  \
    .kernels = (const weir_kernel_def_t[]) {                                  \
      {WEIR_DEVICE_CPU, .compute = fn, .host_inputs = "reader_handle"}, { 0 } \
    }                                                                         \
  }

const weir_op_module_t weir_ops_reader_reader_access = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ReaderReadV2",
         .inputs = "reader_handle: resource; queue_handle: resource",
         .outputs = "key: string; value: string",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .infer_shape = scalars_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = read_cpu,
                                    .host_inputs = "reader_handle, queue_handle")},
        {.name = "ReaderReadUpToV2",
         .inputs = "reader_handle: resource; queue_handle: resource; num_records: int64",
         .outputs = "keys: string; values: string",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED,
         .infer_shape = read_up_to_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = read_up_to_cpu,
                                    .host_inputs = "reader_handle, queue_handle, num_records")},
        COUNT_OP("ReaderNumRecordsProducedV2", "records_produced: int64", records_produced_cpu),
        COUNT_OP("ReaderNumWorkUnitsCompletedV2", "units_completed: int64", units_completed_cpu),
        COUNT_OP("ReaderResetV2", NULL, reset_cpu),
        {0}}};
