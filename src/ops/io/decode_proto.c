// decode_proto.c — DecodeProtoV2: fields of serialised messages to tensors.
#include "base/alloc.h"
#include "op/shape_ctx.h"
#include "ops/io/common.h"
#include "ops/io/proto_source.h"
#include "wire/text.h"

typedef struct decode_t {
  proto_source_t source;
  bool is_text;
  bool is_normalized;  // "sanitize"
} decode_t;

// ---- attributes ----

static weir_status_t* check_types(const weir_kernel_init_t* init, const proto_source_t* s) {
  const weir_attr_t* types = weir_attrs_list(init->node->attrs, "output_types");
  if (types->count != s->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "field_names and output_types attributes must have the same length");
  }
  for (size_t i = 0; i < s->count; ++i) {
    if (proto_source_fits(s->fields[i], types->u.types[i])) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Unexpected output type for %s.%s: %s to %s",
                       s->message->name, s->fields[i]->row->name,
                       weir_proto_type_name(s->fields[i]), weir_dtype_name(types->u.types[i]));
  }
  return NULL;
}

static weir_status_t* decode_init(const weir_kernel_init_t* init, void* state) {
  decode_t* d = state;
  const weir_view_t format = weir_attrs_string(init->node->attrs, "message_format");
  WEIR_TRY(proto_source_init(init->node->attrs, true, &d->source));
  WEIR_TRY(check_types(init, &d->source));
  d->is_text = weir_view_is(format, "text");
  d->is_normalized = weir_attrs_bool(init->node->attrs, "sanitize");
  if (d->is_text || weir_view_is(format, "binary")) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "format must be one of binary or text");
}

static void decode_deinit(void* state) { proto_source_deinit(&((decode_t*)state)->source); }

// ---- shapes ----

static weir_status_t* decode_shape(weir_shape_ctx_t* ctx) {
  const int count = ctx->node->output_count - 1;
  for (int i = 0; i <= count; ++i) {
    WEIR_TRY(weir_shape_set_vector(ctx, i, i == 0 ? count : -1));
    const weir_shape_t* shape =
        weir_shape_concat(ctx, weir_shape_input(ctx, 0), ctx->output_shapes[i]);
    WEIR_TRY(weir_shape_set(ctx, i, shape));
  }
  return NULL;
}

// ---- walking through a message ----

// What one message holds of a field.
typedef struct column_t {
  const weir_proto_field_t* field;
  weir_tensor_t* out;  // NULL while values are counted
  int64_t first;       // element of |out|
  int64_t count;       // of values, where each after the first of a singular field is the same one
  int64_t next;        // where the next of a repeated field goes
} column_t;

static void put_number(const column_t* c, int64_t at, uint64_t bits, bool is_packed) {
  weir_tensor_t* out = c->out;
  const weir_wire_reader_t r = {.value = bits};
  const uint32_t word = (uint32_t)bits;
  int64_t value = (int64_t)bits;
  switch (c->field->type) {
    case WEIR_FIELD_FLOAT:
      if (weir_tensor_type(out) == WEIR_DTYPE_DOUBLE)
        WEIR_TENSOR_DATA(out, double)[at] = (double)weir_wire_float(&r);
      else WEIR_TENSOR_DATA(out, float)[at] = weir_wire_float(&r);
      return;
    case WEIR_FIELD_BOOL: WEIR_TENSOR_DATA(out, uint8_t)[at] = bits != 0; return;
    // Packed, TensorFlow takes negative numbers for large ones where there is room.
    case WEIR_FIELD_INT32: value = is_packed ? (int64_t)word : (int32_t)word; break;
    case WEIR_FIELD_ENUM:
    case WEIR_FIELD_SFIXED32: value = (int32_t)word; break;
    case WEIR_FIELD_SINT32: value = (int32_t)(word >> 1 ^ (word & 1 ? UINT32_MAX : 0)); break;
    case WEIR_FIELD_SINT64: value = (int64_t)(bits >> 1 ^ (bits & 1 ? UINT64_MAX : 0)); break;
    case WEIR_FIELD_UINT32: value = word; break;
    default: break;  // of 64 bits, be they a double's
  }
  if (weir_dtype_size(weir_tensor_type(out)) == 8) WEIR_TENSOR_DATA(out, int64_t)[at] = value;
  else WEIR_TENSOR_DATA(out, int32_t)[at] = (int32_t)value;
}

