// cache_file.c — Elements kept in files by the first walk that sees the end, for all that begin
// after it. The files are TensorFlow's: a checkpoint "<name>", in which component 1 of element 7 is
// under "      7_1". While it is written it is "<name>_0", and "<name>_0.lockfile" is there.
#include "ops/data/cache_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "file/bundle.h"

enum { kMaxItems = 10000000 };  // elements; keys are padded to its width

typedef struct file_cache_t {
  weir_data_t base;
  char* name;
} file_cache_t;

typedef struct file_cache_iterator_t {
  weir_iterator_t base;
  // Where there is a cache already.
  weir_bundle_t* bundle;  // NULL: not open
  weir_names_t keys;
  size_t key;  // the next
  bool reads;
  // Where this walk makes it.
  char* part;       // "<name>_0"
  char* lock_path;  // of the lock file
  weir_bundle_writer_t* writer;
  weir_status_t* failure;  // of the writer; it is over then
  int64_t count;           // elements written
  bool is_locked;
  bool is_complete;
} file_cache_iterator_t;

static weir_status_t* join(const char* name, const char* end, char** out_path) {
  weir_strbuf_t path = {0};
  weir_strbuf_append(&path, name, strlen(name));
  weir_strbuf_append(&path, end, strlen(end));
  WEIR_TRY(weir_strbuf_finish(&path));
  *out_path = path.data;
  return NULL;
}

// ---- the dataset ----

static weir_status_t* file_cache_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  weir_view_t name;
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  WEIR_TRY(weir_dataset_string(ctx, 1, "filename", &name));
  if (memchr(name.data, '\0', name.size))
    return WEIR_STATUS(INVALID_ARGUMENT, "path '%.*s' holds a zero byte", WEIR_VIEW_ARG(name));
  char* copy = weir_strndup(name.data, name.size);
  ((file_cache_t*)dataset)->name = copy;
  return copy ? NULL : weir_out_of_memory();
}

static void file_cache_deinit(weir_data_t* dataset) { weir_free(((file_cache_t*)dataset)->name); }

static weir_status_t* has_index(const char* prefix, bool* out_has) {
  char* path = NULL;
  WEIR_TRY(join(prefix, ".index", &path));
  *out_has = weir_fs_exists(path);
  weir_free(path);
  return NULL;
}

static weir_status_t* file_cache_start(weir_iterator_t* iterator) {
  file_cache_iterator_t* self = (file_cache_iterator_t*)iterator;
  const char* name = ((const file_cache_t*)iterator->dataset)->name;
  WEIR_TRY(has_index(name, &self->reads));
  if (self->reads) return NULL;
  WEIR_TRY(join(name, "_0", &self->part));
  WEIR_TRY(join(self->part, ".lockfile", &self->lock_path));
  return weir_iterator_open(iterator, 0);
}

// ---- reading ----

static weir_status_t* open_bundle(file_cache_iterator_t* self) {
  weir_bundle_t* bundle = NULL;
  if (self->bundle) return NULL;
  WEIR_TRY(weir_bundle_open(((const file_cache_t*)self->base.dataset)->name, &bundle));
  weir_status_t* status = weir_bundle_list(bundle, &self->keys);
  if (status) {
    weir_names_free(&self->keys);
    self->keys = (weir_names_t){0};
    weir_bundle_close(bundle);
    return status;
  }
  self->bundle = bundle;
  return NULL;
}

// What others wrote may be anything, but what is above relies on its types and shapes.
static weir_status_t* check_component(const weir_data_t* dataset, int i, const weir_tensor_t* got) {
  const weir_shape_t* want = dataset->shapes[i];
  if (weir_tensor_type(got) != dataset->types[i])
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Data type mismatch at component %d: expected %s but got %s.", i,
                       weir_dtype_name(dataset->types[i]), weir_dtype_name(weir_tensor_type(got)));
  if (weir_shape_accepts(want, got->rank, got->dims)) return NULL;
  char text[WEIR_SHAPE_TEXT_SIZE];
  weir_strbuf_t wanted = {0};
  weir_shape_append(want, &wanted);
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT, "Incompatible shapes at component %d: expected %s but got %s.",
                  i, wanted.data, weir_tensor_shape_text(got, text));
  weir_strbuf_free(&wanted);
  return status;
}

static weir_status_t* read_element(file_cache_iterator_t* self, weir_tensor_t** out,
                                   bool* out_is_end) {
  const weir_data_t* dataset = self->base.dataset;
  WEIR_TRY(open_bundle(self));
  *out_is_end = self->keys.count - self->key < (size_t)dataset->count;
  if (*out_is_end) return NULL;
  const size_t first = self->key;
  self->key += (size_t)dataset->count;
  for (int i = 0; i < dataset->count; ++i) {
    const char* key = self->keys.items[first + (size_t)i];
    WEIR_TRY(weir_bundle_read(self->bundle, weir_view_of(key), &out[i]));
    WEIR_TRY(check_component(dataset, i, out[i]));
  }
  return NULL;
}

