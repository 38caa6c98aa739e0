// kernel_construction.c — kernels.h: instances of kernels, made for a node by what its attributes
// say.
#include "tensorflow/kernel.h"
#include "wire/wire.h"

// ---- instances ----

weir_status_t* tf_kernel_init(const weir_kernel_init_t* init, void* state) {
  tf_instance_t* instance = state;
  TF_OpKernelConstruction construction = {.init = init};
  instance->kernel = init->kernel->foreign;
  if (instance->kernel->create) instance->instance = instance->kernel->create(&construction);
  return construction.failure;
}

void tf_kernel_deinit(void* state) {
  const tf_instance_t* instance = state;
  if (instance->kernel && instance->kernel->destroy) instance->kernel->destroy(instance->instance);
}

void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* ctx, TF_Status* status) {
  if (!ctx->failure) ctx->failure = tf_status_to_weir(status);
}

TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction* ctx) {
  const char* name = ctx->init->node->name;
  return (TF_StringView){.data = name, .len = strlen(name)};
}

// ---- attributes: which there are ----

bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction* ctx, const char* attr_name,
                                     TF_Status* status) {
  (void)status;  // TensorFlow leaves it as it was
  return weir_attrs_find(ctx->init->node->attrs, attr_name);
}

void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* ctx, const char* attr_name,
                                         int32_t* list_size, int32_t* total_size,
                                         TF_Status* status) {
  tf_status_clear(status);
  const TF_AttrMetadata metadata = tf_attr_metadata(ctx->init->node, attr_name, status);
  const bool is_ok = TF_GetCode(status) == TF_OK;
  *list_size = is_ok ? (int32_t)metadata.list_size : -1;
  *total_size = is_ok ? (int32_t)metadata.total_size : -1;
}

// ---- values ----

// NULL after an error.
static const weir_attr_t* get(TF_OpKernelConstruction* ctx, const char* name, weir_attr_kind_t kind,
                              bool is_list, TF_Status* status) {
  const weir_attr_t* value = NULL;
  tf_status_take(status, tf_attr_of(ctx->init->node, name, kind, is_list, &value));
  return value;
}

static int at_most(const weir_attr_t* list, int max_values) {
  return list ? (int)WEIR_MIN((size_t)WEIR_MAX(max_values, 0), list->count) : 0;
}

#define DEFINE_SINGLE(NAME, TYPE, KIND, MEMBER)                                              \
  void TF_OpKernelConstruction_GetAttr##NAME(TF_OpKernelConstruction* ctx, const char* name, \
                                             TYPE* val, TF_Status* status) {                 \
    const weir_attr_t* attr = get(ctx, name, KIND, false, status);                           \
    if (attr) *val = (TYPE)attr->u.MEMBER;                                                   \
  }
#define DEFINE_LIST(NAME, TYPE, KIND, MEMBER)                                                      \
  void TF_OpKernelConstruction_GetAttr##NAME##List(TF_OpKernelConstruction* ctx, const char* name, \
                                                   TYPE* vals, int max_vals, TF_Status* status) {  \
    const weir_attr_t* attr = get(ctx, name, KIND, true, status);                                  \
    for (int i = 0; i < at_most(attr, max_vals); ++i) vals[i] = (TYPE)attr->u.MEMBER[i];           \
  }
DEFINE_SINGLE(Type, TF_DataType, WEIR_ATTR_TYPE, type)
DEFINE_SINGLE(Int64, int64_t, WEIR_ATTR_INT, i)
DEFINE_SINGLE(Float, float, WEIR_ATTR_FLOAT, f)
DEFINE_SINGLE(Bool, TF_Bool, WEIR_ATTR_BOOL, b)
DEFINE_LIST(Type, TF_DataType, WEIR_ATTR_TYPE, types)
DEFINE_LIST(Int64, int64_t, WEIR_ATTR_INT, ints)
DEFINE_LIST(Float, float, WEIR_ATTR_FLOAT, floats)
DEFINE_LIST(Bool, TF_Bool, WEIR_ATTR_BOOL, bools)
#undef DEFINE_SINGLE
#undef DEFINE_LIST