// One value. Of a singular field the last stays.
static weir_status_t* take_value(column_t* c, const weir_wire_reader_t* r) {
  const bool is_repeated = c->field->row->is_repeated;
  if (!c->out) {
    if (c->count == 0 || is_repeated) ++c->count;
    return NULL;
  }
  const int64_t at = c->first + (is_repeated ? c->next : 0);
  c->next = is_repeated ? c->next + 1 : 1;
  if (weir_tensor_type(c->out) != WEIR_DTYPE_STRING) {
    put_number(c, at, r->value, false);
    return NULL;
  }
  // A group comes with its tags.
  const weir_view_t bytes = c->field->type == WEIR_FIELD_GROUP ? r->raw : r->bytes;
  return weir_tensor_set_string(c->out, at, bytes.data, bytes.size);
}

// Packed values. Those of a singular field are counted, but leave its default.
static weir_status_t* take_packed(column_t* c, const weir_wire_reader_t* r) {
  weir_wire_packed_t packed = weir_wire_packed(r, weir_field_wire_type(c->field->type));
  const bool is_repeated = c->field->row->is_repeated;
  uint64_t count = 0, bits = 0;
  if (r->bytes.size == 0 && !c->out) return NULL;
  if (!weir_field_is_packable(c->field->type))
    return WEIR_STATUS(DATA_LOSS, "TYPE_GROUP encountered as packed");
  if (!c->out) {
    if (!weir_wire_packed_count(packed, &count))
      return WEIR_STATUS(DATA_LOSS, "Corrupt packed values of field %u", r->field);
    c->count = is_repeated ? c->count + (int64_t)count : 1;
    return NULL;
  }
  const int64_t most = c->out->dims[c->out->rank - 1];
  if (c->next >= most) {
    return WEIR_STATUS(DATA_LOSS,
                       "ReadPackedValues: Tried to write more entries than allowed.  Field tag: "
                       "%u, Max entries allowed: %lld",
                       r->field, (long long)most);
  }
  while (is_repeated && weir_wire_packed_next(&packed, &bits))
    put_number(c, c->first + c->next++, bits, true);
  return NULL;
}

// Of a field that is named more than once, the first.
static column_t* find_column(const proto_source_t* s, column_t* columns, uint32_t number) {
  size_t low = 0, high = s->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (columns[middle].field->row->number < number) low = middle + 1;
    else high = middle;
  }
  return low < s->count && columns[low].field->row->number == number ? &columns[low] : NULL;
}

static weir_status_t* walk(const decode_t* d, weir_view_t message, column_t* columns) {
  const proto_source_t* s = &d->source;
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    column_t* c = find_column(s, columns, r.field);
    if (!c) continue;
    const weir_wire_type_t type = weir_field_wire_type(c->field->type);
    if (r.type == type) WEIR_TRY(take_value(c, &r));
    else if (r.type == WEIR_WIRE_BYTES) WEIR_TRY(take_packed(c, &r));
  }
  if (!r.error) return NULL;
  return WEIR_STATUS(DATA_LOSS, "CountFields: Failed to consume entire buffer: %s", r.error);
}

static void start_columns(const proto_source_t* s, column_t* columns) {
  for (size_t i = 0; i < s->count; ++i) columns[i] = (column_t){.field = s->fields[s->order[i]]};
}

// ---- the messages as wire bytes ----

static weir_status_t* from_text(const decode_t* d, weir_view_t text, weir_strbuf_t* out) {
  weir_strbuf_t wire = {0};
  weir_status_t* status = weir_text_parse(&d->source.message->table, text, &wire);
  if (!status) status = weir_proto_normalize(d->source.message, weir_strbuf_view(&wire), true, out);
  weir_strbuf_free(&wire);
  return status;
}

// Message |i|, where it must be written anew, in |buffer|.
static weir_status_t* get_message(const decode_t* d, const weir_tensor_t* in, int64_t i,
                                  weir_strbuf_t* buffer, weir_view_t* out) {
  *out = io_string(in, i);
  if (!d->is_text && !d->is_normalized) return NULL;
  buffer->size = 0;
  weir_status_t* status = d->is_text ? from_text(d, *out, buffer)
                                     : weir_proto_normalize(d->source.message, *out, false, buffer);
  *out = weir_strbuf_view(buffer);
  const weir_code_t code = weir_status_code(status);
  if (code != WEIR_DATA_LOSS && code != WEIR_INVALID_ARGUMENT) return status;
  weir_status_destroy(status);
  return WEIR_STATUS(DATA_LOSS, "Unable to parse %s protobuf", d->is_text ? "text" : "binary");
}

// ---- kernel ----

