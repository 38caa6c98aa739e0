// registry_test.c — Op definitions, good and bad; resolution of attributes; kernels by type; OpDef
// round trips.
// cmocka.h needs the headers before it.

#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "testing/cmocka.h"

static weir_status_t* compute(weir_kernel_ctx_t* ctx) {
  (void)ctx;
  return NULL;
}

static const weir_kernel_def_t kernels[] = {
    {"CPU", .types = "T: float, double", .compute = compute},
    {"CPU", .types = "T: int32", .compute = compute, .host_inputs = "values, extra",
     .host_outputs = "copies"},
    {.device = NULL}};
static const weir_kernel_def_t more_kernels[] = {{"NULL", .compute = compute}, {.device = NULL}};
static const weir_op_def_t good_ops[] = {
    {.name = "Many",
     .attrs =
         "N: int; T: {float, double, int32} = DT_FLOAT; strides: list(int) >= 4 = [1, 2, 3, 4]; "
         "padding: {'SAME', \"VA;L\\\"ID\"} = 'VA;L\"ID'; eps: float = 1e-3; inf: float = -inf; "
         "flag: "
         "bool = true; "
         "shape: shape = {unknown_rank: true}; known: shape = [2,?]; "
         "value: tensor = {dtype: DT_INT32 tensor_shape {} int_val: 1}; f: func; fs: list(func) = "
         "[]; "
         "Tout: list({float, int32}) >= 0; names: list(string) = ['a', '']; x: numbertype = "
         "DT_INT64",
     .inputs = "values: N * T; index: int32; state: Ref(T); extra: Tout",
     .outputs = "sum: T; copies: Ref(N * T); all: Tout",
     .flags = WEIR_OP_STATEFUL | WEIR_OP_COMMUTATIVE,
     .infer_shape = weir_shape_fn_unknown,
     .kernels = kernels},
    {.name = "Nothing", .infer_shape = weir_shape_fn_none},
    {.name = NULL}};
static const weir_op_def_t kernel_rows[] = {{.name = "Many", .kernels = more_kernels},
                                            {.name = NULL}};
static const weir_op_module_t good = {.file = "good.c", .ops = good_ops};
static const weir_op_module_t rows = {.file = "good.cu", .ops = kernel_rows};

static weir_registry_t* create_good(void) {
  const weir_op_module_t* modules[] = {&rows, &good, NULL};
  weir_registry_t* registry = NULL;
  weir_status_t* status = weir_registry_create(modules, &registry);
  if (status) fail_msg("%s", weir_status_message(status));
  return registry;
}

static void check_many(const weir_op_t* op) {
  assert_int_equal(op->attr_count, 15);
  assert_int_equal(op->input_count, 4);
  assert_int_equal(op->output_count, 3);
  const weir_attr_def_t* n = weir_op_attr(op, "N");
  assert_true(n->has_minimum);  // it counts an argument
  assert_int_equal(n->minimum, 1);
  const weir_attr_def_t* t = weir_op_attr(op, "T");
  assert_int_equal(t->allowed_types, 1u << 1 | 1u << 2 | 1u << 3);
  assert_int_equal(t->default_value.u.type, WEIR_DTYPE_FLOAT);
  const weir_attr_def_t* strides = weir_op_attr(op, "strides");
  assert_true(strides->is_list);
  assert_int_equal(strides->minimum, 4);
  assert_int_equal(strides->default_value.u.ints[3], 4);
  assert_true(weir_view_is(weir_op_attr(op, "padding")->default_value.u.s, "VA;L\"ID"));
  assert_true(weir_op_attr(op, "eps")->default_value.u.f == 1e-3f);
  assert_true(weir_op_attr(op, "inf")->default_value.u.f < -3e38f);
  assert_int_equal(weir_op_attr(op, "shape")->default_value.u.shape->rank, -1);
  assert_int_equal(weir_op_attr(op, "known")->default_value.u.shape->dims[1], -1);
  assert_int_equal(weir_op_attr(op, "value")->default_value.u.tensor->dtype, WEIR_DTYPE_INT32);
  assert_int_equal(weir_op_attr(op, "Tout")->minimum, 0);
  assert_string_equal(op->inputs[0].number_attr, "N");
  assert_string_equal(op->inputs[0].type_attr, "T");
  assert_int_equal(op->inputs[1].type, WEIR_DTYPE_INT32);
  assert_true(op->inputs[2].is_ref);
  assert_string_equal(op->outputs[2].type_list_attr, "Tout");
}

