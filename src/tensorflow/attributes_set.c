// attributes_set.c — TF_SetAttr*: attributes of an operation that is being made.
#include "tensorflow/internal.h"
#include "tensorflow/operation_build.h"
#include "wire/wire.h"

// An array of the description's, which reports where there is no memory for it.
static void* array_of(TF_OperationDescription* desc, int count, size_t size) {
  void* array = weir_arena_array(tf_description_arena(desc), (size_t)count, size);
  if (!array) tf_description_fail(desc, weir_out_of_memory());
  return array;
}

static void add_strings(TF_OperationDescription* desc, const char* name, const weir_view_t* views,
                        size_t count) {
  if (strcmp(name, "_class") == 0) tf_description_colocate(desc, views, count);
  else tf_description_add(desc, weir_attr_strings(name, views, count));
}

void TF_SetAttrString(TF_OperationDescription* desc, const char* attr_name, const void* value,
                      size_t length) {
  tf_description_add(desc, weir_attr_view(attr_name, weir_view(value, length)));
}

void TF_SetAttrStringList(TF_OperationDescription* desc, const char* attr_name,
                          const void* const* values, const size_t* lengths, int num_values) {
  weir_view_t* views = array_of(desc, num_values, sizeof(*views));
  if (!views) return;
  for (int i = 0; i < num_values; ++i) views[i] = weir_view(values[i], lengths[i]);
  add_strings(desc, attr_name, views, (size_t)num_values);
}

void TF_SetAttrInt(TF_OperationDescription* desc, const char* attr_name, int64_t value) {
  tf_description_add(desc, weir_attr_int(attr_name, value));
}

void TF_SetAttrIntList(TF_OperationDescription* desc, const char* attr_name, const int64_t* values,
                       int num_values) {
  tf_description_add(desc, weir_attr_ints(attr_name, values, (size_t)num_values));
}

void TF_SetAttrFloat(TF_OperationDescription* desc, const char* attr_name, float value) {
  tf_description_add(desc, weir_attr_float(attr_name, value));
}

void TF_SetAttrFloatList(TF_OperationDescription* desc, const char* attr_name, const float* values,
                         int num_values) {
  tf_description_add(desc, weir_attr_floats(attr_name, values, (size_t)num_values));
}

void TF_SetAttrBool(TF_OperationDescription* desc, const char* attr_name, unsigned char value) {
  tf_description_add(desc, weir_attr_bool(attr_name, value != 0));
}

void TF_SetAttrBoolList(TF_OperationDescription* desc, const char* attr_name,
                        const unsigned char* values, int num_values) {
  bool* bools = array_of(desc, num_values, sizeof(*bools));
  if (!bools) return;
  for (int i = 0; i < num_values; ++i) bools[i] = values[i] != 0;
  tf_description_add(desc, (weir_named_attr_t){.name = attr_name,
                                               .value = {.kind = WEIR_ATTR_BOOL,
                                                         .is_list = true,
                                                         .count = (size_t)num_values,
                                                         .u.bools = bools}});
}

void TF_SetAttrType(TF_OperationDescription* desc, const char* attr_name, TF_DataType value) {
  tf_description_add(desc, weir_attr_type(attr_name, (weir_dtype_t)value));
}

void TF_SetAttrTypeList(TF_OperationDescription* desc, const char* attr_name,
                        const TF_DataType* values, int num_values) {
  weir_dtype_t* types = array_of(desc, num_values, sizeof(*types));
  if (!types) return;
  for (int i = 0; i < num_values; ++i) types[i] = (weir_dtype_t)values[i];
  tf_description_add(desc, weir_attr_types(attr_name, types, (size_t)num_values));
}

void TF_SetAttrPlaceholder(TF_OperationDescription* desc, const char* attr_name,
                           const char* placeholder) {
  tf_description_add(desc, (weir_named_attr_t){.name = attr_name,
                                               .value = {.kind = WEIR_ATTR_PLACEHOLDER,
                                                         .u.s = weir_view_of(placeholder)}});
}

void TF_SetAttrFuncName(TF_OperationDescription* desc, const char* attr_name, const char* value,
                        size_t length) {
  const weir_func_t func = {.name = weir_view(value, length)};
  tf_description_add(desc, weir_attr_func(attr_name, &func));
}

// ---- shapes ----

