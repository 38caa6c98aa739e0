// lease.c — A lease beside the global step; and how loops ask for one, there or in etcd.
#include "lease.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "nodes.h"
#include "weir/election.h"
#include "weir/node.h"
#include "weir/optimizer.h"

enum { DEFAULT_SECONDS = 10, HOLDER_SIZE = 160 };

// No other process, nor this one started again, has the same.
static void make_holder(char out[HOLDER_SIZE]) {
  char host[128] = "";
  unsigned random = 0;
  gethostname(host, sizeof(host) - 1);
  if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) random = 0;
  snprintf(out, HOLDER_SIZE, "%s:%ld:%08x", host, (long)getpid(), random);
}

static weir_node_t* add(weir_scope_t* s, const char* name, weir_edge_t holder, float seconds) {
  const weir_edge_t inputs[] = {holder, weir_const_float(s, seconds)};
  weir_node_builder_t* builder = weir_node_begin(s, "_Lease");
  weir_node_inputs(builder, inputs, 2);
  weir_node_set_string(builder, "shared_name", name, strlen(name));
  return weir_node_end(builder);
}

weir_lease_t weir_lease_with(weir_scope_t* scope, const weir_lease_options_t* options) {
  options = options ? options : &(const weir_lease_options_t){0};
  const char* name = options->name ? options->name : "chief";
  const float seconds = options->seconds != 0 ? options->seconds : DEFAULT_SECONDS;
  const weir_lease_t none = {.is_held = WEIR_LIB_NONE};
  char made[HOLDER_SIZE];
  make_holder(made);
  const char* holder = options->holder ? options->holder : made;
  if (weir_scope_status(scope)) return none;
  if (!(seconds > 0) || !*name || !*holder) {
    weir_lib_fail(scope, "lease '%s' of '%s': needs names and a positive time, got %g seconds",
                  name, holder, (double)seconds);
    return none;
  }
  weir_edge_t step = weir_global_step(scope);
  weir_scope_t* s = weir_lib_beside(weir_scope_lift(weir_scope_in(scope, "lease")), step);
  weir_edge_t who = weir_const_string(s, holder);
  weir_node_t* asked = add(s, name, who, seconds);
  weir_node_t* released = add(s, name, who, 0);
  if (weir_scope_status(scope)) return none;
  return (weir_lease_t){.is_held = {asked, 0}, .release = released, .seconds = seconds};
}

// ---- for loops ----

bool weir_lib_is_lease(const weir_lease_t* lease) { return lease->is_held.node || lease->election; }

weir_status_t* weir_lib_lease_ask(const weir_lease_t* lease, weir_session_t* session,
                                  const weir_run_options_t* options, bool* out_is_held) {
  weir_tensor_t* value = NULL;
  const weir_step_spec_t spec = {WEIR_FETCHES(lease->is_held)};
  if (lease->election) return weir_election_ask(lease->election, out_is_held);
  WEIR_TRY(weir_session_run_with(session, &spec, options, &value, NULL, NULL));
  *out_is_held = *(const bool*)weir_tensor_data(value);
  weir_tensor_release(value);
  return NULL;
}

weir_status_t* weir_lib_lease_release(const weir_lease_t* lease, weir_session_t* session,
                                      const weir_run_options_t* options) {
  weir_tensor_t* none = NULL;
  const weir_step_spec_t spec = {WEIR_TARGETS(lease->release)};
  if (lease->election) return weir_election_release(lease->election);
  return weir_session_run_with(session, &spec, options, &none, NULL, NULL);
}
