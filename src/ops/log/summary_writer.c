// summary_writer.c — SummaryWriter, CreateSummaryFileWriter, WriteSummary, WriteScalarSummary,
// WriteHistogramSummary, WriteAudioSummary, WriteRawProtoSummary, WriteGraphSummary, ImportEvent,
// FlushSummaryWriter, CloseSummaryWriter: event files written by a graph.
#include "ops/log/summary_writer.h"

#include <math.h>

#include "file/event.h"
#include "op/shared_handle.h"
#include "ops/io/common.h"
#include "ops/log/audio_summary.h"
#include "tensor/cast.h"
#include "wire/wire.h"

#define WRITER_TYPE_NAME "N10tensorflow22SummaryWriterInterfaceE"

typedef struct summary_writer_t {
  weir_resource_t base;
  weir_event_writer_t* events;  // thread-safe by itself
  weir_mutex_t mu;
  int64_t waiting;    // events since the last flush; guarded by mu
  int64_t max_queue;  // so many may wait
} summary_writer_t;

static void writer_destroy(weir_resource_t* resource) {
  summary_writer_t* writer = (summary_writer_t*)resource;
  // Nobody is left to hear of an error at the end; FlushSummaryWriter reports them.
  weir_status_destroy(weir_event_writer_close(writer->events));
  weir_mutex_destroy(&writer->mu);
  weir_free(writer);
}

static const weir_resource_type_t writer_type = {.name = WRITER_TYPE_NAME,
                                                 .destroy = writer_destroy};

// ---- the handle ----

static weir_status_t* handle_init(const weir_kernel_init_t* init, void* state) {
  return weir_shared_handle_init(init, WRITER_TYPE_NAME, state);
}
static void handle_deinit(void* state) { weir_shared_handle_deinit(state); }
static weir_status_t* handle_cpu(weir_kernel_ctx_t* ctx) {
  weir_shared_handle_set(ctx, ctx->state);
  return NULL;
}

// ---- making a writer ----

static weir_status_t* check_scalar(const weir_kernel_ctx_t* ctx, int i, const char* name) {
  const weir_tensor_t* tensor = weir_kernel_input(ctx, i);
  if (tensor->rank == 0) return NULL;
  char text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar, got shape %s", name,
                     weir_tensor_shape_text(tensor, text));
}

typedef struct make_t {
  const char* directory;
  const char* suffix;
  int64_t max_queue;
  int64_t flush_ms;
} make_t;

static weir_status_t* make_writer(void* arg, weir_resource_t** out_resource) {
  const make_t* make = arg;
  weir_event_writer_t* events = NULL;
  WEIR_TRY(weir_event_writer_create(make->directory, make->suffix, &events));
  summary_writer_t* writer = weir_calloc(1, sizeof(*writer));
  if (!writer) {
    weir_status_destroy(weir_event_writer_close(events));
    return weir_out_of_memory();
  }
  weir_resource_init(&writer->base, &writer_type);
  weir_mutex_init(&writer->mu);
  weir_event_writer_set_flush_seconds(events, (double)make->flush_ms / 1000.0);
  writer->events = events;
  writer->max_queue = make->max_queue;
  *out_resource = &writer->base;
  return NULL;
}

// Finds or makes the writer that handle input 0 names.
static weir_status_t* find_or_make(weir_kernel_ctx_t* ctx, make_t* make) {
  const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
  weir_resource_t* resource = NULL;
  if (!handle) return WEIR_STATUS(INVALID_ARGUMENT, "%s needs a resource handle", ctx->node->name);
  WEIR_TRY(weir_resources_find_or_create(
      weir_kernel_resources(ctx), weir_view_of(handle->container), weir_view_of(handle->name),
      &writer_type, make_writer, make, &resource));
  weir_resource_release(resource);
  return NULL;
}

