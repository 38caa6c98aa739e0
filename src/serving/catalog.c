// catalog.c — Which models are served, and who gets which version.
#include "serving/catalog.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/log.h"
#include "serving/batch.h"
#include "serving/catalog_internal.h"

enum { POLL_MS = 1000 };

void weir_version_release(weir_version_t* version) {
  if (!version || !weir_ref_dec(&version->ref)) return;
  weir_lanes_destroy(version->lanes);
  weir_model_destroy(version->model);
  weir_free(version);
}

const char* weir_version_state_name(weir_version_state_t state) {
  switch (state) {
    case WEIR_VERSION_START: return "START";
    case WEIR_VERSION_LOADING: return "LOADING";
    case WEIR_VERSION_AVAILABLE: return "AVAILABLE";
    case WEIR_VERSION_UNLOADING: return "UNLOADING";
    case WEIR_VERSION_END: return "END";
    case WEIR_VERSION_UNKNOWN: break;
  }
  return "UNKNOWN";
}

// ---- what it is told ----

weir_status_t* weir_catalog_create(const weir_catalog_options_t* options,
                                   weir_catalog_t** out_catalog) {
  weir_catalog_t* catalog = weir_calloc(1, sizeof(*catalog));
  if (!catalog) return weir_out_of_memory();
  catalog->options = *options;
  if (catalog->options.keep == 0) catalog->options.keep = 1;
  if (catalog->options.poll_ms == 0) catalog->options.poll_ms = POLL_MS;
  weir_mutex_init(&catalog->mu);
  weir_cond_init(&catalog->cond);
  *out_catalog = catalog;
  return NULL;
}

static weir_served_model_t* find_model(const weir_catalog_t* catalog, weir_view_t name) {
  for (size_t i = 0; i < catalog->model_count; ++i) {
    if (weir_view_is(name, catalog->models[i].name)) return &catalog->models[i];
  }
  return NULL;
}

static bool is_model_name(weir_view_t name) {
  for (size_t i = 0; i < name.size; ++i) {
    if (strchr("/:?#%\"\\", name.data[i]) || (unsigned char)name.data[i] <= 0x20) return false;
  }
  return name.size > 0 && !weir_view_is(name, ".") && !weir_view_is(name, "..");
}

// "NAME=DIR"; or "DIR", named by its last part.
static void split_spec(const char* spec, weir_view_t* out_name, weir_view_t* out_path) {
  const char* equals = strchr(spec, '=');
  const char* slash = strchr(spec, '/');
  *out_path = weir_view_of(spec);
  if (equals && (!slash || equals < slash)) {
    *out_name = weir_view(spec, (size_t)(equals - spec));
    *out_path = weir_view_of(equals + 1);
    return;
  }
  weir_view_t path = *out_path;
  while (path.size > 1 && path.data[path.size - 1] == '/') --path.size;
  const char* last = path.size > 0 ? memrchr(path.data, '/', path.size) : NULL;
  *out_name = last ? weir_view(last + 1, (size_t)(path.data + path.size - last) - 1) : path;
}

weir_status_t* weir_catalog_add(weir_catalog_t* catalog, const char* spec) {
  weir_view_t name, path;
  split_spec(spec, &name, &path);
  if (!is_model_name(name) || path.size == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "model '%s': not NAME=DIR, and no name for it in a URL",
                       spec);
  if (find_model(catalog, name))
    return WEIR_STATUS(ALREADY_EXISTS, "there are two models named '%.*s'", WEIR_VIEW_ARG(name));
  if (!WEIR_GROW(catalog->models, catalog->model_capacity, catalog->model_count + 1))
    return weir_out_of_memory();
  weir_served_model_t model = {.name = weir_strndup(name.data, name.size),
                               .path = weir_strndup(path.data, path.size)};
  if (model.name && model.path) {
    catalog->models[catalog->model_count++] = model;
    return NULL;
  }
  weir_free(model.name);
  weir_free(model.path);
  return weir_out_of_memory();
}

weir_status_t* weir_catalog_add_label(weir_catalog_t* catalog, const char* spec) {
  weir_view_t rest = weir_view_of(spec), left = {0};
  weir_label_t label = {.model = NULL};
  bool is_good = weir_view_next(&rest, '=', &left) && weir_parse_int64(rest, &label.number);
  const char* slash = is_good && left.size ? memchr(left.data, '/', left.size) : NULL;
  weir_view_t model = slash ? weir_view(left.data, (size_t)(slash - left.data)) : weir_view("", 0);
  if (slash) left = weir_view(slash + 1, left.size - model.size - 1);
  if (!is_good || left.size == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "label '%s': not [MODEL/]NAME=VERSION", spec);
  if (!WEIR_GROW(catalog->labels, catalog->label_capacity, catalog->label_count + 1))
    return weir_out_of_memory();
  label.name = weir_strndup(left.data, left.size);
  if (slash) label.model = weir_strndup(model.data, model.size);
  catalog->labels[catalog->label_count++] = label;
  return label.name && (!slash || label.model) ? NULL : weir_out_of_memory();
}