// ---- writing ----

static weir_status_t* refuse_locked(const char* path) {
  char contents[151] = {0};
  size_t size = 0;
  weir_file_t* file = NULL;
  weir_status_t* status = weir_file_open(path, &file);
  if (!status) status = weir_file_read(file, 0, contents, sizeof contents - 1, &size);
  weir_status_destroy(status);  // what it says is only more to tell
  weir_file_close(file);
  return WEIR_STATUS(ALREADY_EXISTS,
                     "There appears to be a concurrent caching iterator running - cache lockfile "
                     "already exists ('%s'). If you are sure no other running TF computations are "
                     "using this cache prefix, delete the lockfile and re-initialize the iterator. "
                     "Lockfile contents: %s",
                     path, contents);
}

static weir_status_t* write_lock(const char* path) {
  char text[48];
  int size = snprintf(text, sizeof text, "Created at: %lld", (long long)time(NULL));
  return weir_fs_write_all(path, weir_view(text, (size_t)size));
}

// Whoever made the lock file may write; nobody does where a cache was begun and left.
static weir_status_t* ensure_lock(file_cache_iterator_t* self) {
  bool has_begun = false;
  if (self->is_locked) return NULL;
  WEIR_TRY(has_index(self->part, &has_begun));
  if (has_begun)
    return WEIR_STATUS(ALREADY_EXISTS,
                       "Existing cache files found: \n%s.index\n%s.data-00000-of-00001\nTo "
                       "continue delete the above files.",
                       self->part, self->part);
  if (weir_fs_exists(self->lock_path)) return refuse_locked(self->lock_path);
  WEIR_TRY(write_lock(self->lock_path));
  self->is_locked = true;
  return weir_bundle_writer_create(self->part, 1, &self->writer);
}

static weir_status_t* finish(file_cache_iterator_t* self) {
  const char* name = ((const file_cache_t*)self->base.dataset)->name;
  self->is_complete = true;
  WEIR_TRY(weir_bundle_finish(self->writer));
  WEIR_TRY(weir_bundle_merge((const char* const[]){self->part}, 1, name, false));
  self->is_locked = false;
  return weir_fs_remove(self->lock_path);
}

static weir_status_t* write_element(file_cache_iterator_t* self, weir_tensor_t* const* element) {
  char key[64], last[32];
  int width = snprintf(last, sizeof last, "%d", self->base.dataset->count - 1);
  for (int i = 0; i < self->base.dataset->count; ++i) {
    int size = snprintf(key, sizeof key, "%7" PRId64 "_%*d", self->count, width, i);
    WEIR_TRY(weir_bundle_add(self->writer, weir_view(key, (size_t)size), element[i]));
  }
  ++self->count;
  return NULL;
}

static weir_status_t* pull_and_write(file_cache_iterator_t* self, weir_cancel_t* cancel,
                                     weir_tensor_t** out, bool* out_is_end) {
  *out_is_end = self->is_complete;
  if (self->is_complete) return NULL;
  WEIR_TRY(ensure_lock(self));
  if (self->failure) return weir_status_copy(self->failure);
  if (self->count >= kMaxItems) {
    weir_status_destroy(finish(self));  // what was written stays of use
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Upstream iterator is producing more than %d items, which is more than the "
                       "cache limit.",
                       kMaxItems);
  }
  WEIR_TRY(weir_iterator_pull(&self->base, 0, cancel, out, out_is_end));
  if (*out_is_end) return finish(self);
  self->failure = write_element(self, out);
  return self->failure ? weir_status_copy(self->failure) : NULL;
}

static weir_status_t* file_cache_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                      weir_tensor_t** out, bool* out_is_end) {
  file_cache_iterator_t* self = (file_cache_iterator_t*)iterator;
  if (self->reads) return read_element(self, out, out_is_end);
  return pull_and_write(self, cancel, out, out_is_end);
}

static void file_cache_stop(weir_iterator_t* iterator) {
  file_cache_iterator_t* self = (file_cache_iterator_t*)iterator;
  weir_bundle_writer_destroy(self->writer);
  if (self->is_locked) weir_status_destroy(weir_fs_remove(self->lock_path));
  weir_bundle_close(self->bundle);
  weir_names_free(&self->keys);
  weir_status_destroy(self->failure);
  weir_free(self->part);
  weir_free(self->lock_path);
}

static const weir_iterator_vtable_t file_cache_iterator = {.size = sizeof(file_cache_iterator_t),
                                                           .start = file_cache_start,
                                                           .next = file_cache_next,
                                                           .stop = file_cache_stop};
const weir_dataset_vtable_t weir_file_cache_dataset = {.name = "Cache",
                                                       .size = sizeof(file_cache_t),
                                                       .init = file_cache_init,
                                                       .deinit = file_cache_deinit,
                                                       .iterator = &file_cache_iterator};
