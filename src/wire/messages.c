// messages.c — The tables of message.h: every field of the messages Weir reads and writes as text.
#include "wire/message.h"

#define ROW(number, name, type, repeated, map, oneof, message, values) \
  { number, name, WEIR_FIELD_##type, repeated, map, oneof, message, values }
#define ONE(number, name, type) ROW(number, name, type, 0, 0, 0, NULL, NULL)
#define MANY(number, name, type) ROW(number, name, type, 1, 0, 0, NULL, NULL)
#define ENUM(number, name, values) ROW(number, name, ENUM, 0, 0, 0, NULL, values)
#define ENUMS(number, name, values) ROW(number, name, ENUM, 1, 0, 0, NULL, values)
#define MESSAGE(number, name, message) ROW(number, name, MESSAGE, 0, 0, 0, &message, NULL)
#define MESSAGES(number, name, message) ROW(number, name, MESSAGE, 1, 0, 0, &message, NULL)
#define MAP(number, name, entry) ROW(number, name, MESSAGE, 1, 1, 0, &entry, NULL)
// Members of a message's only oneof.
#define ONEOF(number, name, type) ROW(number, name, type, 0, 0, 1, NULL, NULL)
#define ONEOF_ENUM(number, name, values) ROW(number, name, ENUM, 0, 0, 1, NULL, values)
#define ONEOF_MESSAGE(number, name, message) ROW(number, name, MESSAGE, 0, 0, 1, &message, NULL)
// A scalar that knows whether it was set: a oneof of its own.
#define SET(number, name, type) ROW(number, name, type, 0, 0, 100 + number, NULL, NULL)
#define END ROW(0, NULL, INT64, 0, 0, 0, NULL, NULL)

// Rows are packed by hand, by ascending number.
// clang-format off
static const weir_enum_value_t data_types[] = {
    {"DT_INVALID", 0}, {"DT_FLOAT", 1}, {"DT_DOUBLE", 2}, {"DT_INT32", 3}, {"DT_UINT8", 4},
    {"DT_INT16", 5}, {"DT_INT8", 6}, {"DT_STRING", 7}, {"DT_COMPLEX64", 8}, {"DT_INT64", 9},
    {"DT_BOOL", 10}, {"DT_QINT8", 11}, {"DT_QUINT8", 12}, {"DT_QINT32", 13}, {"DT_BFLOAT16", 14},
    {"DT_QINT16", 15}, {"DT_QUINT16", 16}, {"DT_UINT16", 17}, {"DT_COMPLEX128", 18},
    {"DT_HALF", 19}, {"DT_RESOURCE", 20}, {"DT_VARIANT", 21}, {"DT_UINT32", 22}, {"DT_UINT64", 23},
    {"DT_FLOAT8_E5M2", 24}, {"DT_FLOAT8_E4M3FN", 25}, {"DT_FLOAT8_E4M3FNUZ", 26},
    {"DT_FLOAT8_E4M3B11FNUZ", 27}, {"DT_FLOAT8_E5M2FNUZ", 28}, {"DT_INT4", 29}, {"DT_UINT4", 30},
    {"DT_INT2", 31}, {"DT_UINT2", 32}, {"DT_FLOAT4_E2M1FN", 33}, {"DT_FLOAT_REF", 101},
    {"DT_DOUBLE_REF", 102}, {"DT_INT32_REF", 103}, {"DT_UINT8_REF", 104}, {"DT_INT16_REF", 105},
    {"DT_INT8_REF", 106}, {"DT_STRING_REF", 107}, {"DT_COMPLEX64_REF", 108}, {"DT_INT64_REF", 109},
    {"DT_BOOL_REF", 110}, {"DT_QINT8_REF", 111}, {"DT_QUINT8_REF", 112}, {"DT_QINT32_REF", 113},
    {"DT_BFLOAT16_REF", 114}, {"DT_QINT16_REF", 115}, {"DT_QUINT16_REF", 116},
    {"DT_UINT16_REF", 117}, {"DT_COMPLEX128_REF", 118}, {"DT_HALF_REF", 119},
    {"DT_RESOURCE_REF", 120}, {"DT_VARIANT_REF", 121}, {"DT_UINT32_REF", 122},
    {"DT_UINT64_REF", 123}, {"DT_FLOAT8_E5M2_REF", 124}, {"DT_FLOAT8_E4M3FN_REF", 125},
    {"DT_FLOAT8_E4M3FNUZ_REF", 126}, {"DT_FLOAT8_E4M3B11FNUZ_REF", 127},
    {"DT_FLOAT8_E5M2FNUZ_REF", 128}, {"DT_INT4_REF", 129}, {"DT_UINT4_REF", 130},
    {"DT_INT2_REF", 131}, {"DT_UINT2_REF", 132}, {"DT_FLOAT4_E2M1FN_REF", 133}, {NULL, 0}};

static const weir_enum_value_t full_type_ids[] = {
    {"TFT_UNSET", 0}, {"TFT_VAR", 1}, {"TFT_ANY", 2}, {"TFT_PRODUCT", 3}, {"TFT_NAMED", 4},
    {"TFT_FOR_EACH", 20}, {"TFT_CALLABLE", 100}, {"TFT_TENSOR", 1000}, {"TFT_ARRAY", 1001},
    {"TFT_OPTIONAL", 1002}, {"TFT_LITERAL", 1003}, {"TFT_ENCODED", 1004},
    {"TFT_SHAPE_TENSOR", 1005}, {"TFT_BOOL", 200}, {"TFT_UINT8", 201}, {"TFT_UINT16", 202},
    {"TFT_UINT32", 203}, {"TFT_UINT64", 204}, {"TFT_INT8", 205}, {"TFT_INT16", 206},
    {"TFT_INT32", 207}, {"TFT_INT64", 208}, {"TFT_HALF", 209}, {"TFT_FLOAT", 210},
    {"TFT_DOUBLE", 211}, {"TFT_BFLOAT16", 215}, {"TFT_COMPLEX64", 212}, {"TFT_COMPLEX128", 213},
    {"TFT_STRING", 214}, {"TFT_DATASET", 10102}, {"TFT_RAGGED", 10103}, {"TFT_ITERATOR", 10104},
    {"TFT_MUTEX_LOCK", 10202}, {"TFT_LEGACY_VARIANT", 10203}, {NULL, 0}};

static const weir_enum_value_t data_classes[] = {
    {"DATA_CLASS_UNKNOWN", 0}, {"DATA_CLASS_SCALAR", 1}, {"DATA_CLASS_TENSOR", 2},
    {"DATA_CLASS_BLOB_SEQUENCE", 3}, {NULL, 0}};

static const weir_enum_value_t log_levels[] = {
    {"UNKNOWN", 0}, {"DEBUGGING", 10}, {"INFO", 20}, {"WARN", 30}, {"ERROR", 40}, {"FATAL", 50},
    {NULL, 0}};

static const weir_enum_value_t session_statuses[] = {
    {"STATUS_UNSPECIFIED", 0}, {"START", 1}, {"STOP", 2}, {"CHECKPOINT", 3}, {NULL, 0}};

static const weir_enum_value_t endiannesses[] = {
    {"LITTLE", 0}, {"BIG", 1}, {NULL, 0}};

static const weir_enum_value_t checkpoint_versions[] = {
    {"LEGACY", 0}, {"V1", 1}, {"V2", 2}, {NULL, 0}};

static const weir_field_t tensor_shape_dim_fields[] = {
    ONE(1, "size", INT64), ONE(2, "name", STRING), END};
static const weir_message_t tensor_shape_dim = {"TensorShapeProto.Dim", tensor_shape_dim_fields};

static const weir_field_t tensor_shape_fields[] = {
    MESSAGES(2, "dim", tensor_shape_dim), ONE(3, "unknown_rank", BOOL), END};
const weir_message_t weir_message_tensor_shape = {"TensorShapeProto", tensor_shape_fields};

static const weir_field_t resource_handle_dtype_and_shape_fields[] = {
    ENUM(1, "dtype", data_types), MESSAGE(2, "shape", weir_message_tensor_shape), END};
static const weir_message_t resource_handle_dtype_and_shape = {
    "ResourceHandleProto.DtypeAndShape", resource_handle_dtype_and_shape_fields};

static const weir_field_t resource_handle_fields[] = {
    ONE(1, "device", STRING), ONE(2, "container", STRING), ONE(3, "name", STRING),
    ONE(4, "hash_code", UINT64), ONE(5, "maybe_type_name", STRING),
    MESSAGES(6, "dtypes_and_shapes", resource_handle_dtype_and_shape), END};
static const weir_message_t resource_handle = {"ResourceHandleProto", resource_handle_fields};

static const weir_field_t variant_tensor_data_fields[] = {
    ONE(1, "type_name", STRING), ONE(2, "metadata", BYTES),
    MESSAGES(3, "tensors", weir_message_tensor), END};
static const weir_message_t variant_tensor_data = {
    "VariantTensorDataProto", variant_tensor_data_fields};

static const weir_field_t tensor_fields[] = {
    ENUM(1, "dtype", data_types), MESSAGE(2, "tensor_shape", weir_message_tensor_shape),
    ONE(3, "version_number", INT32), ONE(4, "tensor_content", BYTES), MANY(5, "float_val", FLOAT),
    MANY(6, "double_val", DOUBLE), MANY(7, "int_val", INT32), MANY(8, "string_val", BYTES),
    MANY(9, "scomplex_val", FLOAT), MANY(10, "int64_val", INT64), MANY(11, "bool_val", BOOL),
    MANY(12, "dcomplex_val", DOUBLE), MANY(13, "half_val", INT32),
    MESSAGES(14, "resource_handle_val", resource_handle),
    MESSAGES(15, "variant_val", variant_tensor_data), MANY(16, "uint32_val", UINT32),
    MANY(17, "uint64_val", UINT64), ONE(18, "float8_val", BYTES), END};
const weir_message_t weir_message_tensor = {"TensorProto", tensor_fields};

static const weir_field_t string_to_attr_value_fields[] = {
    ONE(1, "key", STRING), MESSAGE(2, "value", weir_message_attr_value), END};
static const weir_message_t string_to_attr_value = {"map entry", string_to_attr_value_fields};

static const weir_field_t name_attr_list_fields[] = {
    ONE(1, "name", STRING), MAP(2, "attr", string_to_attr_value), END};
static const weir_message_t name_attr_list = {"NameAttrList", name_attr_list_fields};

static const weir_field_t attr_value_list_value_fields[] = {
    MANY(2, "s", BYTES), MANY(3, "i", INT64), MANY(4, "f", FLOAT), MANY(5, "b", BOOL),
    ENUMS(6, "type", data_types), MESSAGES(7, "shape", weir_message_tensor_shape),
    MESSAGES(8, "tensor", weir_message_tensor), MESSAGES(9, "func", name_attr_list), END};
static const weir_message_t attr_value_list_value = {
    "AttrValue.ListValue", attr_value_list_value_fields};

static const weir_field_t attr_value_fields[] = {
    ONEOF_MESSAGE(1, "list", attr_value_list_value), ONEOF(2, "s", BYTES), ONEOF(3, "i", INT64),
    ONEOF(4, "f", FLOAT), ONEOF(5, "b", BOOL), ONEOF_ENUM(6, "type", data_types),
    ONEOF_MESSAGE(7, "shape", weir_message_tensor_shape),
    ONEOF_MESSAGE(8, "tensor", weir_message_tensor), ONEOF(9, "placeholder", STRING),
    ONEOF_MESSAGE(10, "func", name_attr_list), END};
const weir_message_t weir_message_attr_value = {"AttrValue", attr_value_fields};

static const weir_field_t node_def_experimental_debug_info_fields[] = {
    MANY(1, "original_node_names", STRING), MANY(2, "original_func_names", STRING), END};
static const weir_message_t node_def_experimental_debug_info = {
    "NodeDef.ExperimentalDebugInfo", node_def_experimental_debug_info_fields};

static const weir_message_t full_type_def;  // its arguments are of its own kind
static const weir_field_t full_type_def_fields[] = {
    ENUM(1, "type_id", full_type_ids), MESSAGES(2, "args", full_type_def), ONEOF(3, "s", STRING),
    ONEOF(4, "i", INT64), END};
static const weir_message_t full_type_def = {"FullTypeDef", full_type_def_fields};

static const weir_field_t node_def_fields[] = {
    ONE(1, "name", STRING), ONE(2, "op", STRING), MANY(3, "input", STRING),
    ONE(4, "device", STRING), MAP(5, "attr", string_to_attr_value),
    MESSAGE(6, "experimental_debug_info", node_def_experimental_debug_info),
    MESSAGE(7, "experimental_type", full_type_def), END};
const weir_message_t weir_message_node_def = {"NodeDef", node_def_fields};

static const weir_field_t op_def_arg_def_fields[] = {
    ONE(1, "name", STRING), ONE(2, "description", STRING), ENUM(3, "type", data_types),
    ONE(4, "type_attr", STRING), ONE(5, "number_attr", STRING), ONE(6, "type_list_attr", STRING),
    MESSAGES(7, "handle_data", resource_handle_dtype_and_shape), ONE(16, "is_ref", BOOL),
    MESSAGE(17, "experimental_full_type", full_type_def), END};
static const weir_message_t op_def_arg_def = {"OpDef.ArgDef", op_def_arg_def_fields};

static const weir_field_t op_def_attr_def_fields[] = {
    ONE(1, "name", STRING), ONE(2, "type", STRING),
    MESSAGE(3, "default_value", weir_message_attr_value), ONE(4, "description", STRING),
    ONE(5, "has_minimum", BOOL), ONE(6, "minimum", INT64),
    MESSAGE(7, "allowed_values", weir_message_attr_value), END};
static const weir_message_t op_def_attr_def = {"OpDef.AttrDef", op_def_attr_def_fields};

static const weir_field_t op_deprecation_fields[] = {
    ONE(1, "version", INT32), ONE(2, "explanation", STRING), END};
static const weir_message_t op_deprecation = {"OpDeprecation", op_deprecation_fields};

static const weir_field_t op_def_fields[] = {
    ONE(1, "name", STRING), MESSAGES(2, "input_arg", op_def_arg_def),
    MESSAGES(3, "output_arg", op_def_arg_def), MESSAGES(4, "attr", op_def_attr_def),
    ONE(5, "summary", STRING), ONE(6, "description", STRING),
    MESSAGE(8, "deprecation", op_deprecation), ONE(16, "is_aggregate", BOOL),
    ONE(17, "is_stateful", BOOL), ONE(18, "is_commutative", BOOL),
    ONE(19, "allows_uninitialized_input", BOOL), MANY(20, "control_output", STRING),
    ONE(21, "is_distributed_communication", BOOL), END};
const weir_message_t weir_message_op_def = {"OpDef", op_def_fields};

static const weir_field_t string_to_string_fields[] = {
    ONE(1, "key", STRING), ONE(2, "value", STRING), END};
static const weir_message_t string_to_string = {"map entry", string_to_string_fields};

static const weir_field_t function_def_arg_attrs_fields[] = {
    MAP(1, "attr", string_to_attr_value), END};
static const weir_message_t function_def_arg_attrs = {
    "FunctionDef.ArgAttrs", function_def_arg_attrs_fields};

static const weir_field_t uint32_to_function_def_arg_attrs_fields[] = {
    ONE(1, "key", UINT32), MESSAGE(2, "value", function_def_arg_attrs), END};
static const weir_message_t uint32_to_function_def_arg_attrs = {
    "map entry", uint32_to_function_def_arg_attrs_fields};

static const weir_field_t uint32_to_uint32_fields[] = {
    ONE(1, "key", UINT32), ONE(2, "value", UINT32), END};
static const weir_message_t uint32_to_uint32 = {"map entry", uint32_to_uint32_fields};

static const weir_field_t function_def_fields[] = {
    MESSAGE(1, "signature", weir_message_op_def), MESSAGES(3, "node_def", weir_message_node_def),
    MAP(4, "ret", string_to_string), MAP(5, "attr", string_to_attr_value),
    MAP(6, "control_ret", string_to_string), MAP(7, "arg_attr", uint32_to_function_def_arg_attrs),
    MAP(8, "resource_arg_unique_id", uint32_to_uint32), END};
const weir_message_t weir_message_function_def = {"FunctionDef", function_def_fields};

static const weir_field_t gradient_def_fields[] = {
    ONE(1, "function_name", STRING), ONE(2, "gradient_func", STRING), END};
static const weir_message_t gradient_def = {"GradientDef", gradient_def_fields};

static const weir_field_t registered_gradient_fields[] = {
    ONE(1, "gradient_func", STRING), ONE(2, "registered_op_type", STRING), END};
static const weir_message_t registered_gradient = {
    "RegisteredGradient", registered_gradient_fields};

static const weir_field_t function_def_library_fields[] = {
    MESSAGES(1, "function", weir_message_function_def), MESSAGES(2, "gradient", gradient_def),
    MESSAGES(3, "registered_gradients", registered_gradient), END};
static const weir_message_t function_def_library = {
    "FunctionDefLibrary", function_def_library_fields};

static const weir_field_t version_def_fields[] = {
    ONE(1, "producer", INT32), ONE(2, "min_consumer", INT32), MANY(3, "bad_consumers", INT32), END};
static const weir_message_t version_def = {"VersionDef", version_def_fields};

static const weir_field_t graph_debug_info_file_line_col_fields[] = {
    SET(1, "file_index", INT32), SET(2, "line", INT32), SET(3, "col", INT32),
    SET(4, "func", STRING), SET(5, "code", STRING), END};
static const weir_message_t graph_debug_info_file_line_col = {
    "GraphDebugInfo.FileLineCol", graph_debug_info_file_line_col_fields};

static const weir_field_t graph_debug_info_stack_trace_fields[] = {
    MESSAGES(1, "file_line_cols", graph_debug_info_file_line_col),
    MANY(2, "frame_id", FIXED64), END};
static const weir_message_t graph_debug_info_stack_trace = {
    "GraphDebugInfo.StackTrace", graph_debug_info_stack_trace_fields};

static const weir_field_t string_to_graph_debug_info_stack_trace_fields[] = {
    SET(1, "key", STRING), MESSAGE(2, "value", graph_debug_info_stack_trace), END};
static const weir_message_t string_to_graph_debug_info_stack_trace = {
    "map entry", string_to_graph_debug_info_stack_trace_fields};

static const weir_field_t fixed64_to_graph_debug_info_file_line_col_fields[] = {
    SET(1, "key", FIXED64), MESSAGE(2, "value", graph_debug_info_file_line_col), END};
static const weir_message_t fixed64_to_graph_debug_info_file_line_col = {
    "map entry", fixed64_to_graph_debug_info_file_line_col_fields};

static const weir_field_t string_to_fixed64_fields[] = {
    SET(1, "key", STRING), SET(2, "value", FIXED64), END};
static const weir_message_t string_to_fixed64 = {"map entry", string_to_fixed64_fields};

static const weir_field_t fixed64_to_graph_debug_info_stack_trace_fields[] = {
    SET(1, "key", FIXED64), MESSAGE(2, "value", graph_debug_info_stack_trace), END};
static const weir_message_t fixed64_to_graph_debug_info_stack_trace = {
    "map entry", fixed64_to_graph_debug_info_stack_trace_fields};

static const weir_field_t graph_debug_info_fields[] = {
    MANY(1, "files", STRING), MAP(2, "traces", string_to_graph_debug_info_stack_trace),
    MAP(4, "frames_by_id", fixed64_to_graph_debug_info_file_line_col),
    MAP(5, "name_to_trace_id", string_to_fixed64),
    MAP(6, "traces_by_id", fixed64_to_graph_debug_info_stack_trace), END};
static const weir_message_t graph_debug_info = {"GraphDebugInfo", graph_debug_info_fields};

static const weir_field_t graph_def_fields[] = {
    MESSAGES(1, "node", weir_message_node_def), MESSAGE(2, "library", function_def_library),
    ONE(3, "version", INT32), MESSAGE(4, "versions", version_def),
    MESSAGE(5, "debug_info", graph_debug_info), END};
const weir_message_t weir_message_graph_def = {"GraphDef", graph_def_fields};

static const weir_field_t op_list_fields[] = {
    MESSAGES(1, "op", weir_message_op_def), END};
const weir_message_t weir_message_op_list = {"OpList", op_list_fields};

static const weir_field_t allocation_record_fields[] = {
    ONE(1, "alloc_micros", INT64), ONE(2, "alloc_bytes", INT64), END};
static const weir_message_t allocation_record = {"AllocationRecord", allocation_record_fields};

static const weir_field_t allocator_memory_used_fields[] = {
    ONE(1, "allocator_name", STRING), ONE(2, "total_bytes", INT64), ONE(3, "peak_bytes", INT64),
    ONE(4, "live_bytes", INT64), ONE(5, "allocator_bytes_in_use", INT64),
    MESSAGES(6, "allocation_records", allocation_record), END};
static const weir_message_t allocator_memory_used = {
    "AllocatorMemoryUsed", allocator_memory_used_fields};

static const weir_field_t allocation_description_fields[] = {
    ONE(1, "requested_bytes", INT64), ONE(2, "allocated_bytes", INT64),
    ONE(3, "allocator_name", STRING), ONE(4, "allocation_id", INT64),
    ONE(5, "has_single_reference", BOOL), ONE(6, "ptr", UINT64), END};
static const weir_message_t allocation_description = {
    "AllocationDescription", allocation_description_fields};

static const weir_field_t tensor_description_fields[] = {
    ENUM(1, "dtype", data_types), MESSAGE(2, "shape", weir_message_tensor_shape),
    MESSAGE(4, "allocation_description", allocation_description), END};
static const weir_message_t tensor_description = {"TensorDescription", tensor_description_fields};

static const weir_field_t node_output_fields[] = {
    ONE(1, "slot", INT32), MESSAGE(3, "tensor_description", tensor_description), END};
static const weir_message_t node_output = {"NodeOutput", node_output_fields};

static const weir_field_t memory_stats_fields[] = {
    ONE(1, "temp_memory_size", INT64), ONE(2, "device_temp_memory_size", INT64),
    ONE(3, "persistent_memory_size", INT64), ONE(4, "device_persistent_memory_size", INT64),
    MANY(5, "persistent_tensor_alloc_ids", INT64),
    MANY(6, "device_persistent_tensor_alloc_ids", INT64), END};
static const weir_message_t memory_stats = {"MemoryStats", memory_stats_fields};

static const weir_field_t node_exec_stats_fields[] = {
    ONE(1, "node_name", STRING), ONE(2, "all_start_micros", INT64),
    ONE(3, "op_start_rel_micros", INT64), ONE(4, "op_end_rel_micros", INT64),
    ONE(5, "all_end_rel_micros", INT64), MESSAGES(6, "memory", allocator_memory_used),
    MESSAGES(7, "output", node_output), ONE(8, "timeline_label", STRING),
    ONE(9, "scheduled_micros", INT64), ONE(10, "thread_id", UINT32),
    MESSAGES(11, "referenced_tensor", allocation_description),
    MESSAGE(12, "memory_stats", memory_stats), ONE(13, "all_start_nanos", INT64),
    ONE(14, "op_start_rel_nanos", INT64), ONE(15, "op_end_rel_nanos", INT64),
    ONE(16, "all_end_rel_nanos", INT64), ONE(17, "scheduled_nanos", INT64), END};
static const weir_message_t node_exec_stats = {"NodeExecStats", node_exec_stats_fields};

static const weir_field_t uint32_to_string_fields[] = {
    ONE(1, "key", UINT32), ONE(2, "value", STRING), END};
static const weir_message_t uint32_to_string = {"map entry", uint32_to_string_fields};

static const weir_field_t device_step_stats_fields[] = {
    ONE(1, "device", STRING), MESSAGES(2, "node_stats", node_exec_stats),
    MAP(3, "thread_names", uint32_to_string), END};
static const weir_message_t device_step_stats = {"DeviceStepStats", device_step_stats_fields};

static const weir_field_t step_stats_fields[] = {
    MESSAGES(1, "dev_stats", device_step_stats), END};
static const weir_message_t step_stats = {"StepStats", step_stats_fields};

static const weir_field_t cost_graph_def_node_input_info_fields[] = {
    ONE(1, "preceding_node", INT32), ONE(2, "preceding_port", INT32), END};
static const weir_message_t cost_graph_def_node_input_info = {
    "CostGraphDef.Node.InputInfo", cost_graph_def_node_input_info_fields};

static const weir_field_t cost_graph_def_node_output_info_fields[] = {
    ONE(1, "size", INT64), ONE(2, "alias_input_port", INT64),
    MESSAGE(3, "shape", weir_message_tensor_shape), ENUM(4, "dtype", data_types), END};
static const weir_message_t cost_graph_def_node_output_info = {
    "CostGraphDef.Node.OutputInfo", cost_graph_def_node_output_info_fields};

static const weir_field_t cost_graph_def_node_fields[] = {
    ONE(1, "name", STRING), ONE(2, "device", STRING), ONE(3, "id", INT32),
    MESSAGES(4, "input_info", cost_graph_def_node_input_info),
    MESSAGES(5, "output_info", cost_graph_def_node_output_info),
    ONE(6, "temporary_memory_size", INT64), ONE(7, "is_final", BOOL),
    MANY(8, "control_input", INT32), ONE(9, "compute_cost", INT64),
    ONE(10, "host_temp_memory_size", INT64), ONE(11, "device_temp_memory_size", INT64),
    ONE(12, "persistent_memory_size", INT64), ONE(14, "compute_time", INT64),
    ONE(15, "memory_time", INT64), ONE(16, "device_persistent_memory_size", INT64),
    ONE(17, "inaccurate", BOOL), END};
static const weir_message_t cost_graph_def_node = {"CostGraphDef.Node", cost_graph_def_node_fields};

static const weir_field_t cost_graph_def_aggregated_cost_fields[] = {
    ONE(1, "cost", FLOAT), ONE(2, "dimension", STRING), END};
static const weir_message_t cost_graph_def_aggregated_cost = {
    "CostGraphDef.AggregatedCost", cost_graph_def_aggregated_cost_fields};

static const weir_field_t cost_graph_def_fields[] = {
    MESSAGES(1, "node", cost_graph_def_node), MESSAGES(2, "cost", cost_graph_def_aggregated_cost),
    END};
static const weir_message_t cost_graph_def = {"CostGraphDef", cost_graph_def_fields};

static const weir_field_t run_metadata_function_graphs_fields[] = {
    MESSAGES(1, "partition_graphs", weir_message_graph_def),
    MESSAGE(2, "pre_optimization_graph", weir_message_graph_def),
    MESSAGE(3, "post_optimization_graph", weir_message_graph_def), END};
static const weir_message_t run_metadata_function_graphs = {
    "RunMetadata.FunctionGraphs", run_metadata_function_graphs_fields};

static const weir_field_t session_metadata_fields[] = {
    ONE(1, "name", STRING), ONE(2, "version", INT64), END};
static const weir_message_t session_metadata = {"SessionMetadata", session_metadata_fields};

static const weir_field_t run_metadata_fields[] = {
    MESSAGE(1, "step_stats", step_stats), MESSAGE(2, "cost_graph", cost_graph_def),
    MESSAGES(3, "partition_graphs", weir_message_graph_def),
    MESSAGES(4, "function_graphs", run_metadata_function_graphs),
    MESSAGE(5, "session_metadata", session_metadata), END};
const weir_message_t weir_message_run_metadata = {"RunMetadata", run_metadata_fields};

static const weir_field_t summary_image_fields[] = {
    ONE(1, "height", INT32), ONE(2, "width", INT32), ONE(3, "colorspace", INT32),
    ONE(4, "encoded_image_string", BYTES), END};
static const weir_message_t summary_image = {"Summary.Image", summary_image_fields};

static const weir_field_t histogram_fields[] = {
    ONE(1, "min", DOUBLE), ONE(2, "max", DOUBLE), ONE(3, "num", DOUBLE), ONE(4, "sum", DOUBLE),
    ONE(5, "sum_squares", DOUBLE), MANY(6, "bucket_limit", DOUBLE), MANY(7, "bucket", DOUBLE), END};
static const weir_message_t histogram = {"HistogramProto", histogram_fields};

static const weir_field_t summary_audio_fields[] = {
    ONE(1, "sample_rate", FLOAT), ONE(2, "num_channels", INT64), ONE(3, "length_frames", INT64),
    ONE(4, "encoded_audio_string", BYTES), ONE(5, "content_type", STRING), END};
static const weir_message_t summary_audio = {"Summary.Audio", summary_audio_fields};

static const weir_field_t summary_metadata_plugin_data_fields[] = {
    ONE(1, "plugin_name", STRING), ONE(2, "content", BYTES), END};
static const weir_message_t summary_metadata_plugin_data = {
    "SummaryMetadata.PluginData", summary_metadata_plugin_data_fields};

static const weir_field_t summary_metadata_fields[] = {
    MESSAGE(1, "plugin_data", summary_metadata_plugin_data), ONE(2, "display_name", STRING),
    ONE(3, "summary_description", STRING), ENUM(4, "data_class", data_classes), END};
static const weir_message_t summary_metadata = {"SummaryMetadata", summary_metadata_fields};

static const weir_field_t summary_value_fields[] = {
    ONE(1, "tag", STRING), ONEOF(2, "simple_value", FLOAT),
    ONEOF(3, "obsolete_old_style_histogram", BYTES), ONEOF_MESSAGE(4, "image", summary_image),
    ONEOF_MESSAGE(5, "histo", histogram), ONEOF_MESSAGE(6, "audio", summary_audio),
    ONE(7, "node_name", STRING), ONEOF_MESSAGE(8, "tensor", weir_message_tensor),
    MESSAGE(9, "metadata", summary_metadata), END};
static const weir_message_t summary_value = {"Summary.Value", summary_value_fields};

static const weir_field_t summary_fields[] = {
    MESSAGES(1, "value", summary_value), END};
static const weir_message_t summary = {"Summary", summary_fields};

static const weir_field_t log_message_fields[] = {
    ENUM(1, "level", log_levels), ONE(2, "message", STRING), END};
static const weir_message_t log_message = {"LogMessage", log_message_fields};

static const weir_field_t session_log_fields[] = {
    ENUM(1, "status", session_statuses), ONE(2, "checkpoint_path", STRING), ONE(3, "msg", STRING),
    END};
static const weir_message_t session_log = {"SessionLog", session_log_fields};

static const weir_field_t tagged_run_metadata_fields[] = {
    ONE(1, "tag", STRING), ONE(2, "run_metadata", BYTES), END};
static const weir_message_t tagged_run_metadata = {"TaggedRunMetadata", tagged_run_metadata_fields};

static const weir_field_t source_metadata_fields[] = {
    ONE(1, "writer", STRING), END};
static const weir_message_t source_metadata = {"SourceMetadata", source_metadata_fields};

static const weir_field_t event_fields[] = {
    ONE(1, "wall_time", DOUBLE), ONE(2, "step", INT64), ONEOF(3, "file_version", STRING),
    ONEOF(4, "graph_def", BYTES), ONEOF_MESSAGE(5, "summary", summary),
    ONEOF_MESSAGE(6, "log_message", log_message), ONEOF_MESSAGE(7, "session_log", session_log),
    ONEOF_MESSAGE(8, "tagged_run_metadata", tagged_run_metadata), ONEOF(9, "meta_graph_def", BYTES),
    MESSAGE(10, "source_metadata", source_metadata), END};
const weir_message_t weir_message_event = {"Event", event_fields};

static const weir_field_t bundle_header_fields[] = {
    ONE(1, "num_shards", INT32), ENUM(2, "endianness", endiannesses),
    MESSAGE(3, "version", version_def), END};
const weir_message_t weir_message_bundle_header = {"BundleHeaderProto", bundle_header_fields};

static const weir_field_t tensor_slice_extent_fields[] = {
    ONE(1, "start", INT64), ONEOF(2, "length", INT64), END};
static const weir_message_t tensor_slice_extent = {
    "TensorSliceProto.Extent", tensor_slice_extent_fields};

static const weir_field_t tensor_slice_fields[] = {
    MESSAGES(1, "extent", tensor_slice_extent), END};
static const weir_message_t tensor_slice = {"TensorSliceProto", tensor_slice_fields};

static const weir_field_t bundle_entry_fields[] = {
    ENUM(1, "dtype", data_types), MESSAGE(2, "shape", weir_message_tensor_shape),
    ONE(3, "shard_id", INT32), ONE(4, "offset", INT64), ONE(5, "size", INT64),
    ONE(6, "crc32c", FIXED32), MESSAGES(7, "slices", tensor_slice), END};
const weir_message_t weir_message_bundle_entry = {"BundleEntryProto", bundle_entry_fields};

static const weir_field_t saver_def_fields[] = {
    ONE(1, "filename_tensor_name", STRING), ONE(2, "save_tensor_name", STRING),
    ONE(3, "restore_op_name", STRING), ONE(4, "max_to_keep", INT32), ONE(5, "sharded", BOOL),
    ONE(6, "keep_checkpoint_every_n_hours", FLOAT), ENUM(7, "version", checkpoint_versions), END};
const weir_message_t weir_message_saver_def = {"SaverDef", saver_def_fields};

static const weir_field_t meta_info_def_fields[] = {
    ONE(1, "meta_graph_version", STRING), MESSAGE(2, "stripped_op_list", weir_message_op_list),
    ONE(3, "any_info", BYTES), MANY(4, "tags", STRING), ONE(5, "tensorflow_version", STRING),
    ONE(6, "tensorflow_git_version", STRING), ONE(7, "stripped_default_attrs", BOOL),
    MAP(8, "function_aliases", string_to_string), END};
static const weir_message_t meta_info_def = {"MetaGraphDef.MetaInfoDef", meta_info_def_fields};

static const weir_field_t node_list_fields[] = {MANY(1, "value", STRING), END};
static const weir_message_t node_list = {"CollectionDef.NodeList", node_list_fields};
static const weir_field_t bytes_list_fields[] = {MANY(1, "value", BYTES), END};
static const weir_message_t bytes_list = {"CollectionDef.BytesList", bytes_list_fields};
static const weir_field_t int64_list_fields[] = {MANY(1, "value", INT64), END};
static const weir_message_t int64_list = {"CollectionDef.Int64List", int64_list_fields};
static const weir_field_t float_list_fields[] = {MANY(1, "value", FLOAT), END};
static const weir_message_t float_list = {"CollectionDef.FloatList", float_list_fields};

static const weir_field_t collection_def_fields[] = {
    ONEOF_MESSAGE(1, "node_list", node_list), ONEOF_MESSAGE(2, "bytes_list", bytes_list),
    ONEOF_MESSAGE(3, "int64_list", int64_list), ONEOF_MESSAGE(4, "float_list", float_list), END};
static const weir_message_t collection_def = {"CollectionDef", collection_def_fields};
static const weir_field_t collection_entry_fields[] = {
    ONE(1, "key", STRING), MESSAGE(2, "value", collection_def), END};
static const weir_message_t collection_entry = {"CollectionDefEntry", collection_entry_fields};

static const weir_field_t coo_sparse_fields[] = {
    ONE(1, "values_tensor_name", STRING), ONE(2, "indices_tensor_name", STRING),
    ONE(3, "dense_shape_tensor_name", STRING), END};
static const weir_message_t coo_sparse = {"TensorInfo.CooSparse", coo_sparse_fields};
static const weir_field_t tensor_info_fields[] = {
    ONEOF(1, "name", STRING), ENUM(2, "dtype", data_types),
    MESSAGE(3, "tensor_shape", weir_message_tensor_shape),
    ONEOF_MESSAGE(4, "coo_sparse", coo_sparse), END};
static const weir_message_t tensor_info = {"TensorInfo", tensor_info_fields};
static const weir_field_t tensor_info_entry_fields[] = {
    ONE(1, "key", STRING), MESSAGE(2, "value", tensor_info), END};
static const weir_message_t tensor_info_entry = {"TensorInfoEntry", tensor_info_entry_fields};
static const weir_field_t tensor_entry_fields[] = {
    ONE(1, "key", STRING), MESSAGE(2, "value", weir_message_tensor), END};
static const weir_message_t tensor_entry = {"TensorEntry", tensor_entry_fields};

static const weir_field_t signature_def_fields[] = {
    MAP(1, "inputs", tensor_info_entry), MAP(2, "outputs", tensor_info_entry),
    ONE(3, "method_name", STRING), MAP(4, "defaults", tensor_entry), END};
static const weir_message_t signature_def = {"SignatureDef", signature_def_fields};
static const weir_field_t signature_entry_fields[] = {
    ONE(1, "key", STRING), MESSAGE(2, "value", signature_def), END};
static const weir_message_t signature_entry = {"SignatureDefEntry", signature_entry_fields};

static const weir_field_t asset_file_def_fields[] = {
    MESSAGE(1, "tensor_info", tensor_info), ONE(2, "filename", STRING), END};
static const weir_message_t asset_file_def = {"AssetFileDef", asset_file_def_fields};

static const weir_field_t meta_graph_def_fields[] = {
    MESSAGE(1, "meta_info_def", meta_info_def), MESSAGE(2, "graph_def", weir_message_graph_def),
    MESSAGE(3, "saver_def", weir_message_saver_def), MAP(4, "collection_def", collection_entry),
    MAP(5, "signature_def", signature_entry), MESSAGES(6, "asset_file_def", asset_file_def), END};
const weir_message_t weir_message_meta_graph_def = {"MetaGraphDef", meta_graph_def_fields};

static const weir_field_t saved_model_fields[] = {
    ONE(1, "saved_model_schema_version", INT64),
    MESSAGES(2, "meta_graphs", weir_message_meta_graph_def), END};
const weir_message_t weir_message_saved_model = {"SavedModel", saved_model_fields};

static const weir_field_t checkpoint_state_fields[] = {
    ONE(1, "model_checkpoint_path", STRING), MANY(2, "all_model_checkpoint_paths", STRING),
    MANY(3, "all_model_checkpoint_timestamps", DOUBLE), ONE(4, "last_preserved_timestamp", DOUBLE),
    END};
const weir_message_t weir_message_checkpoint_state = {"CheckpointState", checkpoint_state_fields};
// clang-format on

const weir_field_t* weir_message_field(const weir_message_t* message, uint32_t number) {
  for (const weir_field_t* field = message->fields; field->number != 0; ++field) {
    if (field->number == number) return field;
  }
  return NULL;
}

const weir_field_t* weir_message_field_named(const weir_message_t* message, weir_view_t name) {
  for (const weir_field_t* field = message->fields; field->number != 0; ++field) {
    if (weir_view_is(name, field->name)) return field;
  }
  return NULL;
}

weir_wire_type_t weir_field_wire_type(weir_field_type_t type) {
  switch (type) {
    case WEIR_FIELD_INT64:
    case WEIR_FIELD_INT32:
    case WEIR_FIELD_UINT64:
    case WEIR_FIELD_UINT32:
    case WEIR_FIELD_BOOL:
    case WEIR_FIELD_SINT32:
    case WEIR_FIELD_SINT64:
    case WEIR_FIELD_ENUM: return WEIR_WIRE_VARINT;
    case WEIR_FIELD_FLOAT:
    case WEIR_FIELD_SFIXED32:
    case WEIR_FIELD_FIXED32: return WEIR_WIRE_FIXED32;
    case WEIR_FIELD_DOUBLE:
    case WEIR_FIELD_SFIXED64:
    case WEIR_FIELD_FIXED64: return WEIR_WIRE_FIXED64;
    case WEIR_FIELD_GROUP: return WEIR_WIRE_GROUP;
    case WEIR_FIELD_STRING:
    case WEIR_FIELD_BYTES:
    case WEIR_FIELD_MESSAGE: break;
  }
  return WEIR_WIRE_BYTES;
}
