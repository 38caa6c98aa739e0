// serialize_tensor.c — SerializeTensor, ParseTensor: tensors as TensorProto messages.
#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/tensor_proto.h"
#include "tensor/variant_proto.h"
#include "wire/wire.h"

static weir_status_t* serialize_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  weir_strbuf_t proto = {0};
  weir_status_t* status = weir_kernel_output(ctx, 0, 0, NULL, &out);
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  if (!status)
    status = weir_tensor_type(in) == WEIR_DTYPE_VARIANT ? weir_variant_write(in, &proto)
                                                        : weir_tensor_write(in, &proto);
  if (!status) status = weir_strbuf_finish(&proto);
  if (!status) status = weir_string_set(out->data, proto.data, proto.size);
  weir_strbuf_free(&proto);
  return status;
}

static bool is_message(weir_view_t bytes) {
  weir_wire_reader_t reader = weir_wire_reader(bytes);
  while (weir_wire_next(&reader)) continue;
  return reader.error == NULL;
}

static weir_status_t* parse_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t wanted = weir_attrs_type(weir_kernel_attrs(ctx), "out_type");
  if (in->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected `serialized` to be a scalar, got shape: %s",
                       weir_tensor_shape_text(in, text));
  }
  const weir_view_t proto = weir_string_view(in->data);
  weir_tensor_t* tensor = NULL;
  if (!is_message(proto)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Could not parse `serialized` as TensorProto");
  }
  weir_status_t* status = weir_variant_parse(proto, &tensor);
  if (status) return weir_status_prefix(status, "Cannot parse tensor from proto: ");
  if (weir_tensor_type(tensor) != wanted) {
    status =
        WEIR_STATUS(INVALID_ARGUMENT, "Type mismatch between parsed tensor (%s) and dtype (%s)",
                    weir_dtype_name(weir_tensor_type(tensor)), weir_dtype_name(wanted));
    weir_tensor_release(tensor);
    return status;
  }
  weir_kernel_set(ctx, 0, tensor);
  return NULL;
}

const weir_op_module_t weir_ops_io_serialize_tensor = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SerializeTensor",
         .attrs = "T: type",
         .inputs = "tensor: T",
         .outputs = "serialized: string",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "A tensor as a TensorProto",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(
                 .compute = serialize_cpu,
                 .types = "T: bfloat16, bool, complex128, complex64, double, float, half, int16, "
                          "int32, int64, int8, resource, string, uint16, uint32, uint64, uint8, "
                          "variant")},
        {.name = "ParseTensor",
         .attrs = "out_type: type",
         .inputs = "serialized: string",
         .outputs = "output: out_type",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The tensor of a TensorProto",
         .infer_shape = weir_shape_fn_unknown,
         .kernels = WEIR_CPU_KERNEL(.compute = parse_cpu)},
        {0}}};
