// refresh.c — Looks at a model's folder: new versions are loaded before old ones go.
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/map.h"
#include "file/fs.h"
#include "serving/batch.h"
#include "serving/catalog_internal.h"

static const int64_t retry_after_ns = INT64_C(60000000000);

// ---- what there is ----

typedef struct number_t {
  int64_t number;
  char name[24];  // of its folder: "7", "00000007"
} number_t;
typedef struct found_t {
  number_t* items;  // newest first
  size_t count, capacity;
  bool is_model;  // the folder is no list of versions but a model: version 1
} found_t;

static weir_status_t* join_path(const char* folder, const char* name, char** out_path) {
  weir_strbuf_t path = {0};
  weir_strbuf_printf(&path, "%s/%s", folder, name);
  weir_status_t* status = weir_strbuf_finish(&path);
  if (status) weir_strbuf_free(&path);
  else *out_path = path.data;
  return status;
}

static bool has_file(const char* folder, const char* name) {
  char* path = NULL;
  weir_status_t* status = join_path(folder, name, &path);
  bool is_there = !status && weir_fs_exists(path);
  weir_status_destroy(status);
  weir_free(path);
  return is_there;
}

// A folder that holds a model's graph, or a file that is one.
static bool is_model(const char* path, const weir_file_info_t* info) {
  return !info->is_directory || has_file(path, "saved_model.pb") ||
         has_file(path, "saved_model.pbtxt");
}

static weir_status_t* add_number(found_t* found, int64_t number, const char* name) {
  if (!WEIR_GROW(found->items, found->capacity, found->count + 1)) return weir_out_of_memory();
  size_t at = found->count++;
  for (; at > 0 && found->items[at - 1].number < number; --at)
    found->items[at] = found->items[at - 1];
  found->items[at].number = number;
  snprintf(found->items[at].name, sizeof(found->items[at].name), "%s", name);
  return NULL;
}

// Versions are named by numbers without a sign.
static bool is_version(const char* name, int64_t* out_number) {
  weir_view_t text = weir_view_of(name);
  return text.size > 0 && text.size < sizeof(((number_t*)0)->name) && name[0] >= '0' &&
         name[0] <= '9' && weir_parse_int64(text, out_number);
}

static bool has_number(const found_t* found, int64_t number) {
  for (size_t i = 0; i < found->count; ++i) {
    if (found->items[i].number == number) return true;
  }
  return false;
}

static weir_status_t* find_versions(const char* path, found_t* found) {
  weir_file_info_t info;
  weir_names_t names = {0};
  int64_t number = 0;
  WEIR_TRY(weir_fs_info(path, &info));
  found->is_model = is_model(path, &info);
  if (found->is_model) return add_number(found, 1, "1");
  weir_status_t* status = weir_fs_list(path, &names);
  for (size_t i = 0; i < names.count && !status; ++i) {
    if (is_version(names.items[i], &number) && !has_number(found, number))
      status = add_number(found, number, names.items[i]);
  }
  weir_names_free(&names);
  return status;
}

// ---- slots ----

static void drop_slot(weir_served_model_t* model, size_t index) {
  weir_slot_t* slot = &model->slots[index];
  weir_status_destroy(slot->failure);
  weir_free(slot->path);
  memmove(slot, slot + 1, (model->slot_count - index - 1) * sizeof(*slot));
  --model->slot_count;
}

static weir_status_t* version_path(const weir_served_model_t* model, const found_t* found,
                                   const char* name, char** out_path) {
  if (!found->is_model) return join_path(model->path, name, out_path);
  *out_path = weir_strdup(model->path);
  return *out_path ? NULL : weir_out_of_memory();
}

static weir_status_t* add_slot(weir_served_model_t* model, const found_t* found, size_t index) {
  int64_t number = found->items[index].number;
  size_t at = 0;
  while (at < model->slot_count && model->slots[at].number > number) ++at;
  if (at < model->slot_count && model->slots[at].number == number) {
    model->slots[at].is_present = true;
    return NULL;
  }
  weir_slot_t slot = {.number = number, .state = WEIR_VERSION_START, .is_present = true};
  if (!WEIR_GROW(model->slots, model->slot_capacity, model->slot_count + 1))
    return weir_out_of_memory();
  WEIR_TRY(version_path(model, found, found->items[index].name, &slot.path));
  memmove(&model->slots[at + 1], &model->slots[at], (model->slot_count - at) * sizeof(slot));
  model->slots[at] = slot;
  ++model->slot_count;
  return NULL;
}

// Brings the slots into line with what was found. Those that are gone and do not serve are dropped.
static weir_status_t* note_found(weir_catalog_t* catalog, weir_served_model_t* model,
                                 const found_t* found) {
  weir_status_t* status = NULL;
  weir_mutex_lock(&catalog->mu);
  for (size_t i = 0; i < model->slot_count; ++i) model->slots[i].is_present = false;
  for (size_t i = 0; i < found->count && !status; ++i) status = add_slot(model, found, i);
  for (size_t i = model->slot_count; i-- > 0 && !status;) {
    if (!model->slots[i].is_present && !model->slots[i].version) drop_slot(model, i);
  }
  weir_mutex_unlock(&catalog->mu);
  return status;
}

