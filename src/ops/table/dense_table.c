// dense_table.c — Dense lookup tables: triangular probing over rows of matrices.
#include "ops/table/dense_table.h"

#include "base/alloc.h"
#include "base/fingerprint.h"
#include "tensor/tensor.h"

typedef struct places_t {
  weir_tensor_t* keys;    // [count, key_width]
  weir_tensor_t* values;  // [count, value_width]
  int64_t count;          // what was imported need not be a power of two, nor where it should be
  int64_t entries;
} places_t;

struct weir_dense_table_t {
  weir_dtype_t key_dtype;  // immutable, as all up to mu
  weir_dtype_t value_dtype;
  int64_t key_width;  // elements of a key
  int64_t value_width;
  weir_tensor_t* empty_key;
  weir_tensor_t* deleted_key;
  float max_load;
  weir_mutex_t mu;
  places_t places;  // guarded by mu
};

// ---- keys ----

static char* row(const weir_tensor_t* tensor, int64_t index, int64_t width) {
  return (char*)tensor->data + (size_t)(index * width) * weir_dtype_size(weir_tensor_type(tensor));
}

static uint64_t hash_element(weir_dtype_t dtype, const char* key) {
  switch (dtype) {
    case WEIR_DTYPE_STRING: {
      const weir_view_t text = weir_string_view((const weir_string_t*)key);
      return weir_murmur64(text.data, text.size);
    }
    case WEIR_DTYPE_INT32: return (uint64_t)(int64_t)(*(const int32_t*)key);
    default: return *(const uint64_t*)key;
  }
}

static uint64_t hash_key(const weir_dense_table_t* t, const char* key) {
  uint64_t hash = 0;
  if (t->key_width == 1) return hash_element(t->key_dtype, key);
  for (int64_t i = 0; i < t->key_width; ++i, key += weir_dtype_size(t->key_dtype)) {
    hash ^=
        hash_element(t->key_dtype, key) + UINT64_C(0x9e3779b97f4a7800) + (hash << 10) + (hash >> 4);
  }
  return hash;
}

static bool keys_equal(const weir_dense_table_t* t, const char* a, const char* b) {
  if (t->key_dtype != WEIR_DTYPE_STRING) {
    return memcmp(a, b, (size_t)t->key_width * weir_dtype_size(t->key_dtype)) == 0;
  }
  for (int64_t i = 0; i < t->key_width; ++i) {
    if (!weir_view_equal(weir_string_view((const weir_string_t*)a + i),
                         weir_string_view((const weir_string_t*)b + i))) {
      return false;
    }
  }
  return true;
}

static bool is_empty_key(const weir_dense_table_t* t, const char* key) {
  return keys_equal(t, key, t->empty_key->data);
}
static bool is_deleted_key(const weir_dense_table_t* t, const char* key) {
  return keys_equal(t, key, t->deleted_key->data);
}

// The hash of a key that may be used.
static weir_status_t* hash_of(const weir_dense_table_t* t, const char* key, uint64_t* out_hash) {
  const bool is_empty = is_empty_key(t, key);
  *out_hash = hash_key(t, key);
  if (!is_empty && !is_deleted_key(t, key)) return NULL;
  const char* name = is_empty ? "empty" : "deleted";
  return WEIR_STATUS(INVALID_ARGUMENT, "Using the %s_key as a table key is not allowed", name);
}

// ---- places ----

static void places_free(places_t* places) {
  weir_tensor_release(places->keys);
  weir_tensor_release(places->values);
  *places = (places_t){0};
}

static weir_status_t* places_fill(const weir_dense_table_t* t, places_t* places) {
  const size_t bytes = (size_t)places->values->count * weir_dtype_size(t->value_dtype);
  if (weir_dtype_is_plain(t->value_dtype) && bytes > 0) memset(places->values->data, 0, bytes);
  for (int64_t i = 0; i < places->count; ++i) {
    WEIR_TRY(weir_elements_copy(t->key_dtype, row(places->keys, i, t->key_width),
                                t->empty_key->data, t->key_width));
  }
  return NULL;
}