typedef struct run_t {
  const decode_t* d;
  const weir_tensor_t* in;
  weir_strbuf_t buffer;
  column_t* columns;  // by ascending number
  int64_t* most;      // values of a message
} run_t;

static weir_status_t* count_values(run_t* run, weir_tensor_t* sizes) {
  const proto_source_t* s = &run->d->source;
  for (size_t i = 0; i < s->count; ++i) run->most[i] = 1;
  for (int64_t m = 0; m < run->in->count; ++m) {
    weir_view_t message;
    WEIR_TRY(get_message(run->d, run->in, m, &run->buffer, &message));
    start_columns(s, run->columns);
    WEIR_TRY(walk(run->d, message, run->columns));
    for (size_t i = 0; i < s->count; ++i) {
      const int64_t count = run->columns[i].count;
      if (count > INT32_MAX) return WEIR_STATUS(DATA_LOSS, "a message has too many values");
      run->most[i] = WEIR_MAX(run->most[i], count);
      WEIR_TENSOR_DATA(sizes, int32_t)
      [m * (int64_t)s->count + (int64_t)s->order[i]] = (int32_t)count;
    }
  }
  return NULL;
}

static weir_status_t* fill_default(const column_t* c, int64_t most) {
  for (int64_t i = c->next; i < most; ++i) {
    if (weir_tensor_type(c->out) != WEIR_DTYPE_STRING) {
      put_number(c, c->first + i, c->field->default_bits, false);
    } else {
      const weir_view_t bytes = c->field->default_bytes;
      WEIR_TRY(weir_tensor_set_string(c->out, c->first + i, bytes.data, bytes.size));
    }
  }
  return NULL;
}

static weir_status_t* take_values(run_t* run, const weir_kernel_ctx_t* ctx) {
  const proto_source_t* s = &run->d->source;
  for (int64_t m = 0; m < run->in->count; ++m) {
    weir_view_t message;
    WEIR_TRY(get_message(run->d, run->in, m, &run->buffer, &message));
    start_columns(s, run->columns);
    for (size_t i = 0; i < s->count; ++i) {
      run->columns[i].out = ctx->outputs[1 + s->order[i]].tensor;
      run->columns[i].first = m * run->most[i];
    }
    WEIR_TRY(walk(run->d, message, run->columns));
    for (size_t i = 0; i < s->count; ++i) WEIR_TRY(fill_default(&run->columns[i], run->most[i]));
  }
  return NULL;
}

static weir_status_t* decode_all(weir_kernel_ctx_t* ctx, run_t* run) {
  const proto_source_t* s = &run->d->source;
  const int rank = run->in->rank;
  int64_t dims[WEIR_MAX_RANK];
  weir_tensor_t* out = NULL;
  if (rank == WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "bytes may have %d dimensions at most", rank - 1);
  memcpy(dims, run->in->dims, (size_t)rank * sizeof *dims);
  dims[rank] = (int64_t)s->count;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank + 1, dims, &out));
  WEIR_TRY(count_values(run, out));
  for (size_t i = 0; i < s->count; ++i) {
    dims[rank] = run->most[i];
    WEIR_TRY(weir_kernel_output(ctx, 1 + (int)s->order[i], rank + 1, dims, &out));
  }
  return take_values(run, ctx);
}

static weir_status_t* decode_cpu(weir_kernel_ctx_t* ctx) {
  const decode_t* d = ctx->state;
  run_t run = {.d = d, .in = weir_kernel_input(ctx, 0)};
  if (run.in->count == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Bufs argument must contain at least one value");
  run.columns = weir_alloc_array(d->source.count + 1, sizeof *run.columns);
  run.most = weir_alloc_array(d->source.count + 1, sizeof *run.most);
  weir_status_t* status = run.columns && run.most ? decode_all(ctx, &run) : weir_out_of_memory();
  weir_strbuf_free(&run.buffer);
  weir_free(run.columns);
  weir_free(run.most);
  return status;
}

const weir_op_module_t weir_ops_io_decode_proto = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DecodeProtoV2",
         .attrs = "message_type: string; field_names: list(string); output_types: list(type) >= 0; "
                  "descriptor_source: string = 'local://'; message_format: string = 'binary'; "
                  "sanitize: bool = false",
         .inputs = "bytes: string",
         .outputs = "sizes: int32; values: output_types",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_UNBOUNDED,
         .summary = "Fields of serialised messages",
         .infer_shape = decode_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = decode_cpu, .init = decode_init,
                                    .deinit = decode_deinit, .state_size = sizeof(decode_t))},
        {0}}};
