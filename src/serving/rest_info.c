// rest_info.c — What REST tells of models: states of versions, signatures.
#include <ctype.h>
#include <inttypes.h>

#include "serving/rest.h"

// ---- states ----

typedef struct states_t {
  weir_strbuf_t* out;
  int count;
} states_t;

static void put_version(void* arg, int64_t number, weir_version_state_t state, weir_code_t code,
                        const char* message) {
  states_t* states = arg;
  weir_strbuf_printf(states->out,
                     "%s\n {\n  \"version\": \"%" PRId64
                     "\",\n  \"state\": \"%s\",\n"
                     "  \"status\": {\n   \"error_code\": \"%s\",\n   \"error_message\": ",
                     states->count++ ? "," : "", number, weir_version_state_name(state),
                     code ? weir_code_name(code) : "OK");
  weir_json_put_string(message, states->out);
  weir_strbuf_puts(states->out, "\n  }\n }");
}

weir_status_t* weir_rest_write_status(weir_catalog_t* catalog, const weir_model_spec_t* spec,
                                      weir_strbuf_t* out) {
  states_t states = {.out = out};
  weir_strbuf_puts(out, "{\n\"model_version_status\": [");
  WEIR_TRY(weir_catalog_visit(catalog, spec, put_version, &states));
  weir_strbuf_puts(out, "\n]\n}\n");
  return NULL;
}

// ---- metadata ----

// "DT_FLOAT"
static void put_dtype(weir_dtype_t dtype, weir_strbuf_t* out) {
  weir_strbuf_puts(out, "DT_");
  for (const char* c = dtype ? weir_dtype_name(dtype) : "invalid"; *c; ++c)
    weir_strbuf_putc(out, (char)toupper((unsigned char)*c));
}

static void put_shape(const weir_model_port_t* port, weir_strbuf_t* out) {
  weir_strbuf_puts(out, "{\"dim\": [");
  for (int i = 0; i < port->rank; ++i)
    weir_strbuf_printf(out, "%s{\"size\": \"%" PRId64 "\", \"name\": \"\"}", i ? ", " : "",
                       port->dims[i]);
  weir_strbuf_printf(out, "], \"unknown_rank\": %s}", port->rank < 0 ? "true" : "false");
}

static void put_ports(const char* key, const weir_model_port_t* ports, int count,
                      weir_strbuf_t* out) {
  weir_strbuf_printf(out, "\"%s\": {", key);
  for (int i = 0; i < count; ++i) {
    weir_strbuf_puts(out, i ? ",\n  " : "\n  ");
    weir_json_put_string(ports[i].name, out);
    weir_strbuf_puts(out, ": {\"dtype\": \"");
    put_dtype(ports[i].dtype, out);
    weir_strbuf_puts(out, "\", \"tensor_shape\": ");
    put_shape(&ports[i], out);
    weir_strbuf_puts(out, ", \"name\": ");
    weir_json_put_string(ports[i].tensor, out);
    weir_strbuf_putc(out, '}');
  }
  weir_strbuf_putc(out, '}');
}

static void put_signature(const weir_signature_t* signature, weir_strbuf_t* out) {
  weir_json_put_string(signature->name, out);
  weir_strbuf_puts(out, ": {\n ");
  put_ports("inputs", signature->inputs, signature->input_count, out);
  weir_strbuf_puts(out, ",\n ");
  put_ports("outputs", signature->outputs, signature->output_count, out);
  weir_strbuf_puts(out, ",\n \"method_name\": ");
  weir_json_put_string(signature->method, out);
  weir_strbuf_puts(out, "\n}");
}

weir_status_t* weir_rest_write_metadata(weir_catalog_t* catalog, const weir_model_spec_t* spec,
                                        weir_strbuf_t* out) {
  weir_version_t* version = NULL;
  WEIR_TRY(weir_catalog_find(catalog, spec, &version));
  weir_strbuf_puts(out, "{\n\"model_spec\": {\n \"name\": ");
  weir_json_put_string(version->model_name, out);
  weir_strbuf_printf(out,
                     ",\n \"signature_name\": \"\",\n \"version\": \"%" PRId64
                     "\"\n},\n\"metadata\": {\"signature_def\": {\n\"signature_def\": {\n",
                     version->number);
  for (int i = 0; i < weir_model_signature_count(version->model); ++i) {
    if (i > 0) weir_strbuf_puts(out, ",\n");
    put_signature(weir_model_signature_at(version->model, i), out);
  }
  weir_strbuf_puts(out, "\n}\n}\n}\n}\n");
  weir_version_release(version);
  return NULL;
}
