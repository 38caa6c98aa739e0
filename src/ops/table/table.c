// table.c — Lookup tables: entries side by side in two arrays, found through open addressing.
#include "ops/table/table.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "ops/table/dense_table.h"
#include "tensor/tensor.h"

struct weir_lookup_table_t {
  weir_resource_t base;
  weir_lookup_table_config_t config;  // immutable
  int64_t* value_dims;                // what the configuration points to
  int64_t width;                      // elements of a value; immutable
  weir_dense_table_t* dense;          // immutable; where there is one, it has all entries
  weir_mutex_t mu;
  bool is_initialized;  // guarded by mu, as all below; a mutable table is so from the start
  size_t count;
  size_t capacity;
  char* keys;         // |count| elements of key_dtype, the others are empty
  char* values;       // likewise of value_dtype
  size_t* slots;      // 1-based entry numbers, 0: free; linear probing
  size_t slot_count;  // a power of two above |count|, or 0
};

// ---- keys ----
static size_t key_size(const weir_lookup_table_t* t) {
  return weir_dtype_size(t->config.key_dtype);
}
static size_t value_size(const weir_lookup_table_t* t) {
  return (size_t)t->width * weir_dtype_size(t->config.value_dtype);
}
static char* key_at(const weir_lookup_table_t* t, size_t entry) {
  return t->keys + entry * key_size(t);
}
static char* value_at(const weir_lookup_table_t* t, size_t entry) {
  return t->values + entry * value_size(t);
}

static uint64_t hash_key(const weir_lookup_table_t* t, const char* key) {
  if (t->config.key_dtype == WEIR_DTYPE_STRING) {
    weir_view_t text = weir_string_view((const weir_string_t*)key);
    return weir_hash_keyed(text.data, text.size);
  }
  uint64_t bits = 0;
  memcpy(&bits, key, key_size(t));
  return weir_hash_number(bits);
}

static bool elements_equal(weir_dtype_t dtype, const char* a, const char* b) {
  switch (dtype) {
    case WEIR_DTYPE_STRING:
      return weir_view_equal(weir_string_view((const weir_string_t*)a),
                             weir_string_view((const weir_string_t*)b));
    case WEIR_DTYPE_FLOAT:  // as numbers: 0 equals -0, NaN nothing
      return *(const float*)a == *(const float*)b;
    case WEIR_DTYPE_DOUBLE: return *(const double*)a == *(const double*)b;
    default: return memcmp(a, b, weir_dtype_size(dtype)) == 0;
  }
}