static weir_status_t* create_cpu(weir_kernel_ctx_t* ctx) {
  static const char* const names[] = {"writer", "logdir", "max_queue", "flush_millis",
                                      "filename_suffix"};
  for (int i = 0; i < 5; ++i) WEIR_TRY(check_scalar(ctx, i, names[i]));
  char* directory = NULL;
  char* suffix = NULL;
  weir_status_t* status = io_path(weir_kernel_input(ctx, 1), 0, &directory);
  if (!status) status = io_path(weir_kernel_input(ctx, 4), 0, &suffix);
  make_t make = {.directory = directory,
                 .suffix = suffix,
                 .max_queue = weir_tensor_int_at(weir_kernel_input(ctx, 2), 0),
                 .flush_ms = weir_tensor_int_at(weir_kernel_input(ctx, 3), 0)};
  if (!status) status = find_or_make(ctx, &make);
  weir_free(directory);
  weir_free(suffix);
  return status;
}

// ---- writing ----

static weir_status_t* find_writer(weir_kernel_ctx_t* ctx, summary_writer_t** out_writer) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, 0, &writer_type, &resource));
  *out_writer = (summary_writer_t*)resource;
  return NULL;
}

static weir_status_t* write_event(summary_writer_t* writer, int64_t step, weir_view_t summary) {
  WEIR_TRY(weir_event_add_summary(writer->events, step, summary));
  weir_mutex_lock(&writer->mu);
  const bool is_full = ++writer->waiting > writer->max_queue;
  if (is_full) writer->waiting = 0;
  weir_mutex_unlock(&writer->mu);
  return is_full ? weir_event_writer_flush(writer->events) : NULL;
}

weir_status_t* weir_summary_write(weir_kernel_ctx_t* ctx, weir_strbuf_t* summary) {
  summary_writer_t* writer = NULL;
  weir_status_t* status = weir_strbuf_finish(summary);
  if (!status) status = check_scalar(ctx, 1, "step");
  if (!status) status = find_writer(ctx, &writer);
  if (!status) {
    status = write_event(writer, weir_tensor_int_at(weir_kernel_input(ctx, 1), 0),
                         weir_strbuf_view(summary));
  }
  if (writer) weir_resource_release(&writer->base);
  weir_strbuf_free(summary);
  return status;
}

static weir_status_t* tensor_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_scalar(ctx, 3, "tag"));
  WEIR_TRY(check_scalar(ctx, 4, "summary_metadata"));
  weir_view_t metadata = io_string(weir_kernel_input(ctx, 4), 0);
  if (metadata.size == 0) metadata = weir_view(NULL, 0);
  weir_strbuf_t summary = {0};
  weir_status_t* status =
      weir_summary_put_tensor(&summary, io_string(weir_kernel_input(ctx, 3), 0), weir_view(NULL, 0),
                              weir_kernel_input(ctx, 2), metadata);
  if (!status) return weir_summary_write(ctx, &summary);
  weir_strbuf_free(&summary);
  return status;
}

static weir_status_t* scalar_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_scalar(ctx, 2, "tag"));
  WEIR_TRY(check_scalar(ctx, 3, "value"));
  const weir_tensor_t* value = weir_kernel_input(ctx, 3);
  double number = 0;
  weir_element_to_double(weir_tensor_type(value), value->data, &number);
  weir_strbuf_t summary = {0};
  weir_summary_put_scalar(&summary, io_string(weir_kernel_input(ctx, 2), 0), (float)number);
  return weir_summary_write(ctx, &summary);
}

// Summaries one after the other are the summary of all their values.
static weir_status_t* raw_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* messages = weir_kernel_input(ctx, 2);
  weir_strbuf_t summary = {0};
  for (int64_t i = 0; i < messages->count; ++i) {
    const weir_view_t message = io_string(messages, i);
    weir_wire_reader_t reader = weir_wire_reader(message);
    while (weir_wire_next(&reader)) continue;
    if (reader.error) {
      weir_strbuf_free(&summary);
      return WEIR_STATUS(DATA_LOSS,
                         "Bad tf.compat.v1.Summary binary proto tensor string at index "
                         "%lld",
                         (long long)i);
    }
    weir_strbuf_append(&summary, message.data, message.size);
  }
  return weir_summary_write(ctx, &summary);
}