// All of them empty.
static weir_status_t* places_make(const weir_dense_table_t* t, int64_t count, places_t* out) {
  places_t places = {.count = count};
  weir_status_t* status =
      weir_tensor_create(t->key_dtype, 2, (const int64_t[]){count, t->key_width}, &places.keys);
  if (!status) {
    status = weir_tensor_create(t->value_dtype, 2, (const int64_t[]){count, t->value_width},
                                &places.values);
  }
  if (!status) status = places_fill(t, &places);
  if (status) {
    places_free(&places);
    return status;
  }
  *out = places;
  return NULL;
}

// The place of |key|, or where the search for it ends: at an empty place or, for one to be added,
// at a deleted one. -1 when there is neither.
static int64_t find_place(const weir_dense_table_t* t, const places_t* places, const char* key,
                          uint64_t hash, bool is_to_add) {
  const uint64_t mask = (uint64_t)places->count - 1;
  uint64_t at = hash & mask;
  for (int64_t probes = 0; probes < places->count;) {
    const char* found = row(places->keys, (int64_t)at, t->key_width);
    if (keys_equal(t, found, key) || is_empty_key(t, found)) return (int64_t)at;
    if (is_to_add && is_deleted_key(t, found)) return (int64_t)at;
    at = (at + (uint64_t)++probes) & mask;
  }
  return -1;
}

static weir_status_t* lost(const char* what) {
  return WEIR_STATUS(INTERNAL, "Internal error in MutableDenseHashTable %s", what);
}

static weir_status_t* put(const weir_dense_table_t* t, places_t* places, const char* key,
                          uint64_t hash, const char* value) {
  const int64_t at = find_place(t, places, key, hash, true);
  if (at < 0) return lost("insert");
  char* place = row(places->keys, at, t->key_width);
  WEIR_TRY(weir_elements_copy(t->value_dtype, row(places->values, at, t->value_width), value,
                              t->value_width));
  if (keys_equal(t, place, key)) return NULL;
  WEIR_TRY(weir_elements_copy(t->key_dtype, place, key, t->key_width));
  ++places->entries;
  return NULL;
}

static weir_status_t* grow(weir_dense_table_t* t, int64_t count) {
  places_t grown = {0}, *old = &t->places;
  WEIR_TRY(places_make(t, count, &grown));
  weir_status_t* status = NULL;
  for (int64_t i = 0; !status && i < old->count; ++i) {
    const char* key = row(old->keys, i, t->key_width);
    if (is_empty_key(t, key) || is_deleted_key(t, key)) continue;
    status = put(t, &grown, key, hash_key(t, key), row(old->values, i, t->value_width));
  }
  if (status) {
    places_free(&grown);
    return status;
  }
  places_free(old);
  *old = grown;
  return NULL;
}

// Room for |count| more, all of which are taken for new ones.
static weir_status_t* reserve(weir_dense_table_t* t, int64_t count) {
  const float wanted = (float)(t->places.entries + count);
  int64_t places = t->places.count;
  if (!(wanted > (float)places * t->max_load)) return NULL;
  if (places == 0) places = 2;
  do {
    if (places > INT64_MAX / 4) return weir_out_of_memory();
    places *= 2;
  } while (wanted > (float)places * t->max_load);
  return grow(t, places);
}

// ---- operations ----

weir_status_t* weir_dense_table_batch_rank(const weir_dense_table_t* table,
                                           const weir_tensor_t* keys, int* out_rank) {
  const weir_tensor_t* key = table->empty_key;
  char got[WEIR_SHAPE_TEXT_SIZE], want[WEIR_SHAPE_TEXT_SIZE];
  *out_rank = keys->rank - key->rank;
  if (*out_rank >= 0 && (key->rank == 0 || keys->dims[*out_rank] == key->dims[0])) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Input key shape %s must end with the table's key shape %s",
                     weir_tensor_shape_text(keys, got), weir_tensor_shape_text(key, want));
}

// The first dimension counts keys.
static weir_status_t* count_keys(const weir_dense_table_t* t, const weir_tensor_t* keys,
                                 int64_t* out_count) {
  const int64_t count = keys->rank == 0 ? 1 : keys->dims[0];
  const int64_t expected[2] = {count, t->key_width};
  char got[WEIR_SHAPE_TEXT_SIZE], want[WEIR_SHAPE_TEXT_SIZE];
  *out_count = count;
  if (count == keys->count / t->key_width && keys->count % t->key_width == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Expected key shape %s got %s",
                     weir_shape_text(1 + t->empty_key->rank, expected, want),
                     weir_tensor_shape_text(keys, got));
}

