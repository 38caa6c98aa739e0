// weir.h — All of Weir's C API.
#ifndef WEIR_WEIR_H_
#define WEIR_WEIR_H_

#include "weir/dtype.h"
#include "weir/edge.h"
#include "weir/file.h"
#include "weir/graph.h"
#include "weir/ops.h"
#include "weir/scope.h"
#include "weir/session.h"
#include "weir/status.h"
#include "weir/tensor.h"
#include "weir/version.h"

#endif  // WEIR_WEIR_H_
