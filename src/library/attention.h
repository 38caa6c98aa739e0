// attention.h — What the attention layers share. Not public.
#ifndef WEIR_LIBRARY_ATTENTION_H_
#define WEIR_LIBRARY_ATTENTION_H_

#include "weir/scope.h"

// |scores| with large negative numbers where |mask| (none: everywhere true) is false.
weir_edge_t weir_lib_mask_scores(weir_scope_t* s, weir_edge_t scores, weir_edge_t mask);

#endif  // WEIR_LIBRARY_ATTENTION_H_