int64_t weir_dense_table_size(weir_dense_table_t* table) {
  weir_mutex_lock(&table->mu);
  const int64_t size = table->places.entries;
  weir_mutex_unlock(&table->mu);
  return size;
}

static weir_status_t* find_one(const weir_dense_table_t* t, const char* key, const char* otherwise,
                               char* out) {
  uint64_t hash;
  WEIR_TRY(hash_of(t, key, &hash));
  const int64_t at = find_place(t, &t->places, key, hash, false);
  if (at < 0) return lost("lookup");
  const bool is_found = keys_equal(t, row(t->places.keys, at, t->key_width), key);
  return weir_elements_copy(t->value_dtype, out,
                            is_found ? row(t->places.values, at, t->value_width) : otherwise,
                            t->value_width);
}

weir_status_t* weir_dense_table_find(weir_dense_table_t* table, const weir_tensor_t* keys,
                                     const weir_tensor_t* default_value,
                                     weir_tensor_t* out_values) {
  int64_t count;
  WEIR_TRY(count_keys(table, keys, &count));
  weir_status_t* status = NULL;
  weir_mutex_lock(&table->mu);
  for (int64_t i = 0; !status && i < count; ++i) {
    status = find_one(table, row(keys, i, table->key_width), default_value->data,
                      row(out_values, i, table->value_width));
  }
  weir_mutex_unlock(&table->mu);
  return status;
}

weir_status_t* weir_dense_table_insert(weir_dense_table_t* table, const weir_tensor_t* keys,
                                       const weir_tensor_t* values) {
  int64_t count;
  WEIR_TRY(count_keys(table, keys, &count));
  weir_mutex_lock(&table->mu);
  weir_status_t* status = reserve(table, count);
  for (int64_t i = 0; !status && i < count; ++i) {
    const char* key = row(keys, i, table->key_width);
    uint64_t hash;
    status = hash_of(table, key, &hash);
    if (!status) status = put(table, &table->places, key, hash, row(values, i, table->value_width));
  }
  weir_mutex_unlock(&table->mu);
  return status;
}

static weir_status_t* remove_one(weir_dense_table_t* t, const char* key) {
  uint64_t hash;
  WEIR_TRY(hash_of(t, key, &hash));
  const int64_t at = find_place(t, &t->places, key, hash, false);
  if (at < 0) return lost("remove");
  char* place = row(t->places.keys, at, t->key_width);
  if (!keys_equal(t, place, key)) return NULL;
  WEIR_TRY(weir_elements_copy(t->key_dtype, place, t->deleted_key->data, t->key_width));
  --t->places.entries;
  return NULL;
}

weir_status_t* weir_dense_table_remove(weir_dense_table_t* table, const weir_tensor_t* keys) {
  int64_t count;
  WEIR_TRY(count_keys(table, keys, &count));
  weir_status_t* status = NULL;
  weir_mutex_lock(&table->mu);
  for (int64_t i = 0; !status && i < count; ++i) {
    status = remove_one(table, row(keys, i, table->key_width));
  }
  weir_mutex_unlock(&table->mu);
  return status;
}

static weir_status_t* check_import(const weir_dense_table_t* t, const weir_tensor_t* keys,
                                   const weir_tensor_t* values) {
  char got[WEIR_SHAPE_TEXT_SIZE], want[WEIR_SHAPE_TEXT_SIZE];
  if (keys->rank != 2 || keys->dims[1] != t->key_width) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected keys of shape [?,%lld], got %s",
                       (long long)t->key_width, weir_tensor_shape_text(keys, got));
  }
  const int64_t dims[] = {keys->dims[0], t->value_width};
  if (values->rank == 2 && memcmp(values->dims, dims, sizeof(dims)) == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Expected shape %s for value, got %s",
                     weir_shape_text(2, dims, want), weir_tensor_shape_text(values, got));
}

