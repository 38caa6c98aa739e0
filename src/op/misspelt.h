// misspelt.h — Which op somebody may have meant who named one that there is none of.
#ifndef WEIR_OP_MISSPELT_H_
#define WEIR_OP_MISSPELT_H_

#include "op/op.h"

// |take_status|, which says that there is no op |name|, with the one that is most like it.
WEIR_MUST_USE weir_status_t* weir_registry_suggest(const weir_registry_t* registry,
                                                   const char* name, weir_status_t* take_status);

#endif  // WEIR_OP_MISSPELT_H_