// The slot that names |key|, or the free one where it belongs. There is always a free slot.
static size_t probe(const weir_lookup_table_t* t, const char* key) {
  size_t mask = t->slot_count - 1;
  size_t slot = (size_t)hash_key(t, key) & mask;
  while (t->slots[slot] != 0 &&
         !elements_equal(t->config.key_dtype, key_at(t, t->slots[slot] - 1), key)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

// The entry of |key|, or |count| when there is none.
static size_t find_entry(const weir_lookup_table_t* t, const char* key) {
  if (t->slot_count == 0) return t->count;
  size_t number = t->slots[probe(t, key)];
  return number ? number - 1 : t->count;
}

// ---- growth ----
static weir_status_t* grow_slots(weir_lookup_table_t* t, size_t slot_count) {
  size_t* slots = weir_calloc(slot_count, sizeof(*slots));
  if (!slots) return weir_out_of_memory();
  weir_free(t->slots);
  t->slots = slots;
  t->slot_count = slot_count;
  for (size_t i = 0; i < t->count; ++i) t->slots[probe(t, key_at(t, i))] = i + 1;
  return NULL;
}

// Elements hold no pointers into themselves, so arrays of them may be moved as bytes.
// |width| elements make one.
static bool grow_array(char** data, size_t old_capacity, size_t capacity, weir_dtype_t dtype,
                       int64_t width) {
  size_t size = (size_t)width * weir_dtype_size(dtype);
  char* grown = weir_alloc_array(capacity, size);
  if (!grown) return false;
  if (old_capacity > 0) memcpy(grown, *data, old_capacity * size);
  weir_elements_init(dtype, grown + old_capacity * size,
                     (int64_t)(capacity - old_capacity) * width);
  weir_free(*data);
  *data = grown;
  return true;
}

static weir_status_t* reserve_one(weir_lookup_table_t* t) {
  if (t->count == t->capacity) {
    size_t capacity = t->capacity ? t->capacity * 2 : 8;
    if (!grow_array(&t->keys, t->capacity, capacity, t->config.key_dtype, 1))
      return weir_out_of_memory();
    if (!grow_array(&t->values, t->capacity, capacity, t->config.value_dtype, t->width)) {
      return weir_out_of_memory();  // |keys| has room to spare
    }
    t->capacity = capacity;
  }
  if ((t->count + 1) * 2 > t->slot_count)
    return grow_slots(t, t->slot_count ? t->slot_count * 2 : 16);
  return NULL;
}

static weir_status_t* copy_value(weir_lookup_table_t* t, size_t entry, const char* value) {
  return weir_elements_copy(t->config.value_dtype, value_at(t, entry), value, t->width);
}

static weir_status_t* add(weir_lookup_table_t* t, const char* key, const char* value) {
  WEIR_TRY(reserve_one(t));
  WEIR_TRY(weir_elements_copy(t->config.key_dtype, key_at(t, t->count), key, 1));
  WEIR_TRY(copy_value(t, t->count, value));
  t->slots[probe(t, key)] = t->count + 1;
  t->count += 1;
  return NULL;
}

static weir_status_t* put(weir_lookup_table_t* t, const char* key, const char* value) {
  size_t entry = find_entry(t, key);
  return entry < t->count ? copy_value(t, entry, value) : add(t, key, value);
}

// ---- removal ----
// Frees |slot| and moves back those that were pushed beyond it.
static void free_slot(weir_lookup_table_t* t, size_t slot) {
  size_t mask = t->slot_count - 1;
  t->slots[slot] = 0;
  for (size_t next = (slot + 1) & mask; t->slots[next] != 0; next = (next + 1) & mask) {
    size_t number = t->slots[next];
    t->slots[next] = 0;
    t->slots[probe(t, key_at(t, number - 1))] = number;
  }
}

// Exchanges the elements at |a| and |b| as bytes.
static void swap_elements(char* a, char* b, size_t size) {
  char spare[64];
  for (size_t at = 0; at < size; at += sizeof(spare)) {
    size_t n = WEIR_MIN(size - at, sizeof(spare));
    memcpy(spare, a + at, n);
    memcpy(a + at, b + at, n);
    memcpy(b + at, spare, n);
  }
}

static void remove_key(weir_lookup_table_t* t, const char* key) {
  size_t entry = find_entry(t, key);
  if (entry == t->count) return;
  size_t last = t->count - 1;
  free_slot(t, probe(t, key));
  if (entry != last) {
    t->slots[probe(t, key_at(t, last))] = entry + 1;
    swap_elements(key_at(t, entry), key_at(t, last), key_size(t));
    swap_elements(value_at(t, entry), value_at(t, last), value_size(t));
  }
  weir_elements_destroy(t->config.key_dtype, key_at(t, last), 1);
  weir_elements_init(t->config.key_dtype, key_at(t, last), 1);
  weir_elements_destroy(t->config.value_dtype, value_at(t, last), t->width);
  weir_elements_init(t->config.value_dtype, value_at(t, last), t->width);
  t->count = last;
}

static void clear(weir_lookup_table_t* t) {
  weir_elements_destroy(t->config.key_dtype, t->keys, (int64_t)t->capacity);
  weir_elements_destroy(t->config.value_dtype, t->values, (int64_t)t->capacity * t->width);
  weir_free(t->keys);
  weir_free(t->values);
  weir_free(t->slots);
  t->keys = t->values = NULL;
  t->slots = NULL;
  t->count = t->capacity = t->slot_count = 0;
}

// ---- checks ----
static weir_status_t* check_key_type(const weir_lookup_table_t* t, const weir_tensor_t* keys) {
  if (weir_tensor_type(keys) == t->config.key_dtype) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Key must be type %s but got %s",
                     weir_dtype_name(t->config.key_dtype), weir_dtype_name(weir_tensor_type(keys)));
}

static weir_status_t* check_types(const weir_lookup_table_t* t, const weir_tensor_t* keys,
                                  const weir_tensor_t* values) {
  WEIR_TRY(check_key_type(t, keys));
  if (weir_tensor_type(values) == t->config.value_dtype) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Value must be type %s but got %s",
                     weir_dtype_name(t->config.value_dtype),
                     weir_dtype_name(weir_tensor_type(values)));
}

