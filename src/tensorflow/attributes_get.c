// attributes_get.c — TF_OperationGetAttr*: what attributes operations have, and their values.
#include "op/spec.h"
#include "tensorflow/internal.h"

const weir_attr_t* tf_find_attr(const weir_node_def_t* def, const char* name, TF_Status* status) {
  if (TF_GetCode(status) != TF_OK) return NULL;  // as in TensorFlow: an earlier error sticks
  const weir_attr_t* value = weir_attrs_find(def->attrs, name);
  if (value) return value;
  tf_status_take(status, WEIR_STATUS(INVALID_ARGUMENT, "Operation '%s' has no attr named '%s'.",
                                     def->name, name));
  return NULL;
}

// ---- metadata ----

static const TF_AttrType types_of_kinds[] = {
    [WEIR_ATTR_STRING] = TF_ATTR_STRING,
    [WEIR_ATTR_INT] = TF_ATTR_INT,
    [WEIR_ATTR_FLOAT] = TF_ATTR_FLOAT,
    [WEIR_ATTR_BOOL] = TF_ATTR_BOOL,
    [WEIR_ATTR_TYPE] = TF_ATTR_TYPE,
    [WEIR_ATTR_SHAPE] = TF_ATTR_SHAPE,
    [WEIR_ATTR_TENSOR] = TF_ATTR_TENSOR,
    [WEIR_ATTR_FUNC] = TF_ATTR_FUNC,
    [WEIR_ATTR_PLACEHOLDER] = TF_ATTR_PLACEHOLDER,
};

// An empty list does not say of what: the op does.
static weir_attr_kind_t kind_of(const weir_node_def_t* def, const char* name,
                                const weir_attr_t* value) {
  if (value->kind != WEIR_ATTR_NONE && !(value->is_list && value->count == 0)) return value->kind;
  const weir_attr_def_t* declared = def->op ? weir_op_attr(def->op, name) : NULL;
  return declared ? declared->kind : WEIR_ATTR_STRING;
}

static int64_t rank_or_zero(const weir_shape_t* shape) { return WEIR_MAX(shape->rank, 0); }

static int64_t total_size(weir_attr_kind_t kind, const weir_attr_t* value) {
  int64_t total = 0;
  if (kind == WEIR_ATTR_STRING || kind == WEIR_ATTR_PLACEHOLDER) {
    if (!value->is_list) return (int64_t)value->u.s.size;
    for (size_t i = 0; i < value->count; ++i) total += (int64_t)value->u.strings[i].size;
    return total;
  }
  if (kind != WEIR_ATTR_SHAPE) return -1;
  if (!value->is_list) return value->u.shape->rank < 0 ? -1 : value->u.shape->rank;
  for (size_t i = 0; i < value->count; ++i) total += rank_or_zero(value->u.shapes[i]);
  return total;
}

TF_AttrMetadata tf_attr_metadata(const weir_node_def_t* def, const char* attr_name,
                                 TF_Status* status) {
  TF_AttrMetadata metadata = {.list_size = 0};
  const weir_attr_t* value = tf_find_attr(def, attr_name, status);
  if (!value) return metadata;
  const weir_attr_kind_t kind = kind_of(def, attr_name, value);
  metadata.is_list = value->is_list;
  metadata.list_size = value->is_list ? (int64_t)value->count : -1;
  metadata.type = types_of_kinds[kind];
  metadata.total_size = total_size(kind, value);
  return metadata;
}

TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation* oper, const char* attr_name,
                                            TF_Status* status) {
  return tf_attr_metadata(&tf_node(oper)->def, attr_name, status);
}

// ---- values ----

static weir_status_t* check_kind(const char* name, const weir_attr_t* value, weir_attr_kind_t kind,
                                 bool is_list) {
  const bool is_empty = value->is_list && value->count == 0;
  if (value->is_list == is_list && (value->kind == kind || is_empty)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Value for '%s' is not a %s%s.", name,
                     is_list ? "list of " : "", weir_attr_kind_name(kind, false));
}

weir_status_t* tf_attr_of(const weir_node_def_t* def, const char* name, weir_attr_kind_t kind,
                          bool is_list, const weir_attr_t** out_value) {
  const weir_attr_t* value = weir_attrs_find(def->attrs, name);
  if (!value)
    return WEIR_STATUS(NOT_FOUND, "No attr named '%s' in node '%s' (%s)", name, def->name,
                       def->op_name);
  WEIR_TRY(check_kind(name, value, kind, is_list));
  *out_value = value;
  return NULL;
}

