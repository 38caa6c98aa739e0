// passes.c — The passes, in the order they run.
#include <stdlib.h>

#include "base/string.h"
#include "pass/pass.h"

// Folding runs again after simplification, which turns more inputs into constants and drops hops
// between them. Mixed precision comes once it is known what is computed at all, and before equal
// casts are merged and casts are fused. What products take over is not there to be fused any more.
const weir_pass_t weir_passes[] = {
    {.name = "calls", .run = weir_pass_calls, .is_required = true},
    {.name = "fold", .run = weir_pass_fold},
    {.name = "arithmetic", .run = weir_pass_arithmetic},
    {.name = "fold", .run = weir_pass_fold},
    {.name = "mixed", .run = weir_pass_mixed},
    {.name = "cse", .run = weir_pass_cse},
    {.name = "unread", .run = weir_pass_unread},
    {.name = "epilogue", .run = weir_pass_epilogue, .is_local = true},
    {.name = "fuse", .run = weir_pass_fuse, .is_local = true},
    {.name = "join", .run = weir_pass_join, .is_local = true},
    {.name = NULL},
};

static bool is_disabled(const char* list, const weir_pass_t* pass) {
  weir_view_t rest = weir_view_of(list);
  weir_view_t part;
  while (weir_view_next(&rest, ',', &part)) {
    part = weir_view_trim(part);
    if (weir_view_is(part, pass->name) || (weir_view_is(part, "all") && !pass->is_required))
      return true;
  }
  return false;
}

static weir_status_t* check_list(const char* list) {
  weir_view_t rest = weir_view_of(list);
  weir_view_t part;
  while (weir_view_next(&rest, ',', &part)) {
    part = weir_view_trim(part);
    bool is_known = part.size == 0 || weir_view_is(part, "all");
    for (const weir_pass_t* pass = weir_passes; pass->name && !is_known; ++pass)
      is_known = weir_view_is(part, pass->name);
    if (!is_known)
      return WEIR_STATUS(INVALID_ARGUMENT, "There is no graph pass '%.*s' to disable",
                         WEIR_VIEW_ARG(part));
  }
  return NULL;
}

static weir_status_t* run_passes(weir_pass_ctx_t* ctx, const char* disabled, bool is_local) {
  const char* environment =
      getenv("WEIR_DISABLE_PASSES");  // for finding out which pass is to blame
  WEIR_TRY(check_list(disabled));
  WEIR_TRY(check_list(environment));
  for (const weir_pass_t* pass = weir_passes; pass->name; ++pass) {
    if (pass->is_local != is_local || is_disabled(disabled, pass) || is_disabled(environment, pass))
      continue;
    WEIR_TRY(weir_status_prefix(pass->run(ctx), "Graph pass '%s': ", pass->name));
  }
  return NULL;
}

weir_status_t* weir_passes_run(weir_pass_ctx_t* ctx, const char* disabled) {
  return run_passes(ctx, disabled, false);
}

weir_status_t* weir_passes_run_local(weir_pass_ctx_t* ctx, const char* disabled) {
  return run_passes(ctx, disabled, true);
}
