// example.c — Reading Example messages.
#include "file/example.h"

enum { SEQUENCE_CONTEXT = 1, SEQUENCE_LISTS = 2 };
enum { EXAMPLE_FEATURES = 1, FEATURES_FEATURE = 1, LIST_VALUE = 1 };
enum { FEATURE_BYTES = 1, FEATURE_FLOATS = 2, FEATURE_INTS = 3 };

static weir_dtype_t type_of_field(uint32_t field) {
  switch (field) {
    case FEATURE_BYTES: return WEIR_DTYPE_STRING;
    case FEATURE_FLOATS: return WEIR_DTYPE_FLOAT;
    case FEATURE_INTS: return WEIR_DTYPE_INT64;
    default: return WEIR_DTYPE_INVALID;
  }
}

static weir_wire_type_t element_type(const weir_feature_t* feature) {
  return feature->dtype == WEIR_DTYPE_FLOAT ? WEIR_WIRE_FIXED32 : WEIR_WIRE_VARINT;
}

bool weir_feature_next_string(weir_wire_reader_t* reader, weir_view_t* out_text) {
  while (weir_wire_next(reader)) {
    if (reader->field != LIST_VALUE || reader->type != WEIR_WIRE_BYTES) continue;
    *out_text = reader->bytes;
    return true;
  }
  return false;
}

static weir_status_t* malformed(const char* what) {
  return WEIR_STATUS(INVALID_ARGUMENT, "malformed %s", what);
}

static weir_status_t* count_values(weir_feature_t* feature) {
  weir_wire_reader_t r = weir_wire_reader(feature->list);
  while (weir_wire_next(&r)) {
    if (r.field != LIST_VALUE) continue;
    uint64_t count = 1;
    if (feature->dtype == WEIR_DTYPE_STRING) {
      if (r.type != WEIR_WIRE_BYTES) return malformed("BytesList");
    } else {
      if (r.type != WEIR_WIRE_BYTES && r.type != element_type(feature)) return malformed("Feature");
      if (!weir_wire_packed_count(weir_wire_packed(&r, element_type(feature)), &count))
        return malformed("Feature");
    }
    feature->count += (int64_t)count;
  }
  return weir_wire_check(&r, "Feature");
}

static weir_status_t* parse_feature(weir_view_t message, weir_feature_t* out) {
  *out = (weir_feature_t){.dtype = WEIR_DTYPE_INVALID};
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (type_of_field(r.field) == WEIR_DTYPE_INVALID) continue;
    if (r.type != WEIR_WIRE_BYTES) return malformed("Feature");
    *out = (weir_feature_t){.dtype = type_of_field(r.field), .list = r.bytes};
  }
  WEIR_TRY(weir_wire_check(&r, "Feature"));
  return out->dtype == WEIR_DTYPE_INVALID ? NULL : count_values(out);
}

// An entry of a map from strings to messages.
static weir_status_t* split_entry(weir_view_t message, weir_view_t* out_name,
                                  weir_view_t* out_value) {
  *out_name = *out_value = (weir_view_t){0};
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field != 1 && r.field != 2) continue;
    if (r.type != WEIR_WIRE_BYTES) return malformed("Features");
    if (r.field == 1) *out_name = r.bytes;
    else *out_value = r.bytes;
  }
  return weir_wire_check(&r, "Features");
}

static weir_status_t* parse_entry(weir_view_t message, weir_feature_fn_t visit, void* arg) {
  weir_view_t name, value;
  weir_feature_t feature;
  WEIR_TRY(split_entry(message, &name, &value));
  WEIR_TRY(parse_feature(value, &feature));
  visit(arg, name, &feature);
  return NULL;
}

static weir_status_t* parse_features(weir_view_t message, weir_feature_fn_t visit, void* arg) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    if (r.field != FEATURES_FEATURE) continue;
    if (r.type != WEIR_WIRE_BYTES) return malformed("Features");
    WEIR_TRY(parse_entry(r.bytes, visit, arg));
  }
  return weir_wire_check(&r, "Features");
}

weir_status_t* weir_example_parse(weir_view_t example, weir_feature_fn_t visit, void* arg) {
  weir_wire_reader_t r = weir_wire_reader(example);
  while (weir_wire_next(&r)) {
    if (r.field != EXAMPLE_FEATURES) continue;
    if (r.type != WEIR_WIRE_BYTES) return malformed("Example");
    WEIR_TRY(parse_features(r.bytes, visit, arg));
  }
  return weir_wire_check(&r, "Example");
}

static weir_status_t* parse_lists(weir_view_t message, weir_feature_list_fn_t visit, void* arg) {
  weir_wire_reader_t r = weir_wire_reader(message);
  while (weir_wire_next(&r)) {
    weir_view_t name, value;
    if (r.field != FEATURES_FEATURE) continue;
    if (r.type != WEIR_WIRE_BYTES) return malformed("FeatureLists");
    WEIR_TRY(split_entry(r.bytes, &name, &value));
    visit(arg, name, value);
  }
  return weir_wire_check(&r, "FeatureLists");
}

weir_status_t* weir_sequence_example_parse(weir_view_t example, weir_feature_fn_t visit,
                                           weir_feature_list_fn_t visit_list, void* arg) {
  weir_wire_reader_t r = weir_wire_reader(example);
  while (weir_wire_next(&r)) {
    if (r.field != SEQUENCE_CONTEXT && r.field != SEQUENCE_LISTS) continue;
    if (r.type != WEIR_WIRE_BYTES) return malformed("SequenceExample");
    WEIR_TRY(r.field == SEQUENCE_CONTEXT ? parse_features(r.bytes, visit, arg)
                                         : parse_lists(r.bytes, visit_list, arg));
  }
  return weir_wire_check(&r, "SequenceExample");
}

weir_status_t* weir_feature_list_next(weir_wire_reader_t* reader, weir_feature_t* out_feature,
                                      bool* out_is_end) {
  while (weir_wire_next(reader)) {
    if (reader->field != FEATURES_FEATURE) continue;
    if (reader->type != WEIR_WIRE_BYTES) return malformed("FeatureList");
    return parse_feature(reader->bytes, out_feature);
  }
  *out_is_end = true;
  return weir_wire_check(reader, "FeatureList");
}

void weir_feature_read(const weir_feature_t* feature, void* out) {
  int64_t at = 0;
  weir_wire_reader_t r = weir_wire_reader(feature->list);
  while (weir_wire_next(&r)) {
    if (r.field != LIST_VALUE) continue;
    weir_wire_packed_t packed = weir_wire_packed(&r, element_type(feature));
    uint64_t bits;
    while (at < feature->count && weir_wire_packed_next(&packed, &bits)) {
      if (feature->dtype == WEIR_DTYPE_FLOAT) {
        const uint32_t narrow = (uint32_t)bits;
        memcpy((float*)out + at++, &narrow, sizeof(narrow));
      } else {
        ((int64_t*)out)[at++] = (int64_t)bits;
      }
    }
  }
}
