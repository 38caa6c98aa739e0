// device.c — What all devices share: references and names.
#include "device/device.h"

#include <ctype.h>

#include "base/string.h"

weir_device_t* weir_device_retain(weir_device_t* device) {
  if (device) weir_ref_inc(&device->ref, 1);
  return device;
}

void weir_device_release(weir_device_t* device) {
  if (device && weir_ref_dec(&device->ref)) device->vtable->destroy(device);
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