// ---- histograms and sounds ----

static weir_status_t* fill_histogram(const weir_tensor_t* values, weir_view_t tag,
                                     weir_histogram_t* histogram) {
  const weir_dtype_t dtype = weir_tensor_type(values);
  for (int64_t i = 0; i < values->count; ++i) {
    double value = 0;
    weir_element_to_double(dtype, (const char*)values->data + (size_t)i * weir_dtype_size(dtype),
                           &value);
    if (!isfinite(value)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s in summary histogram for: %.*s",
                         isnan(value) ? "Nan" : "Infinity", WEIR_VIEW_ARG(tag));
    }
    weir_histogram_add(histogram, value);
  }
  return NULL;
}

static weir_status_t* histogram_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_scalar(ctx, 2, "tag"));
  const weir_view_t tag = io_string(weir_kernel_input(ctx, 2), 0);
  weir_histogram_t histogram;
  weir_strbuf_t summary = {0};
  weir_histogram_init(&histogram);
  WEIR_TRY(fill_histogram(weir_kernel_input(ctx, 3), tag, &histogram));
  weir_summary_put_histogram(&summary, tag, &histogram);
  return weir_summary_write(ctx, &summary);
}

static weir_status_t* audio_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_scalar(ctx, 2, "tag"));
  WEIR_TRY(check_scalar(ctx, 4, "sample_rate"));
  weir_strbuf_t summary = {0};
  weir_status_t* status = weir_audio_put_summary(
      &summary, io_string(weir_kernel_input(ctx, 2), 0), weir_kernel_input(ctx, 3),
      *WEIR_TENSOR_DATA(weir_kernel_input(ctx, 4), float),
      weir_attrs_int(weir_kernel_attrs(ctx), "max_outputs"));
  if (!status) return weir_summary_write(ctx, &summary);
  weir_strbuf_free(&summary);
  return status;
}

// ---- graphs, and events as they are ----

static bool is_message(weir_view_t bytes) {
  weir_wire_reader_t reader = weir_wire_reader(bytes);
  while (weir_wire_next(&reader)) continue;
  return reader.error == NULL;
}

static weir_status_t* graph_cpu(weir_kernel_ctx_t* ctx) {
  summary_writer_t* writer = NULL;
  WEIR_TRY(check_scalar(ctx, 1, "step"));
  WEIR_TRY(check_scalar(ctx, 2, "tensor"));
  const weir_view_t graph = io_string(weir_kernel_input(ctx, 2), 0);
  if (!is_message(graph))
    return WEIR_STATUS(DATA_LOSS, "Bad tf.GraphDef binary proto tensor string");
  WEIR_TRY(find_writer(ctx, &writer));
  weir_status_t* status =
      weir_event_add_graph(writer->events, weir_tensor_int_at(weir_kernel_input(ctx, 1), 0), graph);
  weir_resource_release(&writer->base);
  return status;
}

static weir_status_t* import_cpu(weir_kernel_ctx_t* ctx) {
  summary_writer_t* writer = NULL;
  WEIR_TRY(check_scalar(ctx, 1, "event"));
  const weir_view_t event = io_string(weir_kernel_input(ctx, 1), 0);
  if (!is_message(event)) return WEIR_STATUS(DATA_LOSS, "Bad tf.Event binary proto tensor string");
  WEIR_TRY(find_writer(ctx, &writer));
  weir_status_t* status = weir_event_write(writer->events, event);
  weir_resource_release(&writer->base);
  return status;
}

// ---- the end ----

