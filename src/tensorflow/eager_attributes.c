// eager_attributes.c — TFE_OpSetAttr*, and what ops say of their attributes.
#include "tensorflow/eager_internal.h"
#include "wire/wire.h"

// ---- setting ----

void tfe_op_fail(TFE_Op* op, weir_status_t* take_status) {
  if (op->error) weir_status_destroy(take_status);
  else op->error = take_status;
}

static bool is_settled(const TFE_Op* op, const char* name) {
  for (int i = 0; i < op->op->attr_count && i < 64; ++i) {
    if (op->told >> i & 1 && strcmp(op->op->attrs[i].name, name) == 0) return true;
  }
  for (size_t i = 0; i < op->attr_count; ++i) {
    if (strcmp(op->attrs[i].name, name) == 0) return true;
  }
  return false;
}

static weir_status_t* set(TFE_Op* op, weir_named_attr_t attr) {
  weir_attr_t value = {0};
  if (is_settled(op, attr.name)) return NULL;
  WEIR_TRY(weir_attr_clone(&attr.value, &op->arena, &op->tensors, &value));
  const char* name = weir_arena_strndup(&op->arena, attr.name, strlen(attr.name));
  if (!name || !WEIR_GROW(op->attrs, op->attr_capacity, op->attr_count + 1))
    return weir_out_of_memory();
  op->attrs[op->attr_count++] = (weir_named_attr_t){.name = name, .value = value};
  return NULL;
}

void tfe_op_set(TFE_Op* op, weir_named_attr_t attr) {
  weir_status_t* status = set(op, attr);
  if (status) tfe_op_fail(op, status);
}

static void* array_of(TFE_Op* op, int count, size_t size) {
  void* array = count >= 0 ? weir_arena_array(&op->arena, (size_t)count, size) : NULL;
  if (!array)
    tfe_op_fail(op, count < 0 ? WEIR_STATUS(INVALID_ARGUMENT, "a list of %d values", count)
                              : weir_out_of_memory());
  return array;
}

void TFE_OpSetAttrString(TFE_Op* op, const char* attr_name, const void* value, size_t length) {
  tfe_op_set(op, weir_attr_view(attr_name, weir_view(value, length)));
}

void TFE_OpSetAttrInt(TFE_Op* op, const char* attr_name, int64_t value) {
  tfe_op_set(op, weir_attr_int(attr_name, value));
}

void TFE_OpSetAttrFloat(TFE_Op* op, const char* attr_name, float value) {
  tfe_op_set(op, weir_attr_float(attr_name, value));
}

void TFE_OpSetAttrBool(TFE_Op* op, const char* attr_name, unsigned char value) {
  tfe_op_set(op, weir_attr_bool(attr_name, value != 0));
}

void TFE_OpSetAttrType(TFE_Op* op, const char* attr_name, TF_DataType value) {
  tfe_op_set(op, weir_attr_type(attr_name, (weir_dtype_t)value));
}

static weir_status_t* make_shape(TFE_Op* op, const int64_t* dims, int num_dims,
                                 const weir_shape_t** out_shape) {
  if (num_dims > WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Value specified for shape has %d dimensions which is over the limit of %d.",
                       num_dims, WEIR_MAX_RANK);
  *out_shape = num_dims < 0 ? &weir_shape_unknown : weir_shape_make(&op->arena, num_dims, dims);
  return *out_shape ? NULL : weir_out_of_memory();
}

void TFE_OpSetAttrShape(TFE_Op* op, const char* attr_name, const int64_t* dims, const int num_dims,
                        TF_Status* out_status) {
  const weir_shape_t* shape = NULL;
  if (tf_status_take(out_status, make_shape(op, dims, num_dims, &shape)))
    tfe_op_set(op, weir_attr_shape(attr_name, shape));
}

static weir_func_t func_of(const TFE_Op* value) {
  return (weir_func_t){.name = weir_view_of(value->name),
                       .attrs = {.items = value->attrs, .count = value->attr_count}};
}

