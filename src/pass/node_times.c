// node_times.c — Node times from Chrome's trace JSON.
#include "pass/node_times.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/string.h"
#include "file/fs.h"
#include "file/roots.h"

typedef struct event_t {
  weir_view_t name;
  const weir_json_t* members;  // nodes that ran as one, by that name; NULL: it was itself
  const char* device;
  bool is_stream;  // what the device did, not what the host did to have it done
  double thread;
  double start, end;  // microseconds
  double bytes;
} event_t;

static bool read_number(const weir_json_t* object, const char* key, double* out_number) {
  const weir_json_t* value = weir_json_find(object, key);
  if (!value || value->kind != WEIR_JSON_NUMBER || !(value->number >= 0)) return false;
  *out_number = value->number;
  return true;
}

static weir_status_t* read_event(const weir_json_t* json, weir_arena_t* arena, event_t* out) {
  const weir_json_t* args = weir_json_find(json, "args");
  const weir_json_t* name = weir_json_find(args, "name");
  const weir_json_t* device = weir_json_find(args, "device");
  double duration = 0;
  *out = (event_t){.device = ""};
  bool is_good = name && name->kind == WEIR_JSON_STRING && read_number(json, "ts", &out->start) &&
                 read_number(json, "dur", &duration);
  if (!is_good)
    return WEIR_STATUS(INVALID_ARGUMENT, "an event of the trace lacks ts, dur or args.name");
  if (!read_number(args, "bytes", &out->bytes)) out->bytes = 0;
  if (!read_number(json, "tid", &out->thread)) out->thread = 0;
  const weir_json_t* members = weir_json_find(args, "members");
  if (members && members->kind == WEIR_JSON_ARRAY && members->count) out->members = members;
  out->is_stream = weir_json_find(args, "stream") != NULL;
  out->name = name->text;
  out->end = out->start + duration;
  if (!device || device->kind != WEIR_JSON_STRING) return NULL;
  out->device = weir_arena_strndup(arena, device->text.data, device->text.size);
  return out->device ? NULL : weir_out_of_memory();
}

static int by_end(const void* a, const void* b) {
  const event_t *x = a, *y = b;
  if (x->is_stream != y->is_stream) return x->is_stream ? -1 : 1;
  int devices = strcmp(x->device, y->device);
  if (devices) return devices;
  if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
  return x->end != y->end ? (x->end > y->end) - (x->end < y->end)
                          : (x->start > y->start) - (x->start < y->start);
}

static weir_status_t* add_node(weir_node_times_t* times, weir_view_t name, const event_t* event,
                               double ns) {
  weir_node_time_t* time = weir_map_find(&times->by_name, name);
  if (!time) {
    time = weir_arena_alloc(&times->arena, sizeof(*time));
    if (!time) return weir_out_of_memory();
    *time = (weir_node_time_t){.device = event->device, .is_stream = event->is_stream};
    WEIR_TRY(weir_map_put(&times->by_name, name, time));
  }
  if (time->is_stream != event->is_stream) return NULL;
  time->ns += ns;
  time->bytes = WEIR_MAX(time->bytes, event->bytes);
  ++time->visits;
  return NULL;
}

// Of nodes that ran as one, each has its share.
static weir_status_t* add(weir_node_times_t* times, const event_t* event, double start) {
  double ns = (event->end - start) * 1e3;
  if (!event->members) return add_node(times, event->name, event, ns);
  ns /= (double)event->members->count;
  for (const weir_json_t* member = event->members->first; member; member = member->next)
    WEIR_TRY(add_node(times, member->text, event, ns));
  return NULL;
}

// Whether the two are of one stream: a device that is not a CPU does what one of its threads is
// given one after the other. What an event waited for the one before is not the node's time.
static bool is_one_stream(const event_t* a, const event_t* b) {
  return *a->device && !strstr(a->device, "/device:CPU:") && strcmp(a->device, b->device) == 0 &&
         a->thread == b->thread && a->is_stream == b->is_stream;
}

// What the streams of devices did comes first, and says how long its nodes took.
static weir_status_t* add_all(weir_node_times_t* times, event_t* events, size_t count) {
  qsort(events, count, sizeof(*events), by_end);
  for (size_t i = 0; i < count; ++i) {
    double start = events[i].start;
    if (i > 0 && is_one_stream(&events[i - 1], &events[i]))
      start = WEIR_MAX(start, events[i - 1].end);
    WEIR_TRY(add(times, &events[i], start));
  }
  return NULL;
}

static bool is_text(const weir_json_t* object, const char* key, const char* text) {
  const weir_json_t* value = weir_json_find(object, key);
  return value && value->kind == WEIR_JSON_STRING && weir_view_is(value->text, text);
}

// Names of threads and counters take no time; that of a result is how long the step waited for a
// GPU.
static weir_status_t* parse(weir_node_times_t* times, weir_view_t json, weir_arena_t* scratch) {
  const weir_json_t* root = NULL;
  WEIR_TRY(weir_json_parse(json, scratch, &root));
  const weir_json_t* list = weir_json_find(root, "traceEvents");
  if (!list || list->kind != WEIR_JSON_ARRAY)
    return WEIR_STATUS(INVALID_ARGUMENT, "the trace has no list 'traceEvents'");
  event_t* events = weir_arena_array(scratch, list->count + 1, sizeof(*events));
  if (!events) return weir_out_of_memory();
  size_t count = 0;
  for (const weir_json_t* item = list->first; item; item = item->next) {
    bool is_node = (!weir_json_find(item, "ph") || is_text(item, "ph", "X")) &&
                   !is_text(item, "name", "_Retval");
    if (is_node) WEIR_TRY(read_event(item, &times->arena, &events[count++]));
  }
  return add_all(times, events, count);
}

weir_status_t* weir_node_times_parse(weir_view_t json, weir_node_times_t** out_times) {
  weir_node_times_t* times = weir_calloc(1, sizeof(*times));
  if (!times) return weir_out_of_memory();
  times->by_name.owns_keys = true;
  weir_arena_t scratch = {0};
  weir_status_t* status = parse(times, json, &scratch);
  weir_arena_free(&scratch);
  if (status) weir_node_times_destroy(times);
  else *out_times = times;
  return status;
}

weir_status_t* weir_node_times_load(const char* path, weir_node_times_t** out_times) {
  weir_strbuf_t text = {0};
  weir_roots_suspend();  // the operator named it, not a graph
  weir_status_t* status = weir_fs_read_all(path, &text);
  weir_roots_resume();
  if (!status) status = weir_node_times_parse(weir_strbuf_view(&text), out_times);
  weir_strbuf_free(&text);
  return status ? weir_status_prefix(status, "trace '%s': ", path) : NULL;
}

void weir_node_times_destroy(weir_node_times_t* times) {
  if (!times) return;
  weir_map_free(&times->by_name);
  weir_arena_free(&times->arena);
  weir_free(times);
}

const weir_node_time_t* weir_node_times_find(const weir_node_times_t* times, const char* name) {
  return times ? weir_map_find(&times->by_name, weir_view_of(name)) : NULL;
}
