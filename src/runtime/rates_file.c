// rates_file.c — Lines of keys and numbers.
#include "runtime/rates_file.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "file/fs.h"
#include "file/roots.h"
#include "runtime/rates.h"

enum { MAX_TASKS = 64 };

typedef struct field_t {
  const char* key;
  size_t offset;       // in weir_rates_t
  bool is_divided_by;  // and so not 0
} field_t;

#define FIELD(key, ...) \
  { #key, offsetof(weir_rates_t, key), __VA_ARGS__ }
static const field_t fields[] = {
    FIELD(flops, true),     FIELD(bytes, true),        FIELD(node_ns, false),
    FIELD(delay_ns, false), FIELD(submit_ns, false),   FIELD(copy_bytes, true),
    FIELD(copy_ns, false),  FIELD(message_ns, false),  FIELD(step_ns, false),
    FIELD(large_ns, false), FIELD(small_bytes, false), FIELD(speed, true),
};
#undef FIELD

static double* number_of(weir_rates_t* rates, const field_t* field) {
  return (double*)((char*)rates + field->offset);
}

static const char* short_name(const weir_runtime_t* runtime, int device) {
  return weir_device_short_name(runtime->devices[device]->name);
}

static int find_device(const weir_runtime_t* runtime, weir_view_t name) {
  int i = 0;
  while (i < runtime->device_count && !weir_view_is(name, short_name(runtime, i))) ++i;
  return i;
}

// ---- reading ----

static bool parse_number(weir_view_t text, bool may_be_zero, double* out_number) {
  char digits[64];
  char* end = NULL;
  if (text.size == 0 || text.size >= sizeof(digits)) return false;
  memcpy(digits, text.data, text.size);
  digits[text.size] = '\0';
  *out_number = strtod(digits, &end);
  return *end == '\0' && isfinite(*out_number) && *out_number >= 0 &&
         (may_be_zero || *out_number > 0);
}

static weir_status_t* parse_item(weir_view_t item, weir_rates_t* rates, bool* is_given) {
  weir_view_t rest = item, key;
  if (!weir_view_next(&rest, '=', &key)) key = item;
  for (size_t i = 0; i < WEIR_COUNT_OF(fields); ++i) {
    if (!weir_view_is(key, fields[i].key)) continue;
    if (is_given[i]) return WEIR_STATUS(INVALID_ARGUMENT, "%s= is there twice", fields[i].key);
    is_given[i] = true;
    if (parse_number(rest, !fields[i].is_divided_by, number_of(rates, &fields[i]))) return NULL;
    return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' is no rate", WEIR_VIEW_ARG(item));
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' is not among the rates of a device",
                     WEIR_VIEW_ARG(item));
}

static weir_status_t* check_complete(const weir_rates_t* rates) {
  for (size_t i = 0; i < WEIR_COUNT_OF(fields); ++i) {
    bool is_missing = *number_of((weir_rates_t*)rates, &fields[i]) == 0;
    if (is_missing && fields[i].is_divided_by)
      return WEIR_STATUS(INVALID_ARGUMENT, "%s= is missing", fields[i].key);
  }
  return NULL;
}

// What stands behind the name of a device.
static weir_status_t* parse_items(weir_view_t line, weir_rates_t* rates) {
  weir_view_t item;
  bool is_given[WEIR_COUNT_OF(fields)] = {false};
  rates->speed = 1;
  while (line.size && weir_view_next(&line, ' ', &item)) {
    if (item.size) WEIR_TRY(parse_item(item, rates, is_given));
  }
  return check_complete(rates);
}

// False where the line says nothing.
static bool take_name(weir_view_t* line, weir_view_t* out_name) {
  *line = weir_view_trim(*line);
  return line->size && line->data[0] != '#' && weir_view_next(line, ' ', out_name);
}

static weir_status_t* parse_line(weir_view_t line, const weir_runtime_t* runtime,
                                 weir_rates_t* out_rates, bool* is_found) {
  weir_rates_t other = {0};  // of a device that is not here
  weir_view_t name;
  if (!take_name(&line, &name)) return NULL;
  int device = find_device(runtime, name);
  bool is_here = device < runtime->device_count;
  if (is_here && is_found[device])
    return WEIR_STATUS(INVALID_ARGUMENT, "%.*s is there twice", WEIR_VIEW_ARG(name));
  if (is_here) is_found[device] = true;
  return parse_items(line, is_here ? &out_rates[device] : &other);
}

static weir_status_t* parse_lines(weir_view_t text, const weir_runtime_t* runtime,
                                  weir_rates_t* out_rates, bool* is_found) {
  weir_view_t line;
  for (int number = 1; text.size && weir_view_next(&text, '\n', &line); ++number) {
    weir_status_t* status = parse_line(line, runtime, out_rates, is_found);
    if (status) return weir_status_prefix(status, "line %d: ", number);
  }
  for (int i = 0; i < runtime->device_count; ++i) {
    if (!is_found[i])
      return WEIR_STATUS(NOT_FOUND, "nothing is said of %s", short_name(runtime, i));
  }
  return NULL;
}

weir_status_t* weir_rates_parse(weir_view_t text, const weir_runtime_t* runtime,
                                weir_rates_t* out_rates) {
  bool* is_found = weir_calloc((size_t)runtime->device_count, sizeof(*is_found));
  if (!is_found) return weir_out_of_memory();
  weir_rates_init(runtime, out_rates);
  weir_status_t* status = parse_lines(text, runtime, out_rates, is_found);
  weir_free(is_found);
  return status;
}

weir_status_t* weir_rates_load(const char* path, const weir_runtime_t* runtime,
                               weir_rates_t* out_rates) {
  weir_strbuf_t text = {0};
  weir_roots_suspend();  // the operator named it, not a graph
  weir_status_t* status = weir_fs_read_all(path, &text);
  weir_roots_resume();
  if (!status) status = weir_rates_parse(weir_strbuf_view(&text), runtime, out_rates);
  weir_strbuf_free(&text);
  return status ? weir_status_prefix(status, "rates '%s': ", path) : NULL;
}

// ---- clusters ----

static weir_status_t* add_task(weir_view_t line, weir_view_t name, weir_arena_t* arena, int index,
                               weir_placement_t* out) {
  weir_device_name_t parsed;
  WEIR_TRY(weir_device_name_parse(name, &parsed));
  if (!parsed.job[0] || parsed.task < 0 || strcmp(parsed.type, "CPU") != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "'%.*s' is not the full name of a task's CPU",
                       WEIR_VIEW_ARG(name));
  *out = (weir_placement_t){.device = weir_arena_strndup(arena, name.data, name.size),
                            .type = "CPU",
                            .task = index,
                            .rates = {.is_host = index == 0,
                                      .processor = index,
                                      .executor = index * WEIR_LANES + WEIR_LANE_EXECUTOR}};
  return out->device ? parse_items(line, &out->rates) : weir_out_of_memory();
}

static weir_status_t* parse_cluster(weir_view_t text, weir_arena_t* arena,
                                    weir_placement_t* devices, int* out_count) {
  weir_view_t line, name;
  *out_count = 0;
  for (int number = 1; text.size && weir_view_next(&text, '\n', &line); ++number) {
    if (!take_name(&line, &name)) continue;
    if (*out_count == MAX_TASKS)
      return WEIR_STATUS(INVALID_ARGUMENT, "more than %d tasks", MAX_TASKS);
    weir_status_t* status = add_task(line, name, arena, *out_count, &devices[*out_count]);
    if (status) return weir_status_prefix(status, "line %d: ", number);
    ++*out_count;
  }
  return *out_count ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "there is no task in it");
}