static void test_good(void** state) {
  (void)state;
  weir_registry_t* registry = create_good();
  assert_int_equal(weir_registry_count(registry), 2);
  assert_string_equal(weir_registry_at(registry, 0)->name, "Many");
  assert_null(weir_registry_find(registry, weir_view_of("Nope")));
  check_many(weir_registry_find(registry, weir_view_of("Many")));
  weir_registry_destroy(registry);
}

static void test_op_def_round_trip(void** state) {
  (void)state;
  weir_registry_t* registry = create_good();
  const weir_op_t* op = weir_registry_find(registry, weir_view_of("Many"));
  weir_strbuf_t bytes = {0};
  weir_strbuf_t again = {0};
  weir_arena_t arena = {0};
  weir_tensor_list_t tensors = {0};
  weir_op_t* parsed = NULL;
  assert_null(weir_op_write(op, &bytes));
  assert_null(weir_op_parse(weir_strbuf_view(&bytes), &arena, &tensors, &parsed));
  check_many(parsed);
  assert_int_equal(parsed->flags, op->flags);
  assert_null(weir_op_write(parsed, &again));
  assert_true(weir_view_equal(weir_strbuf_view(&bytes), weir_strbuf_view(&again)));
  for (size_t size = 0; size < bytes.size; ++size) {  // no prefix may crash
    weir_op_t* cut = NULL;
    weir_status_destroy(weir_op_parse(weir_view(bytes.data, size), &arena, &tensors, &cut));
  }
  weir_strbuf_free(&bytes);
  weir_strbuf_free(&again);
  weir_tensor_list_free(&tensors);
  weir_arena_free(&arena);
  weir_registry_destroy(registry);
}

// Arguments whose type, number or types are in an attr that there is not, or that is of another
// kind.
static void test_attrs_of_arguments(void** state) {
  (void)state;
  const weir_attr_def_t attrs[] = {{.name = "T", .kind = WEIR_ATTR_TYPE},
                                   {.name = "Ts", .kind = WEIR_ATTR_TYPE, .is_list = true},
                                   {.name = "N", .kind = WEIR_ATTR_INT}};
  const struct {
    weir_arg_t arg;
    const char* says;
  } kCases[] = {{{.name = "x", .type_attr = "T"}, NULL},
                {{.name = "x", .type_attr = "T", .number_attr = "N"}, NULL},
                {{.name = "x", .type_list_attr = "Ts"}, NULL},
                {{.name = "x", .type_attr = "U"}, "names 'U', which is no attr of type type"},
                {{.name = "x", .type_attr = "N"}, "names 'N'"},
                {{.name = "x", .type_attr = "Ts"}, "names 'Ts'"},
                {{.name = "x", .type_attr = "T", .number_attr = "T"}, "names 'T'"},
                {{.name = "x", .type_list_attr = "T"}, "names 'T'"},
                {{.name = "x"}, "needs exactly one kind of type"}};
  for (size_t i = 0; i < 2 * WEIR_COUNT_OF(kCases); ++i) {
    weir_arg_t arg = kCases[i / 2].arg;
    weir_op_t op = {.name = "Asked", .attrs = attrs, .attr_count = WEIR_COUNT_OF(attrs)};
    if (i % 2) op.inputs = &arg, op.input_count = 1;
    else op.outputs = &arg, op.output_count = 1;
    weir_strbuf_t bytes = {0};
    weir_arena_t arena = {0};
    weir_tensor_list_t tensors = {0};
    weir_op_t* parsed = NULL;
    assert_null(weir_op_write(&op, &bytes));
    weir_status_t* status = weir_op_parse(weir_strbuf_view(&bytes), &arena, &tensors, &parsed);
    const char* says = kCases[i / 2].says;
    assert_int_equal(weir_status_code(status), says ? WEIR_INVALID_ARGUMENT : WEIR_OK);
    if (says) assert_non_null(strstr(weir_status_message(status), says));
    weir_status_destroy(status);
    weir_strbuf_free(&bytes);
    weir_tensor_list_free(&tensors);
    weir_arena_free(&arena);
  }
}