static void set_state(weir_catalog_t* catalog, weir_slot_t* slot, weir_version_state_t state,
                      weir_version_t* take_version, weir_status_t* take_failure) {
  weir_mutex_lock(&catalog->mu);
  weir_status_destroy(slot->failure);
  slot->state = state;
  slot->version = take_version;
  slot->failure = take_failure;
  weir_mutex_unlock(&catalog->mu);
}

// ---- loading ----

// Changes when the files do: of a copy under way more come, or grow.
static uint64_t print_files(const char* folder) {
  static const char* const names[] = {"",
                                      "/saved_model.pb",
                                      "/saved_model.pbtxt",
                                      "/variables",
                                      "/variables/variables.index",
                                      "/variables/variables.data-00000-of-00001",
                                      "/assets"};
  uint64_t print = 0;
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    weir_strbuf_t path = {0};
    weir_file_info_t info = {.size = 0};
    weir_strbuf_printf(&path, "%s%s", folder, names[i]);
    weir_status_t* status = weir_strbuf_finish(&path);
    if (!status) status = weir_fs_info(path.data, &info);
    if (!status) print = weir_hash_mix(print ^ info.size ^ (uint64_t)info.modified_us << 8) + i;
    weir_status_destroy(status);  // not there: that, too, makes a difference
    weir_strbuf_free(&path);
  }
  return print;
}

static weir_status_t* load(weir_catalog_t* catalog, const weir_served_model_t* model,
                           const weir_slot_t* slot, weir_version_t** out_version) {
  weir_model_options_t options = {.session.threads = catalog->options.threads};
  weir_version_t* version = weir_calloc(1, sizeof(*version));
  if (!version) return weir_out_of_memory();
  weir_ref_init(&version->ref);
  version->number = slot->number;
  version->model_name = model->name;
  weir_status_t* status = weir_model_load(slot->path, &options, &version->model);
  if (!status && catalog->options.batching)
    status = weir_lanes_create(catalog->options.batching, &version->lanes);
  if (!status)
    status = weir_version_warm_up(version, slot->path, catalog->options.warms_with_zeros);
  if (status) weir_version_release(version);
  else *out_version = version;
  return status;
}

static bool is_due(const weir_slot_t* slot) {
  if (slot->version || !slot->is_present) return false;
  if (!slot->failure) return true;
  return weir_clock_ns() >= slot->retry_ns || print_files(slot->path) != slot->print;
}

static void try_load(weir_catalog_t* catalog, const weir_served_model_t* model, weir_slot_t* slot) {
  weir_version_t* version = NULL;
  uint64_t print = print_files(slot->path);
  set_state(catalog, slot, WEIR_VERSION_LOADING, NULL, NULL);
  weir_status_t* status = load(catalog, model, slot, &version);
  if (status) {
    WEIR_LOG(ERROR, "model '%s' version %" PRId64 " does not load: %s", model->name, slot->number,
             weir_status_message(status));
    slot->print = print;
    slot->retry_ns = weir_clock_ns() + retry_after_ns;
    set_state(catalog, slot, WEIR_VERSION_END, NULL, status);
    return;
  }
  WEIR_LOG(INFO, "model '%s' version %" PRId64 " serves", model->name, slot->number);
  set_state(catalog, slot, WEIR_VERSION_AVAILABLE, version, NULL);
}

static void retire(weir_catalog_t* catalog, const weir_served_model_t* model, weir_slot_t* slot) {
  weir_version_t* version = slot->version;
  WEIR_LOG(INFO, "model '%s' version %" PRId64 " retires", model->name, slot->number);
  set_state(catalog, slot, WEIR_VERSION_UNLOADING, NULL, NULL);
  weir_version_release(version);  // now, or when the last of its requests ends
  set_state(catalog, slot, WEIR_VERSION_END, NULL, NULL);
}

weir_status_t* weir_served_model_refresh(weir_catalog_t* catalog, weir_served_model_t* model) {
  found_t found = {.items = NULL};
  weir_status_t* status = find_versions(model->path, &found);
  if (!status) status = note_found(catalog, model, &found);
  weir_free(found.items);
  if (status) return status;
  int keep = catalog->options.keep, serving = 0;
  for (size_t i = 0; i < model->slot_count && (keep < 0 || serving < keep); ++i) {
    weir_slot_t* slot = &model->slots[i];
    // What was retired comes back only where newer ones are gone.
    if (is_due(slot)) try_load(catalog, model, slot);
    if (slot->version && slot->is_present) ++serving;
  }
  // The last one that serves stays, whatever became of its folder.
  int kept = 0;
  for (size_t i = 0; i < model->slot_count && serving > 0; ++i) {
    weir_slot_t* slot = &model->slots[i];
    if (!slot->version) continue;
    if (slot->is_present && (keep < 0 || kept < keep)) ++kept;
    else retire(catalog, model, slot);
  }
  return NULL;
}
