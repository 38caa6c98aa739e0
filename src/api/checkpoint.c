// checkpoint.c — Saving and restoring all variables of a session without a graph of SaveV2 nodes.
#include "api/checkpoint.h"

#include "api/variables.h"
#include "file/bundle.h"
#include "file/checkpoint_state.h"
#include "weir/argument.h"
#include "weir/file.h"

// ---- save ----

// A checkpoint that lacks variables would be the latest and could not be restored.
static weir_status_t* read_values(const weir_variables_t* variables, weir_tensor_t** values) {
  enum { MAX_NAMED = 8 };
  size_t missing = 0;
  weir_strbuf_t names = {0};
  weir_status_t* status = NULL;
  for (size_t i = 0; i < variables->count && !status; ++i) {
    status = weir_variables_read(variables, i, &values[i]);
    if (values[i] || status) continue;
    if (++missing <= MAX_NAMED)
      weir_strbuf_printf(&names, "%s'%s'", missing > 1 ? ", " : "", variables->nodes[i]->def.name);
  }
  if (missing > MAX_NAMED) weir_strbuf_printf(&names, " and %zu more", missing - MAX_NAMED);
  if (missing && !status)
    status =
        WEIR_STATUS(FAILED_PRECONDITION, "checkpoint: %zu of %zu variables are not initialised: %s",
                    missing, variables->count, names.data ? names.data : "?");
  weir_strbuf_free(&names);
  return status;
}

// Splits "dir/name" for the state file.
static weir_status_t* update_state(const char* prefix) {
  const char* slash = strrchr(prefix, '/');
  char* directory = slash ? weir_strndup(prefix, (size_t)(slash - prefix)) : weir_strdup(".");
  if (!directory) return weir_out_of_memory();
  const char* base = slash ? slash + 1 : prefix;
  weir_checkpoint_state_t state = {.latest = weir_strdup(base)};
  weir_status_t* status =
      state.latest ? weir_names_add(&state.all, weir_view_of(base)) : weir_out_of_memory();
  if (!status) status = weir_checkpoint_state_save(*directory ? directory : "/", &state);
  weir_checkpoint_state_free(&state);
  weir_free(directory);
  return status;
}

weir_status_t* weir_checkpoint_save(weir_session_t* session, const char* prefix) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(prefix);
  weir_bundle_writer_t* writer = NULL;
  weir_variables_t variables = {.session = NULL};
  WEIR_TRY(weir_variables_list(session, &variables));
  weir_tensor_t** values = weir_calloc(variables.count, sizeof(*values));
  weir_status_t* status = values ? NULL : weir_out_of_memory();
  if (!status && variables.count == 0)
    status = WEIR_STATUS(INVALID_ARGUMENT, "checkpoint: no variables to save");
  if (!status) status = read_values(&variables, values);
  if (!status) status = weir_bundle_writer_create(prefix, 1, &writer);
  for (size_t i = 0; i < variables.count && !status; ++i)
    status = weir_bundle_add(writer, weir_view_of(variables.nodes[i]->def.name), values[i]);
  if (!status) status = weir_bundle_finish(writer);
  weir_bundle_writer_destroy(writer);
  for (size_t i = 0; values && i < variables.count; ++i) weir_tensor_release(values[i]);
  weir_free(values);
  weir_variables_free(&variables);
  return status ? status : update_state(prefix);
}

// ---- restore: all values are read and checked before the first variable changes ----

static weir_status_t* read_checked(const weir_variables_t* variables, weir_value_source_fn_t read,
                                   void* source, weir_tensor_t** values) {
  for (size_t i = 0; i < variables->count; ++i) {
    WEIR_TRY(read(source, variables->nodes[i]->def.name, &values[i]));
    if (values[i]) WEIR_TRY(weir_variables_check(variables, i, values[i]));
  }
  return NULL;
}

weir_status_t* weir_checkpoint_assign_all(weir_session_t* session, weir_value_source_fn_t read,
                                          void* source) {
  weir_variables_t variables = {.session = NULL};
  WEIR_TRY(weir_variables_list(session, &variables));
  weir_tensor_t** values = weir_calloc(variables.count, sizeof(*values));
  weir_status_t* status = values ? NULL : weir_out_of_memory();
  if (!status) status = read_checked(&variables, read, source, values);
  if (!status) status = weir_variables_assign(&variables, values);
  for (size_t i = 0; values && i < variables.count; ++i) weir_tensor_release(values[i]);
  weir_free(values);
  weir_variables_free(&variables);
  return status;
}

static weir_status_t* read_bundle(void* source, const char* name, weir_tensor_t** out_value) {
  return weir_bundle_read(source, weir_view_of(name), out_value);
}

weir_status_t* weir_checkpoint_restore(weir_session_t* session, const char* prefix) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(prefix);
  weir_bundle_t* bundle = NULL;
  WEIR_TRY(weir_bundle_open(prefix, &bundle));
  weir_status_t* status = weir_checkpoint_assign_all(session, read_bundle, bundle);
  weir_bundle_close(bundle);
  return status;
}