weir_status_t* weir_lookup_table_values_shape(const weir_lookup_table_t* table,
                                              const weir_tensor_t* keys, int* out_rank,
                                              int64_t* dims) {
  int rank = keys->rank;
  if (table->dense) WEIR_TRY(weir_dense_table_batch_rank(table->dense, keys, &rank));
  *out_rank = rank + table->config.value_rank;
  if (*out_rank > WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "Too many dimensions in tensor: %d", *out_rank);
  memcpy(dims, keys->dims, sizeof(int64_t) * (size_t)rank);
  if (table->config.value_rank > 0) {
    memcpy(dims + rank, table->value_dims, sizeof(int64_t) * (size_t)table->config.value_rank);
  }
  return NULL;
}

static bool has_shape(const weir_tensor_t* t, int rank, const int64_t* dims) {
  return t->rank == rank &&
         (rank == 0 || memcmp(t->dims, dims, sizeof(int64_t) * (size_t)rank) == 0);
}

static weir_status_t* check_pairs(const weir_lookup_table_t* t, const weir_tensor_t* keys,
                                  const weir_tensor_t* values) {
  char expected[WEIR_SHAPE_TEXT_SIZE], got[WEIR_SHAPE_TEXT_SIZE];
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  WEIR_TRY(check_types(t, keys, values));
  WEIR_TRY(weir_lookup_table_values_shape(t, keys, &rank, dims));
  if (has_shape(values, rank, dims)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Expected shape %s for value, got %s",
                     weir_shape_text(rank, dims, expected), weir_tensor_shape_text(values, got));
}

// The first element of value |index|.
static const char* value_in(const weir_lookup_table_t* t, const weir_tensor_t* values,
                            int64_t index) {
  return (const char*)values->data + (size_t)index * value_size(t);
}

static const char* element(const weir_tensor_t* tensor, int64_t index) {
  return (const char*)tensor->data + (size_t)index * weir_dtype_size(weir_tensor_type(tensor));
}

// ---- operations ----
int64_t weir_lookup_table_size(weir_lookup_table_t* table) {
  if (table->dense) return weir_dense_table_size(table->dense);
  weir_mutex_lock(&table->mu);
  int64_t size = table->is_initialized ? (int64_t)table->count : 0;
  weir_mutex_unlock(&table->mu);
  return size;
}

static weir_status_t* add_once(weir_lookup_table_t* t, const char* key, const char* value) {
  size_t entry = find_entry(t, key);
  if (entry == t->count) return add(t, key, value);
  if (elements_equal(t->config.value_dtype, value_at(t, entry), value)) return NULL;
  return WEIR_STATUS(FAILED_PRECONDITION, "HashTable has different value for same key");
}

static weir_status_t* initialize_locked(weir_lookup_table_t* t, const weir_tensor_t* keys,
                                        const weir_tensor_t* values) {
  if (keys->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "keys and values cannot be empty tensors.");
  }
  if (t->is_initialized) {
    if ((int64_t)t->count == keys->count) return NULL;
    return WEIR_STATUS(FAILED_PRECONDITION, "Table was already initialized with different data.");
  }
  for (int64_t i = 0; i < keys->count; ++i) {
    WEIR_TRY(add_once(t, element(keys, i), value_in(t, values, i)));
  }
  t->is_initialized = true;
  return NULL;
}

weir_status_t* weir_lookup_table_check_initializable(const weir_lookup_table_t* table) {
  if (!table->config.is_mutable) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Table is not initializable: it is filled by inserting");
}

weir_status_t* weir_lookup_table_initialize(weir_lookup_table_t* table, const weir_tensor_t* keys,
                                            const weir_tensor_t* values) {
  WEIR_TRY(weir_lookup_table_check_initializable(table));
  WEIR_TRY(check_types(table, keys, values));
  weir_mutex_lock(&table->mu);
  weir_status_t* status = initialize_locked(table, keys, values);
  weir_mutex_unlock(&table->mu);
  return status;
}

