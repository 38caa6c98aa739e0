// builtin_ops.h — The registry of every op in this build.
#ifndef WEIR_OPS_BUILTIN_OPS_H_
#define WEIR_OPS_BUILTIN_OPS_H_

#include "op/op.h"

// Created on first use; lives as long as the process. Thread-safe.
WEIR_MUST_USE weir_status_t* weir_registry_builtin(const weir_registry_t** out_registry);

// Adds the ops of plug-ins to it, all or none. |modules| ends with NULL; what it points to lives as
// long as the process. Thread-safe.
WEIR_MUST_USE weir_status_t* weir_registry_builtin_add(const weir_op_module_t* const* modules);

#endif  // WEIR_OPS_BUILTIN_OPS_H_