void TFE_OpSetAttrFunction(TFE_Op* op, const char* attr_name, const TFE_Op* value) {
  const weir_func_t func = func_of(value);
  tfe_op_set(op, weir_attr_func(attr_name, &func));
}

void TFE_OpSetAttrFunctionName(TFE_Op* op, const char* attr_name, const char* data, size_t length) {
  const weir_func_t func = {.name = weir_view(data, length)};
  tfe_op_set(op, weir_attr_func(attr_name, &func));
}

void TFE_OpSetAttrTensor(TFE_Op* op, const char* attr_name, TF_Tensor* tensor, TF_Status* status) {
  weir_tensor_t *in = NULL, *copy = NULL;
  weir_status_t* result = tf_tensor_in(tensor, &in);
  if (!result) result = weir_tensor_copy(in, &copy);
  if (tf_status_take(status, result)) tfe_op_set(op, weir_attr_tensor(attr_name, copy));
  weir_tensor_release(in);
  weir_tensor_release(copy);
}

// ---- lists ----

void TFE_OpSetAttrStringList(TFE_Op* op, const char* attr_name, const void* const* values,
                             const size_t* lengths, int num_values) {
  weir_view_t* views = array_of(op, num_values, sizeof(*views));
  if (!views) return;
  for (int i = 0; i < num_values; ++i) views[i] = weir_view(values[i], lengths[i]);
  tfe_op_set(op, weir_attr_strings(attr_name, views, (size_t)num_values));
}

void TFE_OpSetAttrIntList(TFE_Op* op, const char* attr_name, const int64_t* values,
                          int num_values) {
  tfe_op_set(op, weir_attr_ints(attr_name, values, (size_t)WEIR_MAX(num_values, 0)));
}

void TFE_OpSetAttrFloatList(TFE_Op* op, const char* attr_name, const float* values,
                            int num_values) {
  tfe_op_set(op, weir_attr_floats(attr_name, values, (size_t)WEIR_MAX(num_values, 0)));
}

void TFE_OpSetAttrBoolList(TFE_Op* op, const char* attr_name, const unsigned char* values,
                           int num_values) {
  bool* bools = array_of(op, num_values, sizeof(*bools));
  if (!bools) return;
  for (int i = 0; i < num_values; ++i) bools[i] = values[i] != 0;
  tfe_op_set(op, (weir_named_attr_t){.name = attr_name,
                                     .value = {.kind = WEIR_ATTR_BOOL,
                                               .is_list = true,
                                               .count = (size_t)num_values,
                                               .u.bools = bools}});
}

void TFE_OpSetAttrTypeList(TFE_Op* op, const char* attr_name, const TF_DataType* values,
                           int num_values) {
  weir_dtype_t* types = array_of(op, num_values, sizeof(*types));
  if (!types) return;
  for (int i = 0; i < num_values; ++i) types[i] = (weir_dtype_t)values[i];
  tfe_op_set(op, weir_attr_types(attr_name, types, (size_t)num_values));
}

void TFE_OpSetAttrShapeList(TFE_Op* op, const char* attr_name, const int64_t** dims,
                            const int* num_dims, int num_values, TF_Status* out_status) {
  const weir_shape_t** shapes = array_of(op, num_values, sizeof(*shapes));
  weir_status_t* result = shapes ? NULL : weir_out_of_memory();
  for (int i = 0; i < num_values && !result; ++i)
    result = make_shape(op, dims[i], num_dims[i], &shapes[i]);
  if (tf_status_take(out_status, result))
    tfe_op_set(op, weir_attr_shapes(attr_name, shapes, (size_t)num_values));
}

void TFE_OpSetAttrFunctionList(TFE_Op* op, const char* attr_name, const TFE_Op** value,
                               int num_values) {
  weir_func_t* funcs = array_of(op, num_values, sizeof(*funcs));
  if (!funcs) return;
  for (int i = 0; i < num_values; ++i) funcs[i] = func_of(value[i]);
  tfe_op_set(op, (weir_named_attr_t){.name = attr_name,
                                     .value = {.kind = WEIR_ATTR_FUNC,
                                               .is_list = true,
                                               .count = (size_t)num_values,
                                               .u.funcs = funcs}});
}