// ---- the thread that looks ----

static void* look_again(void* arg) {
  weir_catalog_t* catalog = arg;
  weir_mutex_lock(&catalog->mu);
  while (!catalog->is_ending) {
    int64_t next_ns = weir_clock_ns() + catalog->options.poll_ms * INT64_C(1000000);
    while (!catalog->is_ending && weir_cond_wait_until(&catalog->cond, &catalog->mu, next_ns))
      continue;
    if (catalog->is_ending) break;
    weir_mutex_unlock(&catalog->mu);
    for (size_t i = 0; i < catalog->model_count; ++i) {
      weir_status_t* status = weir_served_model_refresh(catalog, &catalog->models[i]);
      if (status)
        WEIR_LOG(WARNING, "model '%s': %s", catalog->models[i].name, weir_status_message(status));
      weir_status_destroy(status);
    }
    weir_mutex_lock(&catalog->mu);
  }
  weir_mutex_unlock(&catalog->mu);
  return NULL;
}

// At the start a model must serve, or it is said why it does not.
static weir_status_t* load_first(weir_catalog_t* catalog, weir_served_model_t* model) {
  weir_status_t* status = weir_served_model_refresh(catalog, model);
  if (status) return weir_status_prefix(status, "model '%s': ", model->name);
  for (size_t i = 0; i < model->slot_count; ++i) {
    if (model->slots[i].version) return NULL;
  }
  for (size_t i = 0; i < model->slot_count; ++i) {
    if (!model->slots[i].failure) continue;
    return weir_status_prefix(weir_status_copy(model->slots[i].failure),
                              "model '%s' version %" PRId64 ": ", model->name,
                              model->slots[i].number);
  }
  return WEIR_STATUS(NOT_FOUND,
                     "model '%s': '%s' has no versions (folders named 1, 2, …) and is no model",
                     model->name, model->path);
}

weir_status_t* weir_catalog_start(weir_catalog_t* catalog) {
  for (size_t i = 0; i < catalog->label_count; ++i) {
    const char* name = catalog->labels[i].model;
    if (name ? !find_model(catalog, weir_view_of(name)) : catalog->model_count != 1)
      return WEIR_STATUS(INVALID_ARGUMENT, "label '%s': there is no model '%s'",
                         catalog->labels[i].name, name ? name : "(several)");
  }
  for (size_t i = 0; i < catalog->model_count; ++i)
    WEIR_TRY(load_first(catalog, &catalog->models[i]));
  if (catalog->options.poll_ms < 0) return NULL;
  int error = pthread_create(&catalog->thread, NULL, look_again, catalog);
  if (error) return WEIR_STATUS(RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error));
  catalog->has_thread = true;
  return NULL;
}

static void free_model(weir_served_model_t* model) {
  for (size_t i = 0; i < model->slot_count; ++i) {
    weir_version_release(model->slots[i].version);
    weir_status_destroy(model->slots[i].failure);
    weir_free(model->slots[i].path);
  }
  weir_free(model->slots);
  weir_free(model->name);
  weir_free(model->path);
}

void weir_catalog_destroy(weir_catalog_t* catalog) {
  if (!catalog) return;
  weir_mutex_lock(&catalog->mu);
  catalog->is_ending = true;
  weir_cond_broadcast(&catalog->cond);
  weir_mutex_unlock(&catalog->mu);
  if (catalog->has_thread) pthread_join(catalog->thread, NULL);
  for (size_t i = 0; i < catalog->model_count; ++i) free_model(&catalog->models[i]);
  for (size_t i = 0; i < catalog->label_count; ++i) {
    weir_free(catalog->labels[i].model);
    weir_free(catalog->labels[i].name);
  }
  weir_free(catalog->models);
  weir_free(catalog->labels);
  weir_cond_destroy(&catalog->cond);
  weir_mutex_destroy(&catalog->mu);
  weir_free(catalog);
}

// ---- who gets what ----