static weir_status_t* check_default(const weir_lookup_table_t* t, const weir_tensor_t* keys,
                                    const weir_tensor_t* value) {
  char one[WEIR_SHAPE_TEXT_SIZE], full[WEIR_SHAPE_TEXT_SIZE], got[WEIR_SHAPE_TEXT_SIZE];
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  if (has_shape(value, t->config.value_rank, t->value_dims)) return NULL;
  WEIR_TRY(weir_lookup_table_values_shape(t, keys, &rank, dims));
  if (has_shape(value, rank, dims)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Expected shape %s or %s for default value, got %s",
                     weir_shape_text(t->config.value_rank, t->value_dims, one),
                     weir_shape_text(rank, dims, full), weir_tensor_shape_text(value, got));
}

static weir_status_t* find_locked(weir_lookup_table_t* t, const weir_tensor_t* keys,
                                  const weir_tensor_t* default_value, weir_tensor_t* out) {
  const size_t size = value_size(t);
  // A table that is filled once has one default: the first.
  const bool is_full = default_value->rank == keys->rank + t->config.value_rank &&
                       default_value->count == keys->count * t->width;
  const int64_t step = t->config.is_mutable && is_full ? 1 : 0;
  if (!t->is_initialized) return WEIR_STATUS(FAILED_PRECONDITION, "Table not initialized.");
  for (int64_t i = 0; i < keys->count; ++i) {
    size_t entry = find_entry(t, element(keys, i));
    const char* value =
        entry < t->count ? value_at(t, entry) : value_in(t, default_value, i * step);
    WEIR_TRY(weir_elements_copy(t->config.value_dtype, (char*)out->data + (size_t)i * size, value,
                                t->width));
  }
  return NULL;
}

weir_status_t* weir_lookup_table_find(weir_lookup_table_t* table, const weir_tensor_t* keys,
                                      const weir_tensor_t* default_value,
                                      weir_tensor_t* out_values) {
  WEIR_TRY(check_types(table, keys, default_value));
  WEIR_TRY(check_default(table, keys, default_value));
  if (table->dense) return weir_dense_table_find(table->dense, keys, default_value, out_values);
  weir_mutex_lock(&table->mu);
  weir_status_t* status = find_locked(table, keys, default_value, out_values);
  weir_mutex_unlock(&table->mu);
  return status;
}

static weir_status_t* put_all(weir_lookup_table_t* t, const weir_tensor_t* keys,
                              const weir_tensor_t* values) {
  for (int64_t i = 0; i < keys->count; ++i)
    WEIR_TRY(put(t, element(keys, i), value_in(t, values, i)));
  return NULL;
}

weir_status_t* weir_lookup_table_insert(weir_lookup_table_t* table, const weir_tensor_t* keys,
                                        const weir_tensor_t* values) {
  WEIR_TRY(check_pairs(table, keys, values));
  if (!table->config.is_mutable) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "Insert not supported by InitializableLookupTable implementations");
  }
  if (table->dense) return weir_dense_table_insert(table->dense, keys, values);
  weir_mutex_lock(&table->mu);
  weir_status_t* status = put_all(table, keys, values);
  weir_mutex_unlock(&table->mu);
  return status;
}

weir_status_t* weir_lookup_table_import(weir_lookup_table_t* table, const weir_tensor_t* keys,
                                        const weir_tensor_t* values) {
  if (table->dense) {
    WEIR_TRY(check_types(table, keys, values));
    return weir_dense_table_import(table->dense, keys, values);
  }
  WEIR_TRY(check_pairs(table, keys, values));
  weir_mutex_lock(&table->mu);
  weir_status_t* status = NULL;
  if (table->config.is_mutable) {
    clear(table);
    status = put_all(table, keys, values);
  } else {
    status = initialize_locked(table, keys, values);
  }
  weir_mutex_unlock(&table->mu);
  return status;
}

weir_status_t* weir_lookup_table_remove(weir_lookup_table_t* table, const weir_tensor_t* keys) {
  WEIR_TRY(check_key_type(table, keys));
  if (!table->config.is_mutable) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "Remove not supported by InitializableLookupTable implementations");
  }
  if (table->dense) return weir_dense_table_remove(table->dense, keys);
  weir_mutex_lock(&table->mu);
  for (int64_t i = 0; i < keys->count; ++i) remove_key(table, element(keys, i));
  weir_mutex_unlock(&table->mu);
  return NULL;
}

