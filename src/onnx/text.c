// text.c — Ops of ONNX on strings.
#include "onnx/import.h"

// Ours takes strings of one shape, and scalars.
static void string_concat(onnx_call_t* call) {
  weir_edge_t a = onnx_in(call, 0), b = onnx_in(call, 1);
  weir_edge_t shape = ADD(call, "BroadcastArgs", onnx_shape(call, a), onnx_shape(call, b));
  a = ADD(call, "BroadcastTo", a, shape);
  b = ADD(call, "BroadcastTo", b, shape);
  onnx_out(call, 0, ADD_WITH(call, "StringJoin", WEIR_ATTRS(weir_attr_int("N", 2)), a, b));
}

// RE2's syntax is that of our own matcher.
static void regex_full_match(onnx_call_t* call) {
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_view("pattern", onnx_attr_string(call, "pattern", "")));
  onnx_out(call, 0, ADD_WITH(call, "StaticRegexFullMatch", attrs, onnx_in(call, 0)));
}

// Stop words are left out; then the case of letters is changed.
static void string_normalizer(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  weir_view_t change = onnx_attr_string(call, "case_change_action", "NONE");
  const onnx_attr_t* words = onnx_attr(call, "stopwords");
  bool has_case = onnx_attr_int(call, "is_case_sensitive", 0) != 0;
  if (words && words->strings.count > 0) {
    onnx_refuse(call, "with stop words%s", has_case ? "" : " of any case");
    return;
  }
  weir_attrs_t utf8 = WEIR_ATTRS(weir_attr_string("encoding", "utf-8"));
  if (weir_view_is(change, "LOWER")) x = ADD_WITH(call, "StringLower", utf8, x);
  if (weir_view_is(change, "UPPER")) x = ADD_WITH(call, "StringUpper", utf8, x);
  onnx_out(call, 0, ADD(call, "Identity", x));
}

const onnx_row_t onnx_text_rows[] = {ONNX_OP("RegexFullMatch", 20, regex_full_match),
                                     ONNX_OP("StringConcat", 20, string_concat),
                                     ONNX_OP("StringNormalizer", 10, string_normalizer),
                                     {.op = NULL}};