weir_status_t* weir_dense_table_import(weir_dense_table_t* table, const weir_tensor_t* keys,
                                       const weir_tensor_t* values) {
  places_t places = {0};
  WEIR_TRY(check_import(table, keys, values));
  weir_status_t* status = weir_tensor_copy(keys, &places.keys);
  if (!status) status = weir_tensor_copy(values, &places.values);
  if (status) {
    places_free(&places);
    return status;
  }
  places.count = keys->dims[0];
  for (int64_t i = 0; i < places.count; ++i) {
    const char* key = row(keys, i, table->key_width);
    places.entries += !is_empty_key(table, key) && !is_deleted_key(table, key);
  }
  weir_mutex_lock(&table->mu);
  const places_t old = table->places;
  table->places = places;
  weir_mutex_unlock(&table->mu);
  places_free(&(places_t){.keys = old.keys, .values = old.values});
  return NULL;
}

weir_status_t* weir_dense_table_export(weir_dense_table_t* table, weir_tensor_t** out_keys,
                                       weir_tensor_t** out_values) {
  weir_tensor_t *keys = NULL, *values = NULL;
  weir_mutex_lock(&table->mu);
  weir_status_t* status = weir_tensor_copy(table->places.keys, &keys);
  if (!status) status = weir_tensor_copy(table->places.values, &values);
  weir_mutex_unlock(&table->mu);
  if (status) {
    weir_tensor_release(keys);
    return status;
  }
  *out_keys = keys;
  *out_values = values;
  return NULL;
}

// ---- life ----

static weir_status_t* check_config(const weir_lookup_table_config_t* config) {
  const weir_dense_table_config_t* dense = config->dense;
  const weir_tensor_t *empty = dense->empty_key, *deleted = dense->deleted_key;
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (!(dense->max_load > 0 && dense->max_load < 1)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "max_load_factor must be between 0 and 1, got: %g",
                       (double)dense->max_load);
  }
  if (config->value_rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Empty value must be a scalar or a vector, got shape %s",
                       weir_shape_text(config->value_rank, config->value_dims, a));
  }
  if (empty->rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Empty key must be a scalar or a vector, got shape %s",
                       weir_tensor_shape_text(empty, a));
  }
  if (!weir_tensor_same_shape(empty, deleted)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Empty and deleted keys must have same shape, got shapes: %s and %s",
                       weir_tensor_shape_text(empty, a), weir_tensor_shape_text(deleted, b));
  }
  if (empty->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "A key must have an element");
  if (dense->bucket_count < 4 || (dense->bucket_count & (dense->bucket_count - 1)) != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of buckets must be at least 4 and a power of 2, got: %lld",
                       (long long)dense->bucket_count);
  }
  return NULL;
}

static weir_status_t* set_keys(weir_dense_table_t* t, const weir_dense_table_config_t* config) {
  WEIR_TRY(weir_tensor_copy(config->empty_key, &t->empty_key));
  WEIR_TRY(weir_tensor_copy(config->deleted_key, &t->deleted_key));
  t->key_width = t->empty_key->count;
  if (!is_deleted_key(t, t->empty_key->data)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Empty and deleted keys cannot be equal");
}

weir_status_t* weir_dense_table_create(const weir_lookup_table_config_t* config,
                                       weir_dense_table_t** out_table) {
  WEIR_TRY(check_config(config));
  weir_dense_table_t* table = weir_calloc(1, sizeof(*table));
  if (!table) return weir_out_of_memory();
  weir_mutex_init(&table->mu);
  table->key_dtype = config->key_dtype;
  table->value_dtype = config->value_dtype;
  table->value_width = config->value_rank == 0 ? 1 : config->value_dims[0];
  table->max_load = config->dense->max_load;
  weir_status_t* status = set_keys(table, config->dense);
  if (!status) status = places_make(table, config->dense->bucket_count, &table->places);
  if (status) {
    weir_dense_table_destroy(table);
    return status;
  }
  *out_table = table;
  return NULL;
}

void weir_dense_table_destroy(weir_dense_table_t* table) {
  if (!table) return;
  places_free(&table->places);
  weir_tensor_release(table->empty_key);
  weir_tensor_release(table->deleted_key);
  weir_mutex_destroy(&table->mu);
  weir_free(table);
}
