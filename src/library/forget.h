// forget.h — Taking the values of all variables before they begin anew. Not public.
#ifndef WEIR_LIBRARY_FORGET_H_
#define WEIR_LIBRARY_FORGET_H_

#include "weir/replicas.h"

// Where some servers have lost their variables and others have not, all are to begin anew: from a
// checkpoint, or from the beginning. While they do there must be no moment in which each has a
// value, but some the one from before; a worker would take a step, of which these then lose their
// part. So they are all without a value first.

// The node that does so for the variables of |uninitialized|, which weir_uninitialized made; NULL:
// it did not.
weir_node_t* weir_lib_forgetting(weir_session_t* session, weir_edge_t uninitialized);

#endif  // WEIR_LIBRARY_FORGET_H_
