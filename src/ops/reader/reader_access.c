// reader_access.c — Reading from readers, their counters and states, and going back to the start.
#include "op/shape_ctx.h"
#include "ops/reader/reader_resource.h"

static void read_records(weir_kernel_ctx_t* ctx, int64_t limit, weir_done_t done) {
  weir_resource_t *reader = NULL, *queue = NULL;
  weir_status_t* status = weir_shared_handle_resource(ctx, 0, &weir_reader_type, &reader);
  if (!status) status = weir_shared_handle_resource(ctx, 1, &weir_queue_type, &queue);
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
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &weir_reader_type, &reader));
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
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &weir_reader_type, &reader));
  weir_reader_reset((weir_reader_t*)reader);
  weir_resource_release(reader);
  return NULL;
}

static weir_status_t* serialize_cpu(weir_kernel_ctx_t* ctx) {
  weir_resource_t* reader = NULL;
  weir_tensor_t* out = NULL;
  weir_strbuf_t state = {0};
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &weir_reader_type, &reader));
  weir_status_t* status = weir_reader_save((weir_reader_t*)reader, &state);
  if (!status) status = weir_kernel_output(ctx, 0, 0, NULL, &out);
  if (!status) status = weir_string_set(out->data, state.data, state.size);
  weir_strbuf_free(&state);
  weir_resource_release(reader);
  return status;
}

static weir_status_t* restore_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* state = weir_kernel_input(ctx, 1);
  weir_resource_t* reader = NULL;
  if (state->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Reader state must be scalar, but had shape: %s",
                       weir_tensor_shape_text(state, text));
  }
  WEIR_TRY(weir_shared_handle_resource(ctx, 0, &weir_reader_type, &reader));
  weir_status_t* status =
      weir_reader_restore((weir_reader_t*)reader, weir_string_view(state->data));
  weir_resource_release(reader);
  return status;
}

// ---- shapes: every input is a scalar, but old handles, which are vectors of two strings ----
static weir_status_t* check_scalars(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->input_count; ++i) {
    const bool is_old = weir_dtype_is_ref(ctx->node->input_types[i]);
    const weir_shape_t* shape = NULL;
    int64_t dim = 0;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), is_old ? 1 : 0, &shape));
    if (is_old) WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(shape, 0), 2, &dim));
  }
  return NULL;
}

static weir_status_t* scalars_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_scalars(ctx));
  return weir_shape_fn_scalar(ctx);
}

static weir_status_t* read_up_to_shape(weir_shape_ctx_t* ctx) {
  if (!weir_dtype_is_ref(ctx->node->input_types[0])) WEIR_TRY(check_scalars(ctx));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, -1));
  return weir_shape_set_vector(ctx, 1, -1);
}

static weir_status_t* restore_shape(weir_shape_ctx_t* ctx) { return check_scalars(ctx); }

#define READER_OP(op, text, ins, outs, flags_, shape, ...)                        \
  {                                                                               \
    .name = op, .summary = text, .inputs = ins, .outputs = outs, .flags = flags_, \
    .infer_shape = shape, .kernels = (const weir_kernel_def_t[]) {                \
      {WEIR_DEVICE_CPU, .host_inputs = "reader_handle", __VA_ARGS__}, { 0 }       \
    }                                                                             \
  }
// Both generations of an op on one reader, with |more| inputs after it.
#define READER_OPS(op, text, more, outs, shape, ...)                                           \
  READER_OP(op "V2", text, "reader_handle: resource" more, outs, WEIR_OP_STATEFUL, shape,      \
            __VA_ARGS__),                                                                      \
      READER_OP(op, text, "reader_handle: Ref(string)" more, outs, WEIR_OP_NO_GRADIENT, shape, \
                __VA_ARGS__)
// The same of an op that takes names from a queue.
#define READ_OPS(op, text, more, outs, shape, ...)                                            \
  READER_OP(op "V2", text, "reader_handle: resource; queue_handle: resource" more, outs,      \
            WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED, shape, __VA_ARGS__),                        \
      READER_OP(op, text, "reader_handle: Ref(string); queue_handle: Ref(string)" more, outs, \
                WEIR_OP_NO_GRADIENT | WEIR_OP_UNBOUNDED, shape, __VA_ARGS__)

const weir_op_module_t weir_ops_reader_reader_access = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        READ_OPS("ReaderRead", "The next record, of the next file that a queue names when one ends",
                 "", "key: string; value: string", scalars_shape, .compute_async = read_cpu),
        READ_OPS("ReaderReadUpTo",
                 "At most num_records next records, as ReaderRead would give them",
                 "; num_records: int64", "keys: string; values: string", read_up_to_shape,
                 .compute_async = read_up_to_cpu),
        READER_OPS("ReaderNumRecordsProduced", "The number of records that a reader has given", "",
                   "records_produced: int64", scalars_shape, .compute = records_produced_cpu),
        READER_OPS("ReaderNumWorkUnitsCompleted",
                   "The number of files that a reader has read to the end", "",
                   "units_completed: int64", scalars_shape, .compute = units_completed_cpu),
        READER_OPS("ReaderReset", "Puts a reader back to its start", "", NULL, scalars_shape,
                   .compute = reset_cpu),
        READER_OPS("ReaderSerializeState", "The state of a reader as a string", "", "state: string",
                   scalars_shape, .compute = serialize_cpu),
        READER_OPS("ReaderRestoreState",
                   "Puts a reader into a state that ReaderSerializeState gave", "; state: string",
                   NULL, restore_shape, .compute = restore_cpu),
        {0}}};