static weir_status_t* export_locked(weir_lookup_table_t* t, weir_tensor_t** out_keys,
                                    weir_tensor_t** out_values) {
  const int64_t count = (int64_t)t->count;
  const int rank = 1 + t->config.value_rank;
  int64_t dims[WEIR_MAX_RANK];
  if (!t->is_initialized) return WEIR_STATUS(ABORTED, "HashTable is not initialized.");
  WEIR_TRY(weir_tensor_create(t->config.key_dtype, 1, &count, out_keys));
  dims[0] = count;
  if (rank > 1) memcpy(dims + 1, t->value_dims, sizeof(int64_t) * (size_t)(rank - 1));
  WEIR_TRY(weir_tensor_create(t->config.value_dtype, rank, dims, out_values));
  if (count == 0) return NULL;
  WEIR_TRY(weir_elements_copy(t->config.key_dtype, (*out_keys)->data, t->keys, count));
  return weir_elements_copy(t->config.value_dtype, (*out_values)->data, t->values,
                            count * t->width);
}

weir_status_t* weir_lookup_table_export(weir_lookup_table_t* table, weir_tensor_t** out_keys,
                                        weir_tensor_t** out_values) {
  weir_tensor_t *keys = NULL, *values = NULL;
  if (table->dense) return weir_dense_table_export(table->dense, out_keys, out_values);
  weir_mutex_lock(&table->mu);
  weir_status_t* status = export_locked(table, &keys, &values);
  weir_mutex_unlock(&table->mu);
  if (status) {
    weir_tensor_release(keys);
    weir_tensor_release(values);
    return status;
  }
  *out_keys = keys;
  *out_values = values;
  return NULL;
}

// ---- life ----
static void table_destroy(weir_resource_t* resource) {
  weir_lookup_table_t* table = (weir_lookup_table_t*)resource;
  clear(table);
  weir_dense_table_destroy(table->dense);
  weir_mutex_destroy(&table->mu);
  weir_free(table->value_dims);
  weir_free(table);
}

static void table_describe(weir_resource_t* resource, weir_strbuf_t* out) {
  weir_lookup_table_t* table = (weir_lookup_table_t*)resource;
  weir_strbuf_printf(out, "%s of %lld entries, %s to %s",
                     table->config.is_mutable ? "MutableHashTable" : "HashTable",
                     (long long)weir_lookup_table_size(table),
                     weir_dtype_name(table->config.key_dtype),
                     weir_dtype_name(table->config.value_dtype));
}

const weir_resource_type_t weir_lookup_table_type = {
    .name = WEIR_LOOKUP_TABLE_TYPE_NAME, .destroy = table_destroy, .describe = table_describe};

weir_status_t* weir_lookup_table_create(const weir_lookup_table_config_t* config,
                                        weir_lookup_table_t** out_table) {
  weir_dtype_t key = config->key_dtype;
  if (key != WEIR_DTYPE_INT32 && key != WEIR_DTYPE_INT64 && key != WEIR_DTYPE_STRING) {
    return WEIR_STATUS(INVALID_ARGUMENT, "A table cannot have keys of type %s",
                       weir_dtype_name(key));
  }
  if (config->value_rank > WEIR_MAX_RANK - 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "Too many dimensions in tensor: %d", config->value_rank);
  int64_t width = 0;
  WEIR_TRY(weir_shape_count(config->value_dtype, config->value_rank, config->value_dims, &width));
  weir_dense_table_t* dense = NULL;
  if (config->dense) WEIR_TRY(weir_dense_table_create(config, &dense));
  weir_lookup_table_t* table = weir_calloc(1, sizeof(*table));
  int64_t* dims = weir_alloc_array((size_t)config->value_rank, sizeof(*dims));
  if (!table || !dims) {
    weir_dense_table_destroy(dense);
    weir_free(table);
    weir_free(dims);
    return weir_out_of_memory();
  }
  weir_resource_init(&table->base, &weir_lookup_table_type);
  weir_mutex_init(&table->mu);
  table->config = *config;
  table->config.value_dims = table->value_dims = dims;
  table->config.dense = NULL;
  table->dense = dense;
  table->width = width;
  if (config->value_rank > 0)
    memcpy(dims, config->value_dims, sizeof(*dims) * (size_t)config->value_rank);
  table->is_initialized = config->is_mutable;
  *out_table = table;
  return NULL;
}

const weir_lookup_table_config_t* weir_lookup_table_config(const weir_lookup_table_t* table) {
  return &table->config;
}

bool weir_lookup_table_is_dense(const weir_lookup_table_t* table) { return table->dense != NULL; }
