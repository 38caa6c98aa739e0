// collective_message.c — Members of collectives, to and from bytes.
#include "cluster/task/collective_message.h"

#include "base/alloc.h"
#include "wire/wire.h"

enum {
  JOIN_KIND = 1,
  JOIN_SPACE = 2,
  JOIN_DTYPE = 3,
  JOIN_MERGE = 4,
  JOIN_IS_MEAN = 5,
  JOIN_IS_SOURCE = 6,
  JOIN_WANTS_ROSTER = 7,
  JOIN_GROUP_KEY = 8,
  JOIN_GROUP_SIZE = 9,
  JOIN_INSTANCE_KEY = 10,
  JOIN_RANK = 11,
  JOIN_ID = 12,
  JOIN_ITERATION = 13,
  JOIN_SCOPE = 14,
  JOIN_STEP_ID = 15,
  JOIN_DEVICE = 16,
  JOIN_INCARNATION = 17,
  JOIN_HAS_SHAPE = 18,
  JOIN_DIM = 19,
  JOIN_TIMEOUT_NS = 20,
  JOIN_TENSOR = 21,
};
enum { ANSWER_TENSOR = 1 };

weir_status_t* weir_collective_write(const weir_collective_t* what, weir_tensor_t* tensor,
                                     weir_rpc_message_t** out_message) {
  weir_message_builder_t builder = {.message = NULL};
  weir_strbuf_t* out = &builder.head;
  weir_wire_put_int(out, JOIN_KIND, what->kind);
  weir_wire_put_int(out, JOIN_SPACE, what->space);
  weir_wire_put_int(out, JOIN_DTYPE, what->dtype);
  weir_wire_put_int(out, JOIN_MERGE, what->merge);
  weir_wire_put_bool(out, JOIN_IS_MEAN, what->is_mean);
  weir_wire_put_bool(out, JOIN_IS_SOURCE, what->is_source);
  weir_wire_put_bool(out, JOIN_WANTS_ROSTER, what->wants_roster);
  weir_wire_put_int(out, JOIN_GROUP_KEY, what->group_key);
  weir_wire_put_int(out, JOIN_GROUP_SIZE, what->group_size);
  weir_wire_put_int(out, JOIN_INSTANCE_KEY, what->instance_key);
  weir_wire_put_int(out, JOIN_RANK, what->rank);
  weir_wire_put_int(out, JOIN_ID, (int64_t)what->id);
  weir_wire_put_int(out, JOIN_ITERATION, what->iteration);
  weir_wire_put_int(out, JOIN_SCOPE, (int64_t)what->scope);
  weir_wire_put_int(out, JOIN_STEP_ID, what->step_id);
  weir_wire_put_string(out, JOIN_DEVICE, what->device);
  weir_wire_put_int(out, JOIN_INCARNATION, (int64_t)what->incarnation);
  weir_wire_put_bool(out, JOIN_HAS_SHAPE, what->dims != NULL);
  for (int i = 0; what->dims && i < what->dim_count; ++i)
    weir_wire_put_int(out, JOIN_DIM, what->dims[i]);
  weir_wire_put_int(out, JOIN_TIMEOUT_NS, what->timeout_ns);
  if (tensor) weir_message_put_tensor(&builder, JOIN_TENSOR, tensor);
  return weir_message_finish(&builder, out_message);
}

// ---- reading ----

static weir_status_t* read_int(const weir_wire_reader_t* reader, int* out_value) {
  int64_t value = weir_wire_int(reader);
  if (value < INT32_MIN || value > INT32_MAX)
    return WEIR_STATUS(INVALID_ARGUMENT, "a number of a collective is out of range");
  *out_value = (int)value;
  return NULL;
}

static weir_status_t* read_dim(const weir_wire_reader_t* reader,
                               weir_collective_request_t* request) {
  weir_collective_t* what = &request->what;
  int64_t dim = weir_wire_int(reader);
  if (dim < 0 || what->dim_count == WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "a collective has no such shape");
  request->dims[what->dim_count++] = dim;
  return NULL;
}

