// safetensors.c — Safetensors files: a length, a header in JSON, and the bytes of all tensors, one
// after another without a hole.
#include "file/safetensors.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/map.h"
#include "file/coding.h"
#include "file/safetensors_types.h"
#include "tensor/tensor.h"
#include "weir/argument.h"

enum {
  kPrefix = 8,                  // the header's length
  kMaxHeader = 100 * 1000000,   // as the format has it
  kMaxValues = 4 * 1000 * 1000  // in the header: what is parsed takes memory
};

// An entry, and where its bytes are.
typedef struct item_t {
  weir_safetensors_entry_t entry;  // first: an entry is its item
  uint64_t begin;                  // from the end of the header
} item_t;

struct weir_safetensors_t {
  weir_mapping_t* mapping;
  weir_arena_t arena;  // names, shapes and what the header says
  const char* path;
  const char* data;  // of the first tensor
  item_t* items;
  size_t count;
  weir_safetensors_note_t* notes;
  size_t note_count;
  weir_map_t by_name;
};

// ---- the header ----

static weir_status_t* bad_tensor(const weir_safetensors_t* file, weir_view_t name,
                                 const char* what) {
  return WEIR_STATUS(INVALID_ARGUMENT, "%s: tensor '%.*s' %s", file->path, WEIR_VIEW_ARG(name),
                     what);
}

// A whole number that is not negative.
static bool read_size(const weir_json_t* value, uint64_t* out_size) {
  int64_t number = 0;
  if (!value || !weir_json_int(value, &number) || number < 0) return false;
  *out_size = (uint64_t)number;
  return true;
}

static weir_status_t* read_shape(weir_safetensors_t* file, const weir_json_t* tensor,
                                 const weir_safetensors_type_t* type,
                                 weir_safetensors_entry_t* entry) {
  const weir_json_t* shape = weir_json_find(tensor, "shape");
  uint64_t bits = (uint64_t)type->bits;
  if (!shape || shape->kind != WEIR_JSON_ARRAY)
    return bad_tensor(file, tensor->key, "has no shape");
  if (shape->count > WEIR_MAX_RANK) return bad_tensor(file, tensor->key, "has too many dimensions");
  int64_t* dims = weir_arena_array(&file->arena, shape->count, sizeof(*dims));
  if (!dims) return weir_out_of_memory();
  int rank = 0;
  bool is_empty = false;
  for (const weir_json_t* dim = shape->first; dim; dim = dim->next) {
    uint64_t size = 0;
    if (!read_size(dim, &size)) return bad_tensor(file, tensor->key, "has a bad dimension");
    is_empty |= size == 0;
    if (size > 0 && bits > INT64_MAX / size)
      return bad_tensor(file, tensor->key, "has too many elements");
    if (size > 0) bits *= size;
    dims[rank++] = (int64_t)size;
  }
  if (is_empty) bits = 0;
  if (bits % 8) return bad_tensor(file, tensor->key, "does not end with a byte");
  entry->rank = rank;
  entry->dims = dims;
  entry->size = (size_t)(bits / 8);
  return NULL;
}

static weir_status_t* read_offsets(const weir_safetensors_t* file, const weir_json_t* tensor,
                                   item_t* item) {
  const weir_json_t* offsets = weir_json_find(tensor, "data_offsets");
  uint64_t begin = 0, end = 0;
  bool is_pair = offsets && offsets->kind == WEIR_JSON_ARRAY && offsets->count == 2 &&
                 read_size(offsets->first, &begin) && read_size(offsets->first->next, &end);
  if (!is_pair || begin > end) return bad_tensor(file, tensor->key, "has bad data_offsets");
  if (end - begin != item->entry.size)
    return WEIR_STATUS(
        INVALID_ARGUMENT, "%s: tensor '%.*s' has %llu bytes, but its shape needs %zu", file->path,
        WEIR_VIEW_ARG(tensor->key), (unsigned long long)(end - begin), item->entry.size);
  item->begin = begin;
  return NULL;
}

static weir_status_t* read_tensor(weir_safetensors_t* file, const weir_json_t* tensor) {
  item_t* item = &file->items[file->count];
  if (tensor->kind != WEIR_JSON_OBJECT) return bad_tensor(file, tensor->key, "is no object");
  if (memchr(tensor->key.data ? tensor->key.data : "", '\0', tensor->key.size))
    return bad_tensor(file, tensor->key, "has a zero byte in its name");
  const weir_json_t* dtype = weir_json_find(tensor, "dtype");
  const weir_safetensors_type_t* type = dtype ? weir_safetensors_type_named(dtype->text) : NULL;
  if (!type) return bad_tensor(file, tensor->key, "has no dtype, or one that is not known");
  item->entry = (weir_safetensors_entry_t){
      .name = weir_arena_strndup(&file->arena, tensor->key.data, tensor->key.size),
      .type = type->name,
      .dtype = type->dtype};
  if (!item->entry.name) return weir_out_of_memory();
  WEIR_TRY(read_shape(file, tensor, type, &item->entry));
  WEIR_TRY(read_offsets(file, tensor, item));
  file->count += 1;
  return NULL;
}