// ---- bad definitions ----

static void expect_bad(weir_op_def_t def, const char* text) {
  if (!def.infer_shape) def.infer_shape = weir_shape_fn_unknown;
  if (!def.name) def.name = "Bad";
  weir_op_def_t ops[] = {def, {.name = NULL}};
  const weir_op_module_t module = {.file = "bad.c", .ops = ops};
  const weir_op_module_t* modules[] = {&module, NULL};
  weir_registry_t* registry = NULL;
  weir_status_t* status = weir_registry_create(modules, &registry);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), "bad.c: op "));
  if (!strstr(weir_status_message(status), text)) fail_msg("%s", weir_status_message(status));
  weir_status_destroy(status);
}

static void test_bad_attrs(void** state) {
  (void)state;
  expect_bad((weir_op_def_t){.attrs = "T: typ"}, "'T: typ'");
  expect_bad((weir_op_def_t){.attrs = "T type"}, "colon");
  expect_bad((weir_op_def_t){.attrs = ": type"}, "name");
  expect_bad((weir_op_def_t){.attrs = "T: {float"}, "closing brace");
  expect_bad((weir_op_def_t){.attrs = "T: {}"}, "type is expected");
  expect_bad((weir_op_def_t){.attrs = "T: list(int"}, "parenthesis");
  expect_bad((weir_op_def_t){.attrs = "T: type; T: int"}, "twice");
  expect_bad((weir_op_def_t){.attrs = "i: int = x"}, "integer");
  expect_bad((weir_op_def_t){.attrs = "i: int = 1 2"}, "more than");
  expect_bad((weir_op_def_t){.attrs = "i: int >= 3 = 1"}, "at least minimum 3");
  expect_bad((weir_op_def_t){.attrs = "T: {float} = DT_INT32"},
             "not in the list of allowed values: float");
  expect_bad((weir_op_def_t){.attrs = "s: string = 'x"}, "closing quote");
  expect_bad((weir_op_def_t){.attrs = "s: {'A'} = 'B'"}, "\"B\"");
  expect_bad((weir_op_def_t){.attrs = "s: list(int) = [1, 2"}, "closing bracket");
  expect_bad((weir_op_def_t){.attrs = "s: shape = {dim {size: 1}"}, "closing brace");
  expect_bad((weir_op_def_t){.attrs = "v: tensor = {nope: 1}"}, "nope");
  expect_bad((weir_op_def_t){.attrs = "b: bool = yes"}, "true or false");
  expect_bad((weir_op_def_t){.attrs = "b: bool >= 1"}, "minimum");
}

static void test_bad_args(void** state) {
  (void)state;
  expect_bad((weir_op_def_t){.inputs = "x: T"}, "neither a type nor an attribute");
  expect_bad((weir_op_def_t){.attrs = "i: int", .inputs = "x: i"}, "holds no type");
  expect_bad((weir_op_def_t){.attrs = "T: type", .inputs = "x: N * T"}, "repeat count");
  expect_bad((weir_op_def_t){.attrs = "N: int; T: list(type)", .inputs = "x: N * T"},
             "cannot be repeated");
  expect_bad((weir_op_def_t){.inputs = "x: Ref(float"}, "closing parenthesis");
  expect_bad((weir_op_def_t){.inputs = "x: float; x: float"}, "twice");
  expect_bad((weir_op_def_t){.outputs = "x float"}, "output 'x float'");
}

