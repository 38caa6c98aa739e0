// misspelt.c — The op that is most like a name.
#include "op/misspelt.h"

#include "base/suggest.h"

weir_status_t* weir_registry_suggest(const weir_registry_t* registry, const char* name,
                                     weir_status_t* take_status) {
  weir_suggestion_t suggestion = weir_suggestion(weir_view_of(name));
  for (size_t i = 0; i < weir_registry_count(registry); ++i)
    weir_suggestion_offer(&suggestion, weir_view_of(weir_registry_at(registry, i)->name));
  return weir_suggestion_add(&suggestion, take_status);
}