static weir_status_t* read_notes(weir_safetensors_t* file, const weir_json_t* notes) {
  if (notes->kind != WEIR_JSON_OBJECT)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: __metadata__ is no object", file->path);
  file->notes = weir_arena_array(&file->arena, notes->count, sizeof(*file->notes));
  if (!file->notes) return weir_out_of_memory();
  for (const weir_json_t* note = notes->first; note; note = note->next) {
    if (note->kind != WEIR_JSON_STRING)
      return WEIR_STATUS(INVALID_ARGUMENT, "%s: '%.*s' of __metadata__ is no string", file->path,
                         WEIR_VIEW_ARG(note->key));
    const char* key = weir_arena_strndup(&file->arena, note->key.data, note->key.size);
    const char* value = weir_arena_strndup(&file->arena, note->text.data, note->text.size);
    if (!key || !value) return weir_out_of_memory();
    file->notes[file->note_count++] = (weir_safetensors_note_t){key, value};
  }
  return NULL;
}

// By where they begin; empty ones first, which lie before what begins there.
static int compare_items(const void* a, const void* b) {
  const item_t *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->entry.size < y->entry.size ? -1 : x->entry.size > y->entry.size;
}

// Each tensor begins where the one before it ends, and the last ends with the file.
static weir_status_t* check_order(weir_safetensors_t* file, uint64_t data_size) {
  uint64_t at = 0;
  for (size_t i = 0; i < file->count; ++i) {
    const item_t* item = &file->items[i];
    weir_view_t name = weir_view_of(item->entry.name);
    if (item->begin < at) return bad_tensor(file, name, "overlaps another");
    if (item->begin > at) return bad_tensor(file, name, "comes after a hole");
    at += item->entry.size;
    if (at > data_size)
      return WEIR_STATUS(DATA_LOSS, "%s: the file ends within tensor '%.*s'", file->path,
                         WEIR_VIEW_ARG(name));
    if (weir_map_find(&file->by_name, name)) return bad_tensor(file, name, "is there twice");
    WEIR_TRY(weir_map_put(&file->by_name, name, (void*)item));
  }
  if (at == data_size) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s: %llu bytes belong to no tensor", file->path,
                     (unsigned long long)(data_size - at));
}

static weir_status_t* read_members(weir_safetensors_t* file, const weir_json_t* header) {
  bool has_notes = false;
  if (header->kind != WEIR_JSON_OBJECT)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: the header is no object", file->path);
  file->items = weir_alloc_array(header->count, sizeof(*file->items));
  if (!file->items) return weir_out_of_memory();
  for (const weir_json_t* member = header->first; member; member = member->next) {
    if (!weir_view_is(member->key, "__metadata__")) {
      WEIR_TRY(read_tensor(file, member));
      continue;
    }
    if (has_notes)
      return WEIR_STATUS(INVALID_ARGUMENT, "%s: __metadata__ is there twice", file->path);
    has_notes = true;
    WEIR_TRY(read_notes(file, member));
  }
  if (file->count > 1) qsort(file->items, file->count, sizeof(*file->items), compare_items);
  return NULL;
}

// An upper bound of the values in |text|.
static size_t count_values(weir_view_t text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    count += c == ',' || c == '[' || c == '{';
  }
  return count;
}

static weir_status_t* parse_header(weir_safetensors_t* file) {
  size_t size = file->mapping->size;
  const weir_json_t* header = NULL;
  weir_arena_t arena = {0};
  if (size < kPrefix)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: not a safetensors file: %zu bytes", file->path, size);
  uint64_t length = weir_decode64(file->mapping->data);
  const char* text = file->mapping->data + kPrefix;
  if (length > kMaxHeader)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: not a safetensors file: a header of %llu bytes",
                       file->path, (unsigned long long)length);
  if (length > size - kPrefix)
    return WEIR_STATUS(DATA_LOSS, "%s: the file ends within its header of %llu bytes", file->path,
                       (unsigned long long)length);
  if (length == 0 || text[0] != '{')
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: not a safetensors file: no header", file->path);
  weir_view_t view = weir_view(text, (size_t)length);
  if (count_values(view) > kMaxValues)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "%s: the header has more than %d values", file->path,
                       kMaxValues);
  file->data = text + length;
  weir_status_t* status = weir_json_parse(view, &arena, &header);
  status = weir_status_prefix(status, "%s: header: ", file->path);
  if (!status) status = read_members(file, header);
  if (!status) status = check_order(file, size - kPrefix - length);
  weir_arena_free(&arena);
  return status;
}