// Fields that are numbers.
static weir_status_t* read_number(const weir_wire_reader_t* reader,
                                  weir_collective_request_t* request, bool* has_shape) {
  weir_collective_t* what = &request->what;
  int64_t value = weir_wire_int(reader);
  switch (reader->field) {
    case JOIN_KIND:
      if (value < 0 || value >= WEIR_COLLECTIVE_KIND_COUNT || value == 3)
        return WEIR_STATUS(INVALID_ARGUMENT, "there is no such collective");
      what->kind = (weir_collective_kind_t)value;
      break;
    case JOIN_SPACE:
      if (value < 0 || value >= WEIR_COLLECTIVE_SPACE_NAME)  // names are met by in one process
        return WEIR_STATUS(INVALID_ARGUMENT, "there is no such space of collectives");
      what->space = (weir_collective_space_t)value;
      break;
    case JOIN_DTYPE:
      if (value &&
          (value < 0 || value >= WEIR_DTYPE_COUNT || !weir_dtype_is_plain((weir_dtype_t)value)))
        return WEIR_STATUS(INVALID_ARGUMENT, "no collective is of that type");
      what->dtype = (weir_dtype_t)value;
      break;
    case JOIN_MERGE:
      if (value != WEIR_UPDATE_ADD && value != WEIR_UPDATE_MUL && value != WEIR_UPDATE_MIN &&
          value != WEIR_UPDATE_MAX)
        return WEIR_STATUS(INVALID_ARGUMENT, "no collective merges like that");
      what->merge = (weir_update_op_t)value;
      break;
    case JOIN_IS_MEAN: what->is_mean = weir_wire_bool(reader); break;
    case JOIN_IS_SOURCE: what->is_source = weir_wire_bool(reader); break;
    case JOIN_WANTS_ROSTER: what->wants_roster = weir_wire_bool(reader); break;
    case JOIN_GROUP_KEY: return read_int(reader, &what->group_key);
    case JOIN_GROUP_SIZE: return read_int(reader, &what->group_size);
    case JOIN_INSTANCE_KEY: return read_int(reader, &what->instance_key);
    case JOIN_RANK: return read_int(reader, &what->rank);
    case JOIN_ID: what->id = (uint64_t)value; break;
    case JOIN_ITERATION: what->iteration = value; break;
    case JOIN_SCOPE: what->scope = (uint64_t)value; break;
    case JOIN_STEP_ID: what->step_id = value; break;
    case JOIN_INCARNATION: what->incarnation = (uint64_t)value; break;
    case JOIN_HAS_SHAPE: *has_shape = weir_wire_bool(reader); break;
    case JOIN_DIM: return read_dim(reader, request);
    case JOIN_TIMEOUT_NS:
      what->timeout_ns = value < 0 || value > INT64_MAX / 4 ? INT64_MAX / 4 : value;
      break;
    default: break;
  }
  return NULL;
}

static weir_status_t* read_bytes(weir_rpc_buffer_t* buffer, const weir_wire_reader_t* reader,
                                 weir_collective_request_t* request) {
  if (reader->field == JOIN_DEVICE && !request->device) {
    request->device = weir_strndup(reader->bytes.data, reader->bytes.size);
    if (!request->device) return weir_out_of_memory();
  }
  if (reader->field == JOIN_TENSOR && !request->tensor)
    return weir_message_get_tensor(buffer, reader->bytes, &request->tensor);
  return NULL;
}

// Whether the parts of a request go together.
static weir_status_t* check(const weir_collective_request_t* request, bool has_shape) {
  const weir_collective_t* what = &request->what;
  bool is_broadcast = what->kind == WEIR_COLLECTIVE_BROADCAST;
  bool is_roster = what->wants_roster;
  bool is_sound = request->device && (!is_roster || what->kind == WEIR_COLLECTIVE_REDUCE) &&
                  (!what->is_source || is_broadcast) && (!has_shape || is_broadcast || is_roster) &&
                  (!is_roster || (has_shape && !request->tensor)) &&
                  (!is_broadcast || what->is_source == (request->tensor != NULL)) &&
                  (what->kind == WEIR_COLLECTIVE_GROUP) == (what->dtype == WEIR_DTYPE_INVALID);
  return is_sound ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "no member of a collective asks for that");
}

weir_status_t* weir_collective_read(weir_rpc_buffer_t* buffer, weir_collective_request_t* request) {
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(buffer));
  bool has_shape = false;
  *request = (weir_collective_request_t){.what = {.rank = -1}};
  while (weir_wire_next(&reader)) {
    if (reader.type == WEIR_WIRE_VARINT) WEIR_TRY(read_number(&reader, request, &has_shape));
    if (reader.type == WEIR_WIRE_BYTES) WEIR_TRY(read_bytes(buffer, &reader, request));
  }
  WEIR_TRY(weir_wire_check(&reader, "JoinCollectiveRequest"));
  request->what.device = request->device;
  if (has_shape) request->what.dims = request->dims;
  else request->what.dim_count = 0;
  return check(request, has_shape);
}

void weir_collective_request_free(weir_collective_request_t* request) {
  weir_tensor_release(request->tensor);
  weir_free(request->device);
}

// ---- answers ----

weir_status_t* weir_collective_write_answer(weir_tensor_t* tensor,
                                            weir_rpc_message_t** out_message) {
  weir_message_builder_t builder = {.message = NULL};
  if (tensor) weir_message_put_tensor(&builder, ANSWER_TENSOR, tensor);
  return weir_message_finish(&builder, out_message);
}

weir_status_t* weir_collective_read_answer(weir_rpc_buffer_t* buffer, weir_tensor_t** out_tensor) {
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(buffer));
  weir_view_t proto = {.data = NULL};
  while (weir_wire_next(&reader)) {
    if (reader.field == ANSWER_TENSOR && reader.type == WEIR_WIRE_BYTES) proto = reader.bytes;
  }
  WEIR_TRY(weir_wire_check(&reader, "JoinCollectiveResponse"));
  return proto.data ? weir_message_get_tensor(buffer, proto, out_tensor) : NULL;
}
