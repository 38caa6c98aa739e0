// device.c — What all devices share: references, names, copies that are waited for.
#include "device/device.h"

#include <ctype.h>

#include "base/outcome.h"
#include "base/philox.h"
#include "base/string.h"
#include "device/staging.h"

weir_device_t* weir_device_retain(weir_device_t* device) {
  if (device) weir_ref_inc(&device->ref, 1);
  return device;
}

void weir_device_release(weir_device_t* device) {
  if (device && weir_ref_dec(&device->ref)) device->vtable->destroy(device);
}

weir_status_t* weir_device_init(weir_device_t* device, const char* type,
                                const weir_device_params_t* params) {
  weir_strbuf_t name = {0};
  weir_strbuf_printf(
      &name, "%s/device:%s:%d",
      params->task && *params->task ? params->task : "/job:localhost/replica:0/task:0", type,
      params->index);
  weir_status_t* status = weir_strbuf_finish(&name);
  if (status) {
    weir_strbuf_free(&name);
    return status;
  }
  weir_ref_init(&device->ref);
  device->name = name.data;  // moved
  device->type = device->kernel_type = type;
  device->incarnation = weir_random_entropy();
  device->pool = params->pool;
  return NULL;
}

// ---- events ----

weir_event_t* weir_event_retain(weir_event_t* event) {
  if (event) weir_ref_inc(&event->ref, 1);
  return event;
}

void weir_event_release(weir_event_t* event) {
  if (event && weir_ref_dec(&event->ref)) event->vtable->destroy(event);
}

typedef struct awaited_t {
  weir_notice_t notice;  // first
  weir_outcome_t outcome;
} awaited_t;

static void wake(weir_notice_t* notice) { weir_outcome_set(&((awaited_t*)notice)->outcome, NULL); }

void weir_event_await(weir_event_t* event) {
  awaited_t awaited = {.notice = {.call = wake}};
  weir_outcome_init(&awaited.outcome);
  event->vtable->notify(event, &awaited.notice);
  weir_status_destroy(weir_outcome_wait(&awaited.outcome));  // there is none
}

// ---- copies ----

bool weir_device_is_peer(const weir_device_t* device, const weir_device_t* from) {
  return device != from && device->vtable == from->vtable && device->vtable->copy_peer;
}

// The device whose memory |src| is in, where it is another than |device|; NULL: it is not.
static weir_device_t* source_of(const weir_device_t* device, const weir_tensor_t* src) {
  weir_device_t* from = weir_tensor_space(src)->device;
  return from != device ? from : NULL;
}

static weir_status_t* check_copy(const weir_device_t* device, const weir_tensor_t* src,
                                 const weir_tensor_t* dst) {
  weir_dtype_t dtype = weir_tensor_type(src);
  if (!weir_device_is_host(device) && !weir_dtype_is_plain(dtype))
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: tensors of type %s stay on the host", device->name,
                       weir_dtype_name(dtype));
  const weir_device_t* source = source_of(device, src);
  if (source && !weir_device_is_peer(device, source))
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: cannot copy from the memory of %s", device->name,
                       source->name);
  if (!weir_tensor_is_host(src) && weir_tensor_space(src) == weir_tensor_space(dst))
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: cannot copy within its memory", device->name);
  if (src->dtype == dst->dtype && src->count == dst->count) return NULL;
  char from[WEIR_SHAPE_TEXT_SIZE], to[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "%s: cannot copy %s%s to %s%s", device->name,
                     weir_dtype_name(dtype), weir_tensor_shape_text(src, from),
                     weir_dtype_name(weir_tensor_type(dst)), weir_tensor_shape_text(dst, to));
}

// What |stream| does next comes after the kernels submitted to |other| so far: those that make what
// is copied, and those that still use the memory copied to.
static weir_status_t* order_after_kernels(weir_device_t* device, weir_stream_t stream,
                                          weir_device_t* other) {
  weir_event_t* event = NULL;
  if (!other->vtable->record) return NULL;
  WEIR_TRY(other->vtable->record(other, WEIR_STREAM_COMPUTE, &event));
  weir_status_t* status = device->vtable->wait(device, stream, event);
  weir_event_release(event);
  return status;
}

static bool is_pinned(const weir_device_t* device, const weir_tensor_t* tensor) {
  const weir_tensor_t* owner = tensor->root ? tensor->root : tensor;
  return owner->allocator == weir_device_allocator(device, WEIR_MEMORY_PINNED);
}

static void start_copy(weir_device_t* device, weir_stream_t stream, const weir_tensor_t* src,
                       weir_tensor_t* dst, weir_copy_done_fn_t done, void* arg) {
  weir_device_t* from = source_of(device, src);
  size_t size = weir_tensor_byte_size(src);
  bool is_staged = device->staging && !is_pinned(device, stream == WEIR_STREAM_UPLOAD ? src : dst);
  if (from) device->vtable->copy_peer(device, from, src->data, dst->data, size, done, arg);
  else if (is_staged)
    weir_staging_copy(device->staging, stream, src->data, dst->data, size, done, arg);
  else device->vtable->copy(device, stream, src->data, dst->data, size, done, arg);
}

void weir_device_copy(weir_device_t* device, const weir_tensor_t* src, weir_tensor_t* dst,
                      weir_copy_done_fn_t done, void* arg) {
  weir_stream_t stream = weir_tensor_is_host(dst) ? WEIR_STREAM_DOWNLOAD : WEIR_STREAM_UPLOAD;
  weir_status_t* status = check_copy(device, src, dst);
  if (!status && weir_device_is_host(device))
    status = weir_elements_copy(weir_tensor_type(src), dst->data, src->data, src->count);
  if (status || weir_device_is_host(device) || src->count == 0) {
    done(arg, status);
    return;
  }
  weir_device_t* from = source_of(device, src);
  status = order_after_kernels(device, stream, device);
  if (!status && from) status = order_after_kernels(device, stream, from);
  if (status) done(arg, status);
  else start_copy(device, stream, src, dst, done, arg);
}