static void test_bad_rows(void** state) {
  (void)state;
  const weir_kernel_def_t no_compute[] = {{.device = "CPU"}, {.device = NULL}};
  const weir_kernel_def_t bad_attr[] = {{"CPU", .types = "T: float", .compute = compute},
                                        {.device = NULL}};
  const weir_kernel_def_t bad_host[] = {{"CPU", .compute = compute, .host_inputs = "y"},
                                        {.device = NULL}};
  const weir_kernel_def_t bad_output[] = {{"CPU", .compute = compute, .host_outputs = "z, zz"},
                                          {.device = NULL}};
  expect_bad((weir_op_def_t){.outputs = "z: float", .kernels = bad_output}, "'zz'");
  expect_bad((weir_op_def_t){.inputs = "x: float", .kernels = no_compute}, "compute");
  expect_bad((weir_op_def_t){.inputs = "x: float", .kernels = bad_attr}, "'T'");
  expect_bad((weir_op_def_t){.attrs = "T: type", .inputs = "x: float", .kernels = bad_host}, "'y'");
  const weir_kernel_def_t bad_type[] = {{"CPU", .types = "T: float, nope", .compute = compute},
                                        {.device = NULL}};
  expect_bad((weir_op_def_t){.attrs = "T: type", .kernels = bad_type}, "'nope' is not a type");
  expect_bad((weir_op_def_t){.name = "lower"}, "name");
}

// ---- resolution ----

typedef struct resolved_t {
  weir_registry_t* registry;
  weir_arena_t arena;
  weir_attrs_t attrs;
} resolved_t;

static weir_status_t* resolve(resolved_t* r, weir_attrs_t given, const weir_dtype_t* types,
                              int count) {
  r->registry = create_good();
  const weir_op_t* op = weir_registry_find(r->registry, weir_view_of("Many"));
  return weir_op_resolve(op, "n", given, types, count, &r->arena, &r->attrs);
}

static void resolved_free(resolved_t* r) {
  weir_arena_free(&r->arena);
  weir_registry_destroy(r->registry);
}

static const weir_func_t body = {.name = {"body", 4}};
static const weir_dtype_t input_types[] = {WEIR_DTYPE_DOUBLE, WEIR_DTYPE_DOUBLE, WEIR_DTYPE_INT32,
                                           (weir_dtype_t)(WEIR_DTYPE_DOUBLE + 100),
                                           WEIR_DTYPE_FLOAT};

static void test_inference(void** state) {
  (void)state;
  resolved_t r = {.registry = NULL};
  const weir_dtype_t tout[] = {WEIR_DTYPE_FLOAT};
  assert_null(resolve(&r,
                      WEIR_ATTRS(weir_attr_func("f", &body), weir_attr_types("Tout", tout, 1),
                                 weir_attr_int("_extra", 5)),
                      input_types, 5));
  assert_int_equal(weir_attrs_int(r.attrs, "N"), 2);
  assert_int_equal(weir_attrs_type(r.attrs, "T"), WEIR_DTYPE_DOUBLE);
  assert_int_equal(weir_attrs_int(r.attrs, "_extra"), 5);
  assert_int_equal(weir_attrs_list(r.attrs, "strides")->count, 4);
  const weir_dtype_t* types = NULL;
  int count = 0;
  const weir_op_t* op = weir_registry_find(r.registry, weir_view_of("Many"));
  assert_null(weir_op_arg_types(op, "n", r.attrs, true, &r.arena, &types, &count));
  assert_int_equal(count, 4);
  assert_int_equal(types[1], WEIR_DTYPE_DOUBLE + 100);
  weir_node_def_t node = {.name = "n", .op_name = "Many", .op = op, .attrs = r.attrs};
  int first = 0;
  weir_node_input_range(&node, 3, &first, &count);
  assert_int_equal(first, 4);
  assert_int_equal(count, 1);
  resolved_free(&r);
}

static void expect_unresolved(weir_attrs_t given, const weir_dtype_t* types, int count,
                              const char* text) {
  resolved_t r = {.registry = NULL};
  weir_status_t* status = resolve(&r, given, types, count);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  if (!strstr(weir_status_message(status), text)) fail_msg("%s", weir_status_message(status));
  weir_status_destroy(status);
  resolved_free(&r);
}