weir_status_t* weir_safetensors_parse(weir_mapping_t* take_mapping, const char* name,
                                      weir_safetensors_t** out_file) {
  weir_safetensors_t* file = weir_calloc(1, sizeof(*file));
  if (!file) {
    weir_mapping_release(take_mapping);
    return weir_out_of_memory();
  }
  file->mapping = take_mapping;
  file->path = weir_arena_strndup(&file->arena, name, strlen(name));
  weir_status_t* status = file->path ? parse_header(file) : weir_out_of_memory();
  if (status) weir_safetensors_close(file);
  else *out_file = file;
  return status;
}

weir_status_t* weir_safetensors_open(const char* path, weir_safetensors_t** out_file) {
  WEIR_REQUIRE_ARG(path);
  WEIR_REQUIRE_ARG(out_file);
  weir_mapping_t* mapping = NULL;
  WEIR_TRY(weir_mapping_create(path, &mapping));
  return weir_safetensors_parse(mapping, path, out_file);
}

void weir_safetensors_close(weir_safetensors_t* file) {
  if (!file) return;
  weir_map_free(&file->by_name);
  weir_free(file->items);
  weir_arena_free(&file->arena);
  weir_mapping_release(file->mapping);
  weir_free(file);
}

// ---- reading ----

int weir_safetensors_count(const weir_safetensors_t* file) { return file ? (int)file->count : 0; }

const weir_safetensors_entry_t* weir_safetensors_at(const weir_safetensors_t* file, int index) {
  if (!file || index < 0 || (size_t)index >= file->count) return NULL;
  return &file->items[index].entry;
}

const weir_safetensors_entry_t* weir_safetensors_find(const weir_safetensors_t* file,
                                                      const char* name) {
  return file && name ? weir_map_find(&file->by_name, weir_view_of(name)) : NULL;
}

int weir_safetensors_note_count(const weir_safetensors_t* file) {
  return file ? (int)file->note_count : 0;
}
weir_safetensors_note_t weir_safetensors_note_at(const weir_safetensors_t* file, int index) {
  if (!file || index < 0 || (size_t)index >= file->note_count)
    return (weir_safetensors_note_t){NULL, NULL};
  return file->notes[index];
}

// A bool is one byte that is 0 or 1; any other would be a value that no comparison expects.
static bool has_odd_bools(const item_t* item, const char* data) {
  for (size_t i = 0; item->entry.dtype == WEIR_DTYPE_BOOL && i < item->entry.size; ++i) {
    if (data[i] & ~1) return true;
  }
  return false;
}

weir_status_t* weir_safetensors_read(const weir_safetensors_t* file, const char* name,
                                     weir_tensor_t** out_tensor) {
  WEIR_REQUIRE_ARG(file);
  WEIR_REQUIRE_ARG(name);
  WEIR_REQUIRE_ARG(out_tensor);
  const item_t* item = weir_map_find(&file->by_name, weir_view_of(name));
  if (!item) return WEIR_STATUS(NOT_FOUND, "%s: no tensor '%s'", file->path, name);
  const weir_safetensors_entry_t* entry = &item->entry;
  if (entry->dtype == WEIR_DTYPE_INVALID)
    return WEIR_STATUS(UNIMPLEMENTED, "%s: tensor '%s' is of type %s", file->path, name,
                       entry->type);
  char* data = (char*)file->data + item->begin;
  size_t element = WEIR_MIN(weir_dtype_size(entry->dtype), 8);
  if (has_odd_bools(item, data))
    return WEIR_STATUS(DATA_LOSS, "%s: tensor '%s' has a BOOL that is neither 0 nor 1", file->path,
                       name);
  if (entry->size > 0 && (uintptr_t)data % element == 0)
    return weir_tensor_wrap(entry->dtype, entry->rank, entry->dims, data, entry->size,
                            weir_mapping_drop, weir_mapping_retain(file->mapping), out_tensor);
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_tensor_create(entry->dtype, entry->rank, entry->dims, &tensor));
  if (entry->size > 0) memcpy(tensor->data, data, entry->size);
  *out_tensor = tensor;
  return NULL;
}