weir_status_t* weir_device_host_tensor(weir_device_t* device, weir_dtype_t dtype, int rank,
                                       const int64_t* dims, weir_tensor_t** out_tensor) {
  weir_allocator_t* host = weir_device_allocator(device, WEIR_MEMORY_HOST);
  weir_allocator_t* pinned = weir_device_allocator(device, WEIR_MEMORY_PINNED);
  if (!device->staging || !weir_dtype_is_plain(dtype))
    return weir_tensor_create_in(host, dtype, rank, dims, out_tensor);
  weir_status_t* status = weir_tensor_create_in(pinned, dtype, rank, dims, out_tensor);
  if (weir_status_code(status) != WEIR_RESOURCE_EXHAUSTED) return status;
  weir_status_destroy(status);
  return weir_tensor_create_in(host, dtype, rank, dims, out_tensor);
}

weir_status_t* weir_device_fetch(weir_device_t* device, weir_memory_t memory,
                                 const weir_tensor_t* src, weir_tensor_t** out_tensor) {
  weir_tensor_t* copy = NULL;
  weir_dtype_t dtype = weir_tensor_type(src);
  if (memory == WEIR_MEMORY_HOST)
    WEIR_TRY(weir_device_host_tensor(device, dtype, src->rank, src->dims, &copy));
  else
    WEIR_TRY(weir_tensor_create_in(weir_device_allocator(device, memory), dtype, src->rank,
                                   src->dims, &copy));
  weir_outcome_t outcome;
  weir_outcome_init(&outcome);
  weir_device_copy(device, src, copy, weir_outcome_set, &outcome);
  weir_status_t* status = weir_outcome_wait(&outcome);
  if (status) weir_tensor_release(copy);
  else *out_tensor = copy;
  return status;
}

// ---- names ----

static bool copy_part(weir_view_t part, char* out, size_t capacity) {
  if (part.size == 0 || part.size >= capacity) return false;
  for (size_t i = 0; i < part.size; ++i) {
    unsigned char c = (unsigned char)part.data[i];
    if (!isalnum(c) && c != '_' && c != '-') return false;
  }
  memcpy(out, part.data, part.size);
  out[part.size] = '\0';
  return true;
}

static bool parse_job(weir_view_t value, weir_device_name_t* name) {
  if (weir_view_is(value, "*")) return true;
  return value.size && isalpha((unsigned char)value.data[0]) &&
         copy_part(value, name->job, sizeof(name->job));
}

static bool parse_number(weir_view_t value, int* out_number) {
  int64_t number = 0;
  if (weir_view_is(value, "*")) return true;
  if (!value.size || !isdigit((unsigned char)value.data[0])) return false;
  if (!weir_parse_int64(value, &number) || number > INT32_MAX) return false;
  *out_number = (int)number;
  return true;
}

// "GPU:1", "GPU:*", "GPU", "*".
static bool parse_type(weir_view_t value, weir_device_name_t* name) {
  weir_view_t type;
  if (!weir_view_next(&value, ':', &type)) return false;
  if (!weir_view_is(type, "*")) {
    if (!copy_part(type, name->type, sizeof(name->type))) return false;
    for (char* c = name->type; *c; ++c) *c = (char)toupper((unsigned char)*c);
  }
  return value.data == NULL || parse_number(value, &name->index);
}

static bool parse_part(weir_view_t part, weir_device_name_t* name) {
  weir_view_t value = part;
  weir_view_t key;
  if (!weir_view_next(&value, ':', &key) || value.data == NULL) return false;
  if (weir_view_is(key, "job")) return parse_job(value, name);
  if (weir_view_is(key, "replica")) return parse_number(value, &name->replica);
  if (weir_view_is(key, "task")) return parse_number(value, &name->task);
  if (weir_view_is(key, "device")) return parse_type(value, name);
  bool is_short = weir_view_is(key, "cpu") || weir_view_is(key, "CPU") ||
                  weir_view_is(key, "gpu") || weir_view_is(key, "GPU");
  return is_short && parse_type(part, name);
}

weir_status_t* weir_device_name_parse(weir_view_t text, weir_device_name_t* out_name) {
  weir_device_name_t name = {.job = "", .replica = -1, .task = -1, .type = "", .index = -1};
  weir_view_t rest = text;
  weir_view_t part;
  bool is_good = text.size == 0 || text.data[0] == '/';
  if (is_good && text.size) {
    rest = weir_view(text.data + 1, text.size - 1);
    // "/" alone names nothing, as TensorFlow has it.
    while (is_good && rest.size && weir_view_next(&rest, '/', &part)) {
      is_good = parse_part(part, &name);
    }
  }
  if (!is_good) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Malformed device specification '%.*s'",
                       WEIR_VIEW_ARG(text));
  }
  *out_name = name;
  return NULL;
}

bool weir_device_name_matches(const weir_device_name_t* constraint,
                              const weir_device_name_t* name) {
  if (constraint->job[0] && strcmp(constraint->job, name->job) != 0) return false;
  if (constraint->replica >= 0 && constraint->replica != name->replica) return false;
  if (constraint->task >= 0 && constraint->task != name->task) return false;
  if (constraint->type[0] && strcmp(constraint->type, name->type) != 0) return false;
  return constraint->index < 0 || constraint->index == name->index;
}