static void test_resolution_errors(void** state) {
  (void)state;
  const weir_dtype_t strings[] = {WEIR_DTYPE_STRING};
  expect_unresolved(WEIR_NO_ATTRS, NULL, 0, "NodeDef missing attr 'N' from Op<name=Many");
  expect_unresolved(WEIR_ATTRS(weir_attr_int("N", 0)), NULL, 0,
                    "Value for attr 'N' of 0 must be at least minimum 1");
  expect_unresolved(
      WEIR_ATTRS(weir_attr_type("T", WEIR_DTYPE_STRING)), NULL, 0,
      "Value for attr 'T' of string is not in the list of allowed values: float, double, int32");
  expect_unresolved(WEIR_ATTRS(weir_attr_float("N", 1)), NULL, 0,
                    "AttrValue had value with type 'float' when 'int' expected");
  expect_unresolved(WEIR_ATTRS(weir_attr_type("T", (weir_dtype_t)101)), NULL, 0,
                    "reference type value of float_ref");
  expect_unresolved(WEIR_ATTRS(weir_attr_type("T", (weir_dtype_t)77)), NULL, 0,
                    "invalid DataType enum: 77");
  expect_unresolved(WEIR_ATTRS(weir_attr_ints("strides", NULL, 0)), NULL, 0,
                    "Length for attr 'strides' of 0 must be at least minimum 4");
  expect_unresolved(WEIR_ATTRS(weir_attr_types("Tout", strings, 1)), NULL, 0, "of string");
  expect_unresolved(WEIR_ATTRS(weir_attr_int("N", 9), weir_attr_types("Tout", NULL, 0)),
                    input_types, 5, "do not match 5 inputs");
  expect_unresolved(WEIR_NO_ATTRS, input_types, 5, "cannot both be inferred");
}

// ---- kernels ----

static void test_find_kernel(void** state) {
  (void)state;
  resolved_t r = {.registry = NULL};
  weir_attrs_t given =
      WEIR_ATTRS(weir_attr_func("f", &body), weir_attr_int("N", 1),
                 weir_attr_types("Tout", NULL, 0), weir_attr_type("T", WEIR_DTYPE_INT32));
  assert_null(resolve(&r, given, NULL, 0));
  const weir_op_t* op = weir_registry_find(r.registry, weir_view_of("Many"));
  weir_node_def_t node = {.name = "n", .op_name = "Many", .op = op, .attrs = r.attrs};
  const weir_kernel_def_t* kernel = NULL;
  assert_null(weir_op_find_kernel(&node, "CPU", &kernel));
  assert_string_equal(kernel->types, kernels[1].types);
  assert_null(weir_op_find_kernel(&node, "NULL", &kernel));
  assert_string_equal(kernel->device, more_kernels[0].device);
  assert_int_equal(weir_kernel_types(op, &kernels[0], "T"), 1u << 1 | 1u << 2);
  assert_int_equal(weir_kernel_types(op, &more_kernels[0], "T"), 1u << 1 | 1u << 2 | 1u << 3);
  weir_status_t* status = weir_op_find_kernel(&node, "GPU", &kernel);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), "device='CPU'; T in [DT_FLOAT, DT_DOUBLE]"));
  weir_status_destroy(status);
  status =
      weir_op_find_kernel(&(weir_node_def_t){.name = "n", .op_name = "Nobody"}, "CPU", &kernel);
  assert_int_equal(weir_status_code(status), WEIR_NOT_FOUND);
  assert_non_null(strstr(weir_status_message(status), "support Op 'Nobody' used by {{node n}}"));
  weir_status_destroy(status);
  resolved_free(&r);
}