weir_status_t* weir_cluster_rates_load(const char* path, weir_arena_t* arena,
                                       weir_placement_t** out_devices, int* out_count) {
  weir_strbuf_t text = {0};
  weir_placement_t* devices = weir_arena_array(arena, MAX_TASKS, sizeof(*devices));
  weir_roots_suspend();  // the operator named it, not a graph
  weir_status_t* status = devices ? weir_fs_read_all(path, &text) : weir_out_of_memory();
  weir_roots_resume();
  if (!status) status = parse_cluster(weir_strbuf_view(&text), arena, devices, out_count);
  weir_strbuf_free(&text);
  *out_devices = devices;
  return status ? weir_status_prefix(status, "cluster '%s': ", path) : NULL;
}

// ---- writing ----

void weir_rates_print(const weir_runtime_t* runtime, const weir_rates_t* rates,
                      weir_strbuf_t* out) {
  for (int i = 0; i < runtime->device_count; ++i) {
    weir_strbuf_puts(out, short_name(runtime, i));
    for (size_t k = 0; k < WEIR_COUNT_OF(fields); ++k) {
      double number = *number_of((weir_rates_t*)&rates[i], &fields[k]);
      weir_strbuf_printf(out, " %s=%.6g", fields[k].key, number);
    }
    weir_strbuf_putc(out, '\n');
  }
}
