// einsum_equation.c — Equations of Einsum, read.
#include "kernel/gemm/einsum.h"

#define ELLIPSIS "..."

static weir_status_t* parse_subscripts(weir_view_t view, const char* what,
                                       weir_einsum_subscripts_t* out) {
  int periods = 0;
  *out = (weir_einsum_subscripts_t){.ellipsis = -1};
  for (size_t i = 0; i < view.size; ++i) periods += view.data[i] == '.';
  for (size_t i = 0; i < view.size; ++i) {
    if (periods == 3 && view.size - i >= 3 && memcmp(view.data + i, ELLIPSIS, 3) == 0) {
      out->ellipsis = out->count;
      i += 2;
      continue;
    }
    if (view.data[i] == '.') {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Expected at most one ellipsis (...), but found %d periods (.) in the %s "
                         "subscript: %.*s",
                         periods, what, WEIR_VIEW_ARG(view));
    }
    if (out->count == WEIR_MAX_RANK)
      return WEIR_STATUS(INVALID_ARGUMENT, "More than %d labels in the %s subscript", WEIR_MAX_RANK,
                         what);
    out->text[out->count++] = view.data[i];
  }
  return NULL;
}

static weir_status_t* parse_inputs(weir_view_t whole, weir_view_t left,
                                   weir_einsum_equation_t* out) {
  size_t commas = 0;
  size_t comma = left.size;
  for (size_t i = 0; i < left.size; ++i) {
    if (left.data[i] != ',') continue;
    comma = i;
    ++commas;
  }
  if (commas > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expecting 1 or 2 input subscripts in equation '%.*s' but got: %zu",
                       WEIR_VIEW_ARG(whole), commas + 1);
  }
  out->input_count = (int)commas + 1;
  WEIR_TRY(parse_subscripts(weir_view(left.data, comma), "input", &out->inputs[0]));
  if (!commas) return NULL;
  return parse_subscripts(weir_view(left.data + comma + 1, left.size - comma - 1), "input",
                          &out->inputs[1]);
}

weir_status_t* weir_einsum_parse(const weir_node_def_t* node, weir_einsum_equation_t* out) {
  weir_view_t text = weir_attrs_string(node->attrs, "equation");
  size_t arrow = 0;
  int arrows = 0;
  for (size_t i = 0; i + 1 < text.size; ++i) {
    if (text.data[i] != '-' || text.data[i + 1] != '>') continue;
    arrow = i;
    ++arrows;
  }
  if (arrows != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expecting exactly one '->' in einsum equation: %.*s",
                       WEIR_VIEW_ARG(text));
  }
  WEIR_TRY(parse_inputs(text, weir_view(text.data, arrow), out));
  WEIR_TRY(parse_subscripts(weir_view(text.data + arrow + 2, text.size - arrow - 2), "output",
                            &out->output));
  if (out->input_count != node->input_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected %d inputs for equation %.*s but got: %d",
                       out->input_count, WEIR_VIEW_ARG(text), node->input_count);
  }
  return NULL;
}
