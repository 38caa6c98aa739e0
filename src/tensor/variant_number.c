// variant_number.c — Single numbers as elements of variant tensors.
#include "tensor/variant_number.h"

#include "base/alloc.h"

typedef struct number_t {
  weir_variant_object_t base;
  union {
    int32_t i;
    float f;
    double d;
    bool b;
    char bytes[8];
  } value;
} number_t;

static weir_status_t* number_new(const weir_variant_type_t* type, number_t** out_number) {
  number_t* number = weir_calloc(1, sizeof(*number));
  if (!number) return weir_out_of_memory();
  number->base.type = type;
  weir_ref_init(&number->base.ref);
  *out_number = number;
  return NULL;
}

static void number_destroy(void* object) { weir_free(object); }

static weir_status_t* number_zeros_like(const void* object, void** out_zeros) {
  return number_new(((const weir_variant_object_t*)object)->type, (number_t**)out_zeros);
}

static weir_status_t* number_add(const void* a, const void* b, void** out_sum);
static void number_describe(const void* object, weir_strbuf_t* out);

#define NUMBER_TYPE(name)                                            \
  {                                                                  \
    .type_name = name, .destroy = number_destroy, .add = number_add, \
    .zeros_like = number_zeros_like, .describe = number_describe     \
  }
enum { INT, FLOAT, DOUBLE, BOOL, TYPE_COUNT };
static const weir_variant_type_t types[TYPE_COUNT] = {
    [INT] = NUMBER_TYPE("int"),
    [FLOAT] = NUMBER_TYPE("float"),
    [DOUBLE] = NUMBER_TYPE("double"),
    [BOOL] = NUMBER_TYPE("bool"),
};
static const size_t sizes[TYPE_COUNT] = {[INT] = 4, [FLOAT] = 4, [DOUBLE] = 8, [BOOL] = 1};

static int kind_of(const weir_variant_object_t* object) { return (int)(object->type - types); }

static weir_status_t* number_add(const void* a, const void* b, void** out_sum) {
  const number_t *x = a, *y = b;
  number_t* sum = NULL;
  WEIR_TRY(number_new(x->base.type, &sum));
  switch (kind_of(&x->base)) {
    case INT: sum->value.i = (int32_t)((uint32_t)x->value.i + (uint32_t)y->value.i); break;
    case FLOAT: sum->value.f = x->value.f + y->value.f; break;
    case DOUBLE: sum->value.d = x->value.d + y->value.d; break;
    default: sum->value.b = x->value.b || y->value.b;
  }
  *out_sum = sum;
  return NULL;
}

static void number_describe(const void* object, weir_strbuf_t* out) {
  const number_t* number = object;
  switch (kind_of(&number->base)) {
    case INT: weir_strbuf_printf(out, "%d", (int)number->value.i); break;
    case FLOAT: weir_strbuf_printf(out, "%g", (double)number->value.f); break;
    case DOUBLE: weir_strbuf_printf(out, "%g", number->value.d); break;
    default: weir_strbuf_puts(out, number->value.b ? "1" : "0");
  }
}

const weir_variant_type_t* weir_variant_number_type(weir_view_t type_name) {
  for (int i = 0; i < TYPE_COUNT; ++i) {
    if (weir_view_equal(type_name, weir_view_of(types[i].type_name))) return &types[i];
  }
  return NULL;
}

bool weir_variant_is_number(const weir_variant_object_t* object) {
  return object->type->destroy == number_destroy;
}

weir_status_t* weir_variant_number_create(const weir_variant_type_t* type, weir_view_t bytes,
                                          weir_variant_object_t** out_object) {
  size_t size = sizes[type - types];
  number_t* number = NULL;
  if (bytes.size != size) {
    return WEIR_STATUS(INVALID_ARGUMENT, "a variant %s has %zu bytes of metadata, expected %zu",
                       type->type_name, bytes.size, size);
  }
  WEIR_TRY(number_new(type, &number));
  memcpy(number->value.bytes, bytes.data, size);
  // Only 0 and 1 are bools in C.
  if (type == &types[BOOL]) number->value.b = bytes.data[0] != 0;
  *out_object = &number->base;
  return NULL;
}

weir_view_t weir_variant_number_bytes(const weir_variant_object_t* object) {
  return weir_view(((const number_t*)object)->value.bytes, sizes[kind_of(object)]);
}
