// data_options.c — Options of datasets: a message merged over another, as protobuf merges.
#include "ops/data/data_options.h"

#include "wire/message.h"

// ---- the message ----

#define BOOL(number, name) \
  { number, name, WEIR_FIELD_BOOL, .oneof = number }
#define INT(number, name, type) \
  { number, name, type, .oneof = number }
#define PART(number, name, part) \
  { number, name, WEIR_FIELD_MESSAGE, .message = &(part) }

static const weir_message_t autotune = {
    "AutotuneOptions", (const weir_field_t[]){BOOL(1, "enabled"),
                                              INT(2, "cpu_budget", WEIR_FIELD_INT32),
                                              INT(3, "ram_budget", WEIR_FIELD_INT64),
                                              INT(4, "autotune_algorithm", WEIR_FIELD_ENUM),
                                              INT(5, "initial_parallelism", WEIR_FIELD_INT64),
                                              INT(6, "min_parallelism", WEIR_FIELD_INT64),
                                              {0}}};
static const weir_message_t distribute = {
    "DistributeOptions",
    (const weir_field_t[]){{.number = 1, .name = "auto_shard_policy", .type = WEIR_FIELD_ENUM},
                           INT(2, "num_devices", WEIR_FIELD_INT32),
                           {0}}};
static const weir_message_t optimization = {
    "OptimizationOptions", (const weir_field_t[]){BOOL(1, "apply_default_optimizations"),
                                                  BOOL(6, "filter_fusion"),
                                                  BOOL(9, "map_and_batch_fusion"),
                                                  BOOL(10, "map_and_filter_fusion"),
                                                  BOOL(11, "map_fusion"),
                                                  BOOL(12, "map_parallelization"),
                                                  BOOL(14, "noop_elimination"),
                                                  BOOL(15, "parallel_batch"),
                                                  BOOL(17, "shuffle_and_repeat_fusion"),
                                                  BOOL(18, "filter_parallelization"),
                                                  BOOL(19, "inject_prefetch"),
                                                  BOOL(21, "seq_interleave_prefetch"),
                                                  {0}}};
static const weir_message_t threading = {
    "ThreadingOptions", (const weir_field_t[]){INT(1, "max_intra_op_parallelism", WEIR_FIELD_INT32),
                                               INT(2, "private_threadpool_size", WEIR_FIELD_INT32),
                                               {0}}};
static const weir_message_t service = {"ServiceOptions",
                                       (const weir_field_t[]){BOOL(1, "pinned"), {0}}};
static const weir_message_t options_message = {
    "Options", (const weir_field_t[]){BOOL(1, "deterministic"),
                                      PART(2, "distribute_options", distribute),
                                      PART(3, "optimization_options", optimization),
                                      BOOL(4, "slack"),
                                      PART(5, "threading_options", threading),
                                      INT(6, "external_state_policy", WEIR_FIELD_ENUM),
                                      PART(7, "autotune_options", autotune),
                                      BOOL(8, "symbolic_checkpoint"),
                                      BOOL(9, "warm_start"),
                                      {10, "dataset_name", WEIR_FIELD_STRING, .oneof = 10},
                                      {11, "framework_type", WEIR_FIELD_STRING, .is_repeated = 1},
                                      PART(12, "service_options", service),
                                      {0}}};

// ---- merging ----

static bool is_field(const weir_wire_reader_t* reader, const weir_field_t* field) {
  return reader->field == field->number && reader->type == weir_field_wire_type(field->type);
}

static void put_scalar(const weir_wire_reader_t* value, const weir_field_t* field,
                       weir_strbuf_t* out) {
  int64_t number = weir_wire_int(value);
  if (field->type == WEIR_FIELD_BOOL) number = number != 0;
  if (field->type == WEIR_FIELD_INT32 || field->type == WEIR_FIELD_ENUM) number = (int32_t)number;
  if (field->oneof || number != 0) weir_wire_put_int(out, field->number, number);
}

// Field |field| of what stands in |messages|, one after the other: the last value, all values, or
// the parts one after the other, which is the same message as they merged.
static void put_field(weir_view_t messages, const weir_field_t* field, weir_strbuf_t* out);

static void put_message(const weir_message_t* message, weir_view_t messages, weir_strbuf_t* out) {
  for (const weir_field_t* field = message->fields; field->number; ++field)
    put_field(messages, field, out);
  // What is not known stays, behind the rest.
  weir_wire_reader_t reader = weir_wire_reader(messages);
  while (weir_wire_next(&reader)) {
    const weir_field_t* field = weir_message_field(message, reader.field);
    if (!field || !is_field(&reader, field))
      weir_strbuf_append(out, reader.raw.data, reader.raw.size);
  }
}

static void put_field(weir_view_t messages, const weir_field_t* field, weir_strbuf_t* out) {
  weir_wire_reader_t reader = weir_wire_reader(messages), last = {0};
  weir_strbuf_t parts = {0};
  bool is_there = false;
  while (weir_wire_next(&reader)) {
    if (!is_field(&reader, field)) continue;
    is_there = true;
    last = reader;
    if (field->type == WEIR_FIELD_MESSAGE)
      weir_strbuf_append(&parts, reader.bytes.data, reader.bytes.size);
    else if (field->is_repeated) weir_strbuf_append(out, reader.raw.data, reader.raw.size);
  }
  if (is_there && field->type == WEIR_FIELD_MESSAGE) {
    size_t begin = weir_wire_begin(out, field->number);
    put_message(field->message, weir_strbuf_view(&parts), out);
    weir_wire_end(out, begin);
    out->failed |= parts.failed;
  } else if (is_there && field->type == WEIR_FIELD_STRING && !field->is_repeated) {
    weir_wire_put_bytes(out, field->number, last.bytes.data, last.bytes.size);
  } else if (is_there && !field->is_repeated) {
    put_scalar(&last, field, out);
  }
  weir_strbuf_free(&parts);
}

// Whether all can be read, as deep as there are messages.
static bool is_whole(const weir_message_t* message, weir_view_t bytes) {
  weir_wire_reader_t reader = weir_wire_reader(bytes);
  while (weir_wire_next(&reader)) {
    const weir_field_t* field = weir_message_field(message, reader.field);
    if (field && is_field(&reader, field) && field->type == WEIR_FIELD_MESSAGE &&
        !is_whole(field->message, reader.bytes))
      return false;
  }
  return !reader.error;
}

weir_status_t* weir_data_options_parse(weir_view_t serialized, weir_data_t* dataset) {
  if (!is_whole(&options_message, serialized))
    return WEIR_STATUS(INVALID_ARGUMENT, "Could not parse serialized_options as valid Options.");
  put_message(&options_message, serialized, &dataset->options);
  return weir_strbuf_finish(&dataset->options);
}

weir_status_t* weir_data_options_inherit(weir_data_t* dataset) {
  weir_strbuf_t all = {0}, merged = {0};
  for (int i = 0; i < dataset->input_count; ++i) {
    const weir_strbuf_t* options = &dataset->inputs[i]->options;
    if (options->size) weir_strbuf_append(&all, options->data, options->size);
  }
  if (all.size == 0 && !all.failed) return NULL;  // and nothing was taken
  weir_strbuf_append(&all, dataset->options.data, dataset->options.size);
  weir_status_t* status = weir_strbuf_finish(&all);
  if (!status) put_message(&options_message, weir_strbuf_view(&all), &merged);
  if (!status) status = weir_strbuf_finish(&merged);
  weir_strbuf_free(&all);
  weir_strbuf_free(&dataset->options);
  dataset->options = merged;
  return status;
}