// ---- as a whole ----

const TFE_OpAttrs* TFE_OpGetAttrs(const TFE_Op* op) { return (const TFE_OpAttrs*)op; }

void TFE_OpAddAttrs(TFE_Op* op, const TFE_OpAttrs* attrs) {
  const TFE_Op* from = (const TFE_Op*)attrs;
  for (size_t i = 0; i < from->attr_count && from != op; ++i) tfe_op_set(op, from->attrs[i]);
}

void TFE_OpAttrsSerialize(const TFE_OpAttrs* attrs, TF_Buffer* buf, TF_Status* status) {
  enum { LIST_NAME = 1, LIST_ATTR = 2 };
  const TFE_Op* op = (const TFE_Op*)attrs;
  weir_strbuf_t bytes = {0};
  weir_wire_put_string(&bytes, LIST_NAME, op->name);
  weir_status_t* result = NULL;
  for (size_t i = 0; i < op->attr_count && !result; ++i)
    result = weir_attr_write_entry(&op->attrs[i], LIST_ATTR, &bytes);
  if (!result) result = weir_strbuf_finish(&bytes);
  if (!result) result = tf_buffer_take(buf, &bytes);
  weir_strbuf_free(&bytes);
  tf_status_take(status, result);
}

// What is parsed points into the message: it is copied.
void TFE_OpSetAttrValueProto(const TFE_Op* op, const char* attr_name, const void* proto,
                             size_t proto_len, TF_Status* status) {
  TFE_Op* own = (TFE_Op*)(uintptr_t)op;  // TensorFlow's signature says const
  weir_attr_t value = {0};
  weir_status_t* result =
      weir_attr_parse(weir_view(proto, proto_len), &own->arena, &own->tensors, &value);
  value.raw = weir_view("", 0);
  if (!result) result = set(own, (weir_named_attr_t){.name = attr_name, .value = value});
  tf_status_take(status, result);
}

// ---- kinds ----

static TF_AttrType kind_of(weir_attr_kind_t kind) {
  static const TF_AttrType kinds[] = {[WEIR_ATTR_STRING] = TF_ATTR_STRING,
                                      [WEIR_ATTR_INT] = TF_ATTR_INT,
                                      [WEIR_ATTR_FLOAT] = TF_ATTR_FLOAT,
                                      [WEIR_ATTR_BOOL] = TF_ATTR_BOOL,
                                      [WEIR_ATTR_TYPE] = TF_ATTR_TYPE,
                                      [WEIR_ATTR_SHAPE] = TF_ATTR_SHAPE,
                                      [WEIR_ATTR_TENSOR] = TF_ATTR_TENSOR,
                                      [WEIR_ATTR_FUNC] = TF_ATTR_FUNC,
                                      [WEIR_ATTR_PLACEHOLDER] = TF_ATTR_PLACEHOLDER};
  return kinds[kind];
}

TF_AttrType TFE_OpGetAttrType(TFE_Op* op, const char* attr_name, unsigned char* is_list,
                              TF_Status* status) {
  const weir_attr_def_t* def = weir_op_attr(op->op, attr_name);
  weir_status_t* result =
      def ? NULL
          : WEIR_STATUS(INVALID_ARGUMENT, "Attribute '%s' does not exist for this operation",
                        attr_name);
  if (!tf_status_take(status, result) || !def) return TF_ATTR_INT;
  *is_list = def->is_list;
  return kind_of(def->kind);
}

TF_AttrType TFE_OpNameGetAttrType(TFE_Context* ctx, const char* op_or_function_name,
                                  const char* attr_name, unsigned char* is_list,
                                  TF_Status* status) {
  TFE_Op* op = TFE_NewOp(ctx, op_or_function_name, status);
  TF_AttrType type = op ? TFE_OpGetAttrType(op, attr_name, is_list, status) : TF_ATTR_INT;
  TFE_DeleteOp(op);
  return type;
}
