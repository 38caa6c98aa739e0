// sql.c — SqlDataset: the rows of a query of an SQLite database.
#include "file/sqlite.h"
#include "ops/data/dataset.h"

typedef struct sql_t {
  weir_data_t base;
  char* path;
  char* query;
} sql_t;

typedef struct sql_iterator_t {
  weir_iterator_t base;
  weir_sqlite_t* db;  // NULL: not open
  bool is_over;       // also after a row that failed
} sql_iterator_t;

static bool is_column_type(weir_dtype_t type) {
  switch (type) {
    case WEIR_DTYPE_STRING:
    case WEIR_DTYPE_INT8:
    case WEIR_DTYPE_INT16:
    case WEIR_DTYPE_INT32:
    case WEIR_DTYPE_INT64:
    case WEIR_DTYPE_UINT8:
    case WEIR_DTYPE_UINT16:
    case WEIR_DTYPE_BOOL:
    case WEIR_DTYPE_DOUBLE: return true;
    default: return false;
  }
}

static weir_status_t* check_columns(weir_kernel_ctx_t* ctx) {
  const weir_attr_t* types = weir_attrs_list(weir_kernel_attrs(ctx), "output_types");
  const weir_attr_t* shapes = weir_attrs_list(weir_kernel_attrs(ctx), "output_shapes");
  for (size_t i = 0; i < types->count; ++i) {
    if (!is_column_type(types->u.types[i]))
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Each element of `output_types_` must be one of: DT_STRING, DT_INT8, "
                         "DT_INT16, DT_INT32, DT_INT64, DT_UINT8, DT_UINT16, DT_BOOL, DT_DOUBLE ");
  }
  for (size_t i = 0; i < shapes->count; ++i) {
    if (shapes->u.shapes[i]->rank != 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "Each element of `output_shapes_` must be a scalar.");
  }
  return NULL;
}

// A scalar string as C has them.
static weir_status_t* read_text(weir_kernel_ctx_t* ctx, int i, const char* name, char** out_text) {
  weir_view_t text;
  WEIR_TRY(weir_dataset_string(ctx, i, name, &text));
  if (text.size > 0 && memchr(text.data, '\0', text.size))
    return WEIR_STATUS(INVALID_ARGUMENT, "%s '%.*s' holds a zero byte", name, WEIR_VIEW_ARG(text));
  *out_text = weir_strndup(text.data, text.size);
  return *out_text ? NULL : weir_out_of_memory();
}

static weir_status_t* sql_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  sql_t* self = (sql_t*)dataset;
  weir_view_t driver;
  WEIR_TRY(check_columns(ctx));
  WEIR_TRY(weir_dataset_string(ctx, 0, "driver_name", &driver));
  WEIR_TRY(read_text(ctx, 1, "data_source_name", &self->path));
  WEIR_TRY(read_text(ctx, 2, "query", &self->query));
  if (!weir_view_equal(driver, weir_view_of("sqlite")))
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The database type, %.*s, is not supported by SqlDataset. The set of "
                       "supported databases is: {'sqlite'}.",
                       WEIR_VIEW_ARG(driver));
  return weir_dataset_set_attrs(ctx, "output_types", "output_shapes", dataset);
}

static void sql_deinit(weir_data_t* dataset) {
  weir_free(((sql_t*)dataset)->path);
  weir_free(((sql_t*)dataset)->query);
}

// ---- iterator ----

static weir_status_t* begin_query(const sql_t* self, weir_sqlite_t* db) {
  int count = 0;
  WEIR_TRY(weir_sqlite_prepare(db, self->query, &count));
  if (count == self->base.count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The number of columns in query (%d) must match the number of elements in "
                     "output_types (%d).",
                     count, self->base.count);
}

// A database or query that cannot be opened is tried again by the next call.
static weir_status_t* open_query(sql_iterator_t* self) {
  const sql_t* sql = (const sql_t*)self->base.dataset;
  weir_sqlite_t* db = NULL;
  WEIR_TRY(weir_sqlite_open(sql->path, &db));
  weir_status_t* status = begin_query(sql, db);
  if (status) weir_sqlite_close(db);
  else self->db = db;
  return status;
}

static weir_status_t* read_column(weir_sqlite_t* db, int i, weir_tensor_t* tensor) {
  void* data = tensor->data;
  switch (weir_tensor_type(tensor)) {
    case WEIR_DTYPE_STRING: {
      weir_view_t bytes = weir_sqlite_bytes(db, i);
      return weir_string_set(data, bytes.data, bytes.size);
    }
    case WEIR_DTYPE_DOUBLE: *(double*)data = weir_sqlite_double(db, i); break;
    case WEIR_DTYPE_BOOL: *(bool*)data = weir_sqlite_int(db, i) != 0; break;
    case WEIR_DTYPE_INT8: *(int8_t*)data = (int8_t)weir_sqlite_int(db, i); break;
    case WEIR_DTYPE_UINT8: *(uint8_t*)data = (uint8_t)weir_sqlite_int(db, i); break;
    case WEIR_DTYPE_INT16: *(int16_t*)data = (int16_t)weir_sqlite_int(db, i); break;
    case WEIR_DTYPE_UINT16: *(uint16_t*)data = (uint16_t)weir_sqlite_int(db, i); break;
    case WEIR_DTYPE_INT32: *(int32_t*)data = (int32_t)weir_sqlite_int(db, i); break;
    default: *(int64_t*)data = weir_sqlite_int(db, i); break;
  }
  return NULL;
}

static weir_status_t* sql_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                               weir_tensor_t** out, bool* out_is_end) {
  sql_iterator_t* self = (sql_iterator_t*)iterator;
  *out_is_end = self->is_over;
  if (self->is_over) return NULL;
  if (!self->db) WEIR_TRY(open_query(self));
  weir_status_t* status = weir_sqlite_step(self->db, cancel, &self->is_over);
  *out_is_end = self->is_over;
  for (int i = 0; i < iterator->dataset->count && !status && !self->is_over; ++i) {
    status = weir_tensor_create(iterator->dataset->types[i], 0, NULL, &out[i]);
    if (!status) status = read_column(self->db, i, out[i]);
  }
  return status;
}

static void sql_stop(weir_iterator_t* iterator) {
  weir_sqlite_close(((sql_iterator_t*)iterator)->db);
}

static const weir_iterator_vtable_t sql_iterator = {
    .size = sizeof(sql_iterator_t), .next = sql_next, .stop = sql_stop};
static const weir_dataset_vtable_t sql_dataset = {.name = "Sql",
                                                  .size = sizeof(sql_t),
                                                  .init = sql_init,
                                                  .deinit = sql_deinit,
                                                  .cardinality = weir_dataset_unknown_size,
                                                  .iterator = &sql_iterator};

static weir_status_t* sql_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &sql_dataset);
}

static weir_status_t* sql_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_dataset_shape_scalars(ctx);
}

const weir_op_module_t weir_ops_data_sql = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SqlDataset",
         .attrs = WEIR_DATASET_SPEC,
         .inputs = "driver_name: string; data_source_name: string; query: string",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The rows of a query of an SQLite database",
         .infer_shape = sql_shape,
         .kernels = WEIR_DATASET_KERNEL(sql_cpu)},
        {0}}};