// The attribute, if it is of this kind.
static const weir_attr_t* get(TF_Operation* oper, const char* name, weir_attr_kind_t kind,
                              bool is_list, TF_Status* status) {
  const weir_attr_t* value = tf_find_attr(&tf_node(oper)->def, name, status);
  weir_status_t* failure = value ? check_kind(name, value, kind, is_list) : NULL;
  if (failure) tf_status_take(status, failure);
  return failure ? NULL : value;
}

static int at_most(const weir_attr_t* list, int max_values) {
  return list ? (int)WEIR_MIN((size_t)WEIR_MAX(max_values, 0), list->count) : 0;
}

void TF_OperationGetAttrString(TF_Operation* oper, const char* attr_name, void* value,
                               size_t max_length, TF_Status* status) {
  const weir_attr_t* attr = get(oper, attr_name, WEIR_ATTR_STRING, false, status);
  if (attr && max_length && attr->u.s.size)
    memcpy(value, attr->u.s.data, WEIR_MIN(attr->u.s.size, max_length));
}

weir_status_t* tf_attr_copy_strings(const weir_attr_t* attr, void** values, size_t* lengths,
                                    int max_values, void* storage, size_t storage_size) {
  char* next = storage;
  size_t left = storage_size;
  for (int i = 0; i < at_most(attr, max_values); ++i) {
    const weir_view_t text = attr->u.strings[i];
    values[i] = next;
    lengths[i] = text.size;
    if (text.size > left)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Not enough storage to hold the requested list of strings");
    if (text.size) memcpy(next, text.data, text.size);
    next += text.size;
    left -= text.size;
  }
  return NULL;
}

void TF_OperationGetAttrStringList(TF_Operation* oper, const char* attr_name, void** values,
                                   size_t* lengths, int max_values, void* storage,
                                   size_t storage_size, TF_Status* status) {
  const weir_attr_t* attr = get(oper, attr_name, WEIR_ATTR_STRING, true, status);
  weir_status_t* failure =
      tf_attr_copy_strings(attr, values, lengths, max_values, storage, storage_size);
  if (failure) tf_status_take(status, failure);
}

#define DEFINE_GETTERS(NAME, TYPE, KIND, SINGLE, LIST)                                          \
  void TF_OperationGetAttr##NAME(TF_Operation* oper, const char* attr_name, TYPE* value,        \
                                 TF_Status* status) {                                           \
    tf_status_clear(status);                                                                    \
    const weir_attr_t* attr = get(oper, attr_name, KIND, false, status);                        \
    if (attr) *value = (TYPE)attr->u.SINGLE;                                                    \
  }                                                                                             \
  void TF_OperationGetAttr##NAME##List(TF_Operation* oper, const char* attr_name, TYPE* values, \
                                       int max_values, TF_Status* status) {                     \
    tf_status_clear(status);                                                                    \
    const weir_attr_t* attr = get(oper, attr_name, KIND, true, status);                         \
    for (int i = 0; i < at_most(attr, max_values); ++i) values[i] = (TYPE)attr->u.LIST[i];      \
  }
DEFINE_GETTERS(Int, int64_t, WEIR_ATTR_INT, i, ints)
DEFINE_GETTERS(Float, float, WEIR_ATTR_FLOAT, f, floats)
DEFINE_GETTERS(Bool, unsigned char, WEIR_ATTR_BOOL, b, bools)
DEFINE_GETTERS(Type, TF_DataType, WEIR_ATTR_TYPE, type, types)
#undef DEFINE_GETTERS

// ---- shapes ----

void TF_OperationGetAttrShape(TF_Operation* oper, const char* attr_name, int64_t* value,
                              int num_dims, TF_Status* status) {
  const weir_attr_t* attr = get(oper, attr_name, WEIR_ATTR_SHAPE, false, status);
  if (!attr) return;
  for (int i = 0; i < attr->u.shape->rank && i < num_dims; ++i) value[i] = attr->u.shape->dims[i];
}