// A list argument covers a range of tensors: values is 0 and 1, extra is 4, and of the outputs
// copies is 1 and 2.
static void test_host_args(void** state) {
  (void)state;
  resolved_t r = {.registry = NULL};
  const weir_dtype_t types[] = {WEIR_DTYPE_INT32, WEIR_DTYPE_INT32, WEIR_DTYPE_INT32,
                                WEIR_DTYPE_INT32, WEIR_DTYPE_FLOAT};
  const weir_dtype_t tout[] = {WEIR_DTYPE_FLOAT};
  assert_null(
      resolve(&r,
              WEIR_ATTRS(weir_attr_func("f", &body), weir_attr_int("N", 2),
                         weir_attr_types("Tout", tout, 1), weir_attr_type("T", WEIR_DTYPE_INT32)),
              NULL, 0));
  const weir_op_t* op = weir_registry_find(r.registry, weir_view_of("Many"));
  weir_node_def_t node = {.name = "n",
                          .op_name = "Many",
                          .op = op,
                          .attrs = r.attrs,
                          .input_count = 5,
                          .output_count = 4,
                          .input_types = types,
                          .output_types = types};
  const weir_kernel_def_t* kernel = NULL;
  assert_null(weir_op_find_kernel(&node, "CPU", &kernel));
  assert_int_equal(kernel->host_input_args, 1u << 0 | 1u << 3);
  assert_int_equal(kernel->host_output_args, 1u << 1);
  assert_int_equal(weir_kernel_host_args(&node, kernel, false), 1u << 0 | 1u << 1 | 1u << 4);
  assert_int_equal(weir_kernel_host_args(&node, kernel, true), 1u << 1 | 1u << 2);
  assert_null(weir_op_find_kernel(&node, "NULL", &kernel));
  assert_int_equal(weir_kernel_host_args(&node, kernel, false), 0);
  resolved_free(&r);
}

// Of 70 values, index is input 70, state 71 and extra 72; of the outputs copies is 1 to 70.
static void test_many_host_args(void** state) {
  (void)state;
  resolved_t r = {.registry = NULL};
  weir_dtype_t types[73];
  const weir_dtype_t tout[] = {WEIR_DTYPE_FLOAT};
  for (int i = 0; i < 73; ++i) types[i] = WEIR_DTYPE_INT32;
  assert_null(
      resolve(&r,
              WEIR_ATTRS(weir_attr_func("f", &body), weir_attr_int("N", 70),
                         weir_attr_types("Tout", tout, 1), weir_attr_type("T", WEIR_DTYPE_INT32)),
              NULL, 0));
  weir_node_def_t node = {.name = "n",
                          .op_name = "Many",
                          .op = weir_registry_find(r.registry, weir_view_of("Many")),
                          .attrs = r.attrs,
                          .input_count = 73,
                          .output_count = 72,
                          .input_types = types,
                          .output_types = types};
  weir_kernel_ctx_t ctx = {.node = &node};
  assert_null(weir_op_find_kernel(&node, "CPU", &ctx.kernel));
  ctx.host_outputs = weir_kernel_host_args(&node, ctx.kernel, true);
  for (int i = 0; i < 73; ++i)
    assert_int_equal(weir_kernel_is_host_input(&node, ctx.kernel, i), i != 70 && i != 71);
  for (int i = 0; i < 72; ++i)
    assert_int_equal(weir_kernel_is_host_output(&ctx, i), i >= 1 && i <= 70);
  resolved_free(&r);
}

static void test_allocation_failures(void** state) {
  (void)state;
  const weir_op_module_t* modules[] = {&good, &rows, NULL};
  for (int n = 1; n < 200; ++n) {
    weir_registry_t* registry = NULL;
    weir_alloc_fail_at(n, true);
    weir_status_t* status = weir_registry_create(modules, &registry);
    weir_alloc_fail_at(0, false);
    if (!status) {
      weir_registry_destroy(registry);
      return;
    }
    assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_good),
      cmocka_unit_test(test_op_def_round_trip),
      cmocka_unit_test(test_attrs_of_arguments),
      cmocka_unit_test(test_bad_attrs),
      cmocka_unit_test(test_bad_args),
      cmocka_unit_test(test_bad_rows),
      cmocka_unit_test(test_inference),
      cmocka_unit_test(test_resolution_errors),
      cmocka_unit_test(test_find_kernel),
      cmocka_unit_test(test_host_args),
      cmocka_unit_test(test_many_host_args),
      cmocka_unit_test(test_allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