// The version that a label stands for. False: there is no such label.
static bool find_label(const weir_catalog_t* catalog, const weir_model_spec_t* spec,
                       int64_t* out_number) {
  for (size_t i = 0; i < catalog->label_count; ++i) {
    const weir_label_t* label = &catalog->labels[i];
    if (label->model && !weir_view_is(spec->name, label->model)) continue;
    if (!weir_view_is(spec->label, label->name)) continue;
    *out_number = label->number;
    return true;
  }
  return false;
}

// What is asked for of |model|: a number, or the newest.
static weir_status_t* wanted_version(const weir_catalog_t* catalog, const weir_model_spec_t* spec,
                                     bool* out_is_any, int64_t* out_number) {
  *out_is_any = !spec->has_version && spec->label.size == 0;
  *out_number = spec->version;
  if (spec->has_version && spec->label.size > 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "a version and a label were asked for: only one may be");
  if (spec->label.size > 0 && !find_label(catalog, spec, out_number))
    return WEIR_STATUS(INVALID_ARGUMENT, "Unrecognized servable version label: %.*s",
                       (int)WEIR_MIN(spec->label.size, (size_t)200), spec->label.data);
  return NULL;
}

weir_status_t* weir_catalog_find(weir_catalog_t* catalog, const weir_model_spec_t* spec,
                                 weir_version_t** out_version) {
  bool is_any = false;
  int64_t number = 0;
  int name_size = (int)WEIR_MIN(spec->name.size, (size_t)200);
  if (spec->name.size == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Missing ModelSpec: no model name");
  weir_served_model_t* model = find_model(catalog, spec->name);
  if (model) WEIR_TRY(wanted_version(catalog, spec, &is_any, &number));
  weir_version_t* found = NULL;
  weir_mutex_lock(&catalog->mu);
  for (size_t i = 0; model && i < model->slot_count && !found; ++i) {
    weir_slot_t* slot = &model->slots[i];
    if (slot->version && (is_any || slot->number == number)) found = slot->version;
  }
  if (found) weir_ref_inc(&found->ref, 1);
  weir_mutex_unlock(&catalog->mu);
  *out_version = found;
  if (found) return NULL;
  if (is_any || !model)
    return WEIR_STATUS(NOT_FOUND, "Servable not found for request: Latest(%.*s)", name_size,
                       spec->name.data);
  return WEIR_STATUS(NOT_FOUND, "Servable not found for request: Specific(%.*s, %" PRId64 ")",
                     name_size, spec->name.data, number);
}

weir_status_t* weir_catalog_visit(weir_catalog_t* catalog, const weir_model_spec_t* spec,
                                  weir_version_fn_t visit, void* arg) {
  bool is_any = false;
  int64_t number = 0;
  int seen = 0;
  weir_served_model_t* model = find_model(catalog, spec->name);
  if (model) WEIR_TRY(wanted_version(catalog, spec, &is_any, &number));
  weir_mutex_lock(&catalog->mu);
  for (size_t i = 0; model && i < model->slot_count; ++i) {
    const weir_slot_t* slot = &model->slots[i];
    if (!is_any && slot->number != number) continue;
    visit(arg, slot->number, slot->state, weir_status_code(slot->failure),
          weir_status_message(slot->failure));
    ++seen;
  }
  weir_mutex_unlock(&catalog->mu);
  if (seen > 0) return NULL;
  return WEIR_STATUS(NOT_FOUND, "Could not find any versions of model %.*s",
                     (int)WEIR_MIN(spec->name.size, (size_t)200), spec->name.data);
}

bool weir_catalog_is_ready(weir_catalog_t* catalog) {
  bool is_ready = true;
  weir_mutex_lock(&catalog->mu);
  for (size_t i = 0; i < catalog->model_count; ++i) {
    bool serves = false;
    for (size_t k = 0; k < catalog->models[i].slot_count; ++k)
      serves |= catalog->models[i].slots[k].version != NULL;
    is_ready &= serves;
  }
  weir_mutex_unlock(&catalog->mu);
  return is_ready;
}

void weir_catalog_cancel(weir_catalog_t* catalog) {
  weir_mutex_lock(&catalog->mu);
  for (size_t i = 0; i < catalog->model_count; ++i) {
    for (size_t k = 0; k < catalog->models[i].slot_count; ++k) {
      const weir_version_t* version = catalog->models[i].slots[k].version;
      if (version) weir_session_cancel(weir_model_session(version->model));
    }
  }
  weir_mutex_unlock(&catalog->mu);
}

int weir_catalog_model_count(const weir_catalog_t* catalog) { return (int)catalog->model_count; }
const char* weir_catalog_model_name(const weir_catalog_t* catalog, int index) {
  return catalog->models[index].name;
}