void TF_OperationGetAttrShapeList(TF_Operation* oper, const char* attr_name, int64_t** dims,
                                  int* num_dims, int num_shapes, int64_t* storage, int storage_size,
                                  TF_Status* status) {
  const weir_attr_t* attr = get(oper, attr_name, WEIR_ATTR_SHAPE, true, status);
  int used = 0;
  for (int i = 0; i < at_most(attr, num_shapes); ++i) {
    const weir_shape_t* shape = attr->u.shapes[i];
    num_dims[i] = shape->rank < 0 ? -1 : shape->rank;
    dims[i] = shape->rank < 0 ? NULL : storage + used;
    if (shape->rank < 0) continue;
    if (shape->rank > storage_size - used) {
      tf_status_take(status, WEIR_STATUS(INVALID_ARGUMENT,
                                         "Not enough storage to hold the requested list of "
                                         "shapes"));
      return;
    }
    for (int k = 0; k < shape->rank; ++k) storage[used + k] = shape->dims[k];
    used += shape->rank;
  }
}

static weir_status_t* give_shape(const weir_shape_t* shape, TF_Buffer* out) {
  weir_strbuf_t bytes = {0};
  weir_shape_write(shape, &bytes);
  return tf_buffer_take(out, &bytes);
}

void TF_OperationGetAttrTensorShapeProto(TF_Operation* oper, const char* attr_name,
                                         TF_Buffer* value, TF_Status* status) {
  const weir_attr_t* attr = get(oper, attr_name, WEIR_ATTR_SHAPE, false, status);
  if (attr) tf_status_take(status, give_shape(attr->u.shape, value));
}

void TF_OperationGetAttrTensorShapeProtoList(TF_Operation* oper, const char* attr_name,
                                             TF_Buffer** values, int max_values,
                                             TF_Status* status) {
  const weir_attr_t* attr = get(oper, attr_name, WEIR_ATTR_SHAPE, true, status);
  const int count = at_most(attr, max_values);
  weir_status_t* result = NULL;
  int made = 0;
  for (; made < count && !result; ++made) {
    values[made] = TF_NewBuffer();
    result = values[made] ? give_shape(attr->u.shapes[made], values[made]) : weir_out_of_memory();
  }
  if (!result) return;
  while (made > 0) TF_DeleteBuffer(values[--made]);
  tf_status_take(status, result);
}

// ---- tensors ----

void TF_OperationGetAttrTensor(TF_Operation* oper, const char* attr_name, TF_Tensor** value,
                               TF_Status* status) {
  *value = NULL;
  const weir_attr_t* attr = get(oper, attr_name, WEIR_ATTR_TENSOR, false, status);
  if (attr) tf_status_take(status, tf_tensor_out(weir_tensor_retain(attr->u.tensor), value));
}

void TF_OperationGetAttrTensorList(TF_Operation* oper, const char* attr_name, TF_Tensor** values,
                                   int max_values, TF_Status* status) {
  const weir_attr_t* attr = get(oper, attr_name, WEIR_ATTR_TENSOR, true, status);
  weir_status_t* result = NULL;
  for (int i = 0; i < at_most(attr, max_values) && !result; ++i)
    result = tf_tensor_out(weir_tensor_retain(attr->u.tensors[i]), &values[i]);
  if (result) tf_status_take(status, result);
}

// ---- as they are ----

void TF_OperationGetAttrValueProto(TF_Operation* oper, const char* attr_name,
                                   TF_Buffer* output_attr_value, TF_Status* status) {
  const weir_attr_t* attr = tf_find_attr(&tf_node(oper)->def, attr_name, status);
  if (!attr) return;
  weir_strbuf_t bytes = {0};
  weir_status_t* result = weir_attr_write(attr, &bytes);
  if (!result) result = tf_buffer_take(output_attr_value, &bytes);
  weir_strbuf_free(&bytes);
  tf_status_take(status, result);
}

// ---- names ----

static const char* name_at(const TF_Operation* oper, int i) {
  const weir_attrs_t attrs = tf_node(oper)->def.attrs;
  return i >= 0 && (size_t)i < attrs.count ? attrs.items[i].name : NULL;
}

int TF_OperationGetNumAttrs(TF_Operation* oper) { return (int)tf_node(oper)->def.attrs.count; }

int TF_OperationGetAttrNameLength(TF_Operation* oper, int i) {
  const char* name = name_at(oper, i);
  return name ? (int)strlen(name) : -1;
}

void TF_OperationGetAttrName(TF_Operation* oper, int i, char* output, TF_Status* status) {
  const char* name = name_at(oper, i);
  // Callers have room for as many bytes as the length says, which counts no terminator.
  if (name) memcpy(output, name, strlen(name));  // NOLINT(bugprone-not-null-terminated-result)
  tf_status_take(status,
                 name ? NULL
                      : WEIR_STATUS(OUT_OF_RANGE, "Operation only has %d attributes, can't get %d",
                                    TF_OperationGetNumAttrs(oper), i));
}