static weir_status_t* flush_cpu(weir_kernel_ctx_t* ctx) {
  summary_writer_t* writer = NULL;
  WEIR_TRY(find_writer(ctx, &writer));
  weir_status_t* status = weir_event_writer_flush(writer->events);
  weir_resource_release(&writer->base);
  return status;
}

static weir_status_t* close_cpu(weir_kernel_ctx_t* ctx) {
  const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, 0));
  if (!handle) return WEIR_STATUS(INVALID_ARGUMENT, "%s needs a resource handle", ctx->node->name);
  return weir_resources_remove(weir_kernel_resources(ctx), weir_view_of(handle->container),
                               weir_view_of(handle->name), &writer_type);
}

// ---- shapes ----

static weir_status_t* all_scalars(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->input_count; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  return NULL;
}

#define WRITER_OP(op_name, op_attrs, op_inputs, text, shape_fn, ...)                         \
  {                                                                                          \
    .name = op_name, .attrs = op_attrs, .inputs = "writer: resource" op_inputs,              \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED, .summary = text, .infer_shape = shape_fn, \
    .kernels = (const weir_kernel_def_t[]) {                                                 \
      {WEIR_DEVICE_CPU, .compute = __VA_ARGS__}, { 0 }                                       \
    }                                                                                        \
  }

const weir_op_module_t weir_ops_log_summary_writer = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SummaryWriter",
         .attrs = "shared_name: string = ''; container: string = ''",
         .outputs = "writer: resource",
         .flags = WEIR_OP_STATEFUL,
         .summary = "A handle of a summary writer",
         .infer_shape = weir_shape_fn_scalar,
         .kernels =
             WEIR_CPU_KERNEL(.compute = handle_cpu, .state_size = sizeof(weir_shared_handle_t),
                             .init = handle_init, .deinit = handle_deinit)},
        WRITER_OP("CreateSummaryFileWriter", NULL,
                  "; logdir: string; max_queue: int32; flush_millis: int32; "
                  "filename_suffix: string",
                  "Makes the writer of an event file", all_scalars, create_cpu),
        WRITER_OP("WriteSummary", "T: type",
                  "; step: int64; tensor: T; tag: string; summary_metadata: string",
                  "Writes a tensor to an event file", weir_shape_fn_none, tensor_cpu,
                  .host_inputs = "step, tensor"),
        WRITER_OP("WriteScalarSummary", "T: realnumbertype", "; step: int64; tag: string; value: T",
                  "Writes a number to an event file", weir_shape_fn_none, scalar_cpu),
        WRITER_OP("WriteRawProtoSummary", NULL, "; step: int64; tensor: string",
                  "Writes Summary messages to an event file", weir_shape_fn_none, raw_cpu),
        WRITER_OP("WriteHistogramSummary",
                  "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                  "uint32, uint64, bool} = DT_FLOAT",
                  "; step: int64; tag: string; values: T",
                  "Writes the histogram of a tensor to an event file", weir_shape_fn_none,
                  histogram_cpu),
        WRITER_OP("WriteAudioSummary", "max_outputs: int >= 1 = 3",
                  "; step: int64; tag: string; tensor: float; sample_rate: float",
                  "Writes sounds to an event file", weir_shape_fn_none, audio_cpu),
        WRITER_OP("WriteGraphSummary", NULL, "; step: int64; tensor: string",
                  "Writes a GraphDef to an event file", weir_shape_fn_none, graph_cpu),
        WRITER_OP("ImportEvent", NULL, "; event: string", "Writes an Event as it is",
                  weir_shape_fn_none, import_cpu),
        WRITER_OP("FlushSummaryWriter", NULL, "", "Hands what was written to the system",
                  weir_shape_fn_none, flush_cpu),
        WRITER_OP("CloseSummaryWriter", NULL, "", "Closes an event file", weir_shape_fn_none,
                  close_cpu),
        {0}}};