static const weir_shape_t* make_shape(TF_OperationDescription* desc, const int64_t* dims,
                                      int num_dims) {
  if (num_dims < 0) return &weir_shape_unknown;
  const weir_shape_t* shape = weir_shape_make(tf_description_arena(desc), num_dims, dims);
  if (!shape) tf_description_fail(desc, weir_out_of_memory());
  return shape;
}

void TF_SetAttrShape(TF_OperationDescription* desc, const char* attr_name, const int64_t* dims,
                     int num_dims) {
  const weir_shape_t* shape = make_shape(desc, dims, num_dims);
  if (shape) tf_description_add(desc, weir_attr_shape(attr_name, shape));
}

void TF_SetAttrShapeList(TF_OperationDescription* desc, const char* attr_name,
                         const int64_t* const* dims, const int* num_dims, int num_shapes) {
  const weir_shape_t** shapes = array_of(desc, num_shapes, sizeof(*shapes));
  for (int i = 0; shapes && i < num_shapes; ++i) {
    shapes[i] = make_shape(desc, dims[i], num_dims[i]);
    if (!shapes[i]) return;
  }
  if (shapes) tf_description_add(desc, weir_attr_shapes(attr_name, shapes, (size_t)num_shapes));
}

void TF_SetAttrTensorShapeProto(TF_OperationDescription* desc, const char* attr_name,
                                const void* proto, size_t proto_len, TF_Status* status) {
  const weir_shape_t* shape = NULL;
  weir_status_t* result =
      weir_shape_parse(weir_view(proto, proto_len), tf_description_arena(desc), &shape);
  if (tf_status_take(status, result)) tf_description_add(desc, weir_attr_shape(attr_name, shape));
}

void TF_SetAttrTensorShapeProtoList(TF_OperationDescription* desc, const char* attr_name,
                                    const void* const* protos, const size_t* proto_lens,
                                    int num_shapes, TF_Status* status) {
  const weir_shape_t** shapes = array_of(desc, num_shapes, sizeof(*shapes));
  weir_status_t* result = shapes ? NULL : weir_out_of_memory();
  for (int i = 0; i < num_shapes && !result; ++i)
    result = weir_shape_parse(weir_view(protos[i], proto_lens[i]), tf_description_arena(desc),
                              &shapes[i]);
  if (tf_status_take(status, result))
    tf_description_add(desc, weir_attr_shapes(attr_name, shapes, (size_t)num_shapes));
}

// ---- tensors ----

// The attribute outlives the caller's memory: it is a copy.
static weir_status_t* copy_tensor(const TF_Tensor* value, weir_tensor_t** out_copy) {
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(tf_tensor_in(value, &tensor));
  weir_status_t* status = weir_tensor_copy(tensor, out_copy);
  weir_tensor_release(tensor);
  return status;
}

void TF_SetAttrTensor(TF_OperationDescription* desc, const char* attr_name, TF_Tensor* value,
                      TF_Status* status) {
  weir_tensor_t* tensor = NULL;
  if (tf_status_take(status, copy_tensor(value, &tensor)))
    tf_description_add(desc, weir_attr_tensor(attr_name, tensor));
  weir_tensor_release(tensor);
}

void TF_SetAttrTensorList(TF_OperationDescription* desc, const char* attr_name,
                          TF_Tensor* const* values, int num_values, TF_Status* status) {
  weir_tensor_t** tensors = array_of(desc, num_values, sizeof(*tensors));
  weir_status_t* result = tensors ? NULL : weir_out_of_memory();
  for (int i = 0; i < num_values && !result; ++i) result = copy_tensor(values[i], &tensors[i]);
  if (tf_status_take(status, result))
    tf_description_add(desc, (weir_named_attr_t){.name = attr_name,
                                                 .value = {.kind = WEIR_ATTR_TENSOR,
                                                           .is_list = true,
                                                           .count = (size_t)num_values,
                                                           .u.tensors = tensors}});
  for (int i = 0; tensors && i < num_values; ++i) weir_tensor_release(tensors[i]);
}

void TF_SetAttrValueProto(TF_OperationDescription* desc, const char* attr_name, const void* proto,
                          size_t proto_len, TF_Status* status) {
  weir_attr_t value = {0};
  weir_status_t* result = tf_description_parse(desc, weir_view(proto, proto_len), &value);
  if (!tf_status_take(status, result)) return;
  if (value.is_list && value.kind == WEIR_ATTR_STRING)
    add_strings(desc, attr_name, value.u.strings, value.count);
  else tf_description_add(desc, (weir_named_attr_t){.name = attr_name, .value = value});
}
