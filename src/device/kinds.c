// kinds.c — The kinds of devices there are, and making the devices that a list names.
//
// A new kind is one more row of |kinds|.
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/string.h"
#include "device/device.h"

static const weir_device_kind_t* const kinds[] = {
    &weir_cpu_kind,
    &weir_guard_kind,
    &weir_tight_kind,
#ifndef WEIR_NO_CUDA
    &weir_cuda_kind,
#endif
};

enum { MAX_DEVICES = 64 };

// ---- one item of a list: "guard:2@speed=0.5" ----

typedef struct item_t {
  const weir_device_kind_t* kind;
  int count;
  weir_device_params_t params;
} item_t;

static const weir_device_kind_t* find_kind(weir_view_t name) {
  for (size_t i = 0; i < WEIR_COUNT_OF(kinds); ++i) {
    size_t size = strlen(kinds[i]->name);
    if (size == name.size && strncasecmp(kinds[i]->name, name.data, size) == 0) return kinds[i];
  }
  return NULL;
}

const weir_device_kind_t* weir_device_kind_find(weir_view_t type) {
  for (size_t i = 0; i < WEIR_COUNT_OF(kinds); ++i) {
    if (weir_view_is(type, kinds[i]->type)) return kinds[i];
  }
  return NULL;
}

static bool parse_positive(weir_view_t text, double* out_value) {
  char digits[32];
  char* end = NULL;
  if (text.size == 0 || text.size >= sizeof(digits)) return false;
  memcpy(digits, text.data, text.size);
  digits[text.size] = '\0';
  *out_value = strtod(digits, &end);
  return *end == '\0' && isfinite(*out_value) && *out_value > 0;
}

static bool parse_option(weir_view_t option, weir_device_params_t* params) {
  weir_view_t key;
  if (weir_view_is(option, "staged")) return params->is_staged = true;
  if (!weir_view_next(&option, '=', &key)) return false;
  if (weir_view_is(key, "tf32")) {
    params->is_ieee = weir_view_is(option, "0");
    return params->is_ieee || weir_view_is(option, "1");
  }
  if (weir_view_is(key, "deterministic")) {
    params->is_deterministic = weir_view_is(option, "1");
    return params->is_deterministic || weir_view_is(option, "0");
  }
  if (weir_view_is(key, "speed")) return parse_positive(option, &params->speed);
  if (weir_view_is(key, "bandwidth")) return parse_positive(option, &params->bandwidth);
  return weir_view_is(key, "memory") && parse_positive(option, &params->memory) &&
         params->memory >= 1;
}

static weir_status_t* parse_item(weir_view_t text, item_t* out) {
  weir_view_t rest = weir_view_trim(text), head, name, option;
  *out = (item_t){.count = 1, .params = {.speed = 1}};
  bool is_good = weir_view_next(&rest, '@', &head) && weir_view_next(&head, ':', &name);
  if (is_good) out->kind = find_kind(name);
  if (is_good && !out->kind)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "'%.*s' is no kind of device; there are cpu, cuda (unless it was left out "
                       "of the build), guard and tight",
                       WEIR_VIEW_ARG(name));
  int64_t count = 1;
  if (is_good && head.size) is_good = weir_parse_int64(head, &count) && count > 0;
  while (is_good && rest.size && weir_view_next(&rest, '@', &option))
    is_good = parse_option(option, &out->params);
  if (!is_good || count > MAX_DEVICES)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "'%.*s' does not say which devices: KIND[:COUNT][@speed=X][@bandwidth=X]"
                       "[@memory=BYTES][@tf32=0][@deterministic=1][@staged], at most %d",
                       WEIR_VIEW_ARG(text), MAX_DEVICES);
  out->count = (int)count;
  return NULL;
}

// ---- the list ----

typedef struct maker_t {
  const char* task;
  weir_pool_t* pool;
  weir_device_t** devices;
  int count;
  int by_kind[WEIR_COUNT_OF(kinds)];
} maker_t;

static weir_status_t* add(maker_t* maker, const item_t* item) {
  size_t kind = 0;
  while (kind + 1 < WEIR_COUNT_OF(kinds) && kinds[kind] != item->kind) ++kind;
  for (int i = 0; i < item->count; ++i) {
    weir_device_params_t params = item->params;
    params.task = maker->task;
    params.pool = maker->pool;
    params.index = maker->by_kind[kind]++;
    if (maker->count == MAX_DEVICES)
      return WEIR_STATUS(INVALID_ARGUMENT, "more than %d devices", MAX_DEVICES);
    WEIR_TRY(item->kind->create(&params, &maker->devices[maker->count]));
    maker->devices[maker->count]->ordinal = maker->count;
    ++maker->count;
  }
  return NULL;
}

// CPUs in a first sweep, the others in a second.
static weir_status_t* add_all(maker_t* maker, const char* spec, bool are_cpus) {
  weir_view_t rest = weir_view_of(spec), text;
  while (rest.size && weir_view_next(&rest, ',', &text)) {
    item_t item;
    WEIR_TRY(parse_item(text, &item));
    if ((item.kind == &weir_cpu_kind) == are_cpus) WEIR_TRY(add(maker, &item));
  }
  item_t one = {.kind = &weir_cpu_kind, .count = 1};
  return are_cpus && maker->count == 0 ? add(maker, &one) : NULL;
}

weir_status_t* weir_devices_create(const char* spec, const char* task, weir_pool_t* pool,
                                   weir_device_t*** out_devices, int* out_count) {
  maker_t maker = {.task = task, .pool = pool};
  maker.devices = weir_calloc(MAX_DEVICES, sizeof(*maker.devices));
  if (!maker.devices) return weir_out_of_memory();
  weir_status_t* status = add_all(&maker, spec ? spec : "", true);
  if (!status) status = add_all(&maker, spec ? spec : "", false);
  if (status) {
    weir_devices_release(maker.devices, maker.count);
    return status;
  }
  *out_devices = maker.devices;
  *out_count = maker.count;
  return NULL;
}

void weir_devices_release(weir_device_t** devices, int count) {
  for (int i = 0; i < count; ++i) weir_device_release(devices[i]);
  weir_free(devices);
}