static weir_status_t* narrow(const char* name, int64_t value, int32_t* out_value) {
  if (value != (int32_t)value)
    return WEIR_STATUS(INVALID_ARGUMENT, "Attr %s has value %lld out of range for an int32", name,
                       (long long)value);
  *out_value = (int32_t)value;
  return NULL;
}

void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction* ctx, const char* attr_name,
                                          int32_t* val, TF_Status* status) {
  const weir_attr_t* attr = get(ctx, attr_name, WEIR_ATTR_INT, false, status);
  if (attr) tf_status_take(status, narrow(attr_name, attr->u.i, val));
}

void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction* ctx, const char* attr_name,
                                              int32_t* vals, int max_vals, TF_Status* status) {
  const weir_attr_t* attr = get(ctx, attr_name, WEIR_ATTR_INT, true, status);
  weir_status_t* failure = NULL;
  for (int i = 0; i < at_most(attr, max_vals) && !failure; ++i)
    failure = narrow(attr_name, attr->u.ints[i], &vals[i]);
  if (failure) tf_status_take(status, failure);
}

void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* ctx, const char* attr_name,
                                           char* val, size_t max_length, TF_Status* status) {
  const weir_attr_t* attr = get(ctx, attr_name, WEIR_ATTR_STRING, false, status);
  if (attr && max_length && attr->u.s.size)
    memcpy(val, attr->u.s.data, WEIR_MIN(attr->u.s.size, max_length));
}

void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                               char** values, size_t* lengths, int max_values,
                                               void* storage, size_t storage_size,
                                               TF_Status* status) {
  const weir_attr_t* attr = get(ctx, attr_name, WEIR_ATTR_STRING, true, status);
  weir_status_t* failure =
      tf_attr_copy_strings(attr, (void**)values, lengths, max_values, storage, storage_size);
  if (failure) tf_status_take(status, failure);
}

void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction* ctx, const char* attr_name,
                                           TF_Tensor** val, TF_Status* status) {
  *val = NULL;
  const weir_attr_t* attr = get(ctx, attr_name, WEIR_ATTR_TENSOR, false, status);
  if (attr) tf_status_take(status, tf_tensor_out(weir_tensor_retain(attr->u.tensor), val));
}

void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction* ctx, const char* attr_name,
                                               TF_Tensor** vals, int max_values,
                                               TF_Status* status) {
  const weir_attr_t* attr = get(ctx, attr_name, WEIR_ATTR_TENSOR, true, status);
  weir_status_t* failure = NULL;
  for (int i = 0; i < at_most(attr, max_values); ++i) {
    vals[i] = NULL;
    if (!failure) failure = tf_tensor_out(weir_tensor_retain(attr->u.tensors[i]), &vals[i]);
  }
  if (failure) tf_status_take(status, failure);
}

// ---- functions ----

// The NameAttrList within the AttrValue that an attribute is.
static weir_status_t* write_function(const weir_attr_t* attr, weir_strbuf_t* out) {
  enum { ATTR_VALUE_FUNC = 10 };
  weir_strbuf_t value = {0};
  weir_status_t* status = weir_attr_write(attr, &value);
  weir_wire_reader_t r = weir_wire_reader(weir_strbuf_view(&value));
  while (!status && weir_wire_next(&r)) {
    if (r.field == ATTR_VALUE_FUNC && r.type == WEIR_WIRE_BYTES)
      weir_strbuf_append(out, r.bytes.data, r.bytes.size);
  }
  weir_strbuf_free(&value);
  return status ? status : weir_strbuf_finish(out);
}

TF_Buffer* TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction* ctx,
                                                   const char* attr_name, TF_Status* status) {
  const weir_attr_t* attr = get(ctx, attr_name, WEIR_ATTR_FUNC, false, status);
  weir_strbuf_t bytes = {0};
  if (!attr || !tf_status_take(status, write_function(attr, &bytes))) {
    weir_strbuf_free(&bytes);
    return NULL;
  }
  TF_Buffer* buffer = tf_buffer_new(&bytes);
  if (!buffer) tf_status_take(status, weir_out_of_memory());
  return buffer;
}
