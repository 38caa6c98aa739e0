// transport_test.c — What users and messages say about transports.
#include "cluster/task/transport.h"

#include "testing/tensors.h"
#include "wire/wire.h"

static void check_choice(const char* text, bool with_tls, weir_transport_choice_t expected) {
  weir_transport_choice_t choice = (weir_transport_choice_t)99;
  check_ok(weir_transport_parse(text, with_tls, &choice));
  assert_int_equal(choice, expected);
}

static void test_choices(void** state) {
  (void)state;
  weir_transport_choice_t choice;
  for (int tls = 0; tls < 2; ++tls) {
    check_choice(NULL, tls, WEIR_TRANSPORT_AUTO);
    check_choice("", tls, WEIR_TRANSPORT_AUTO);
    check_choice("auto", tls, WEIR_TRANSPORT_AUTO);
    check_choice("ucx:plain", tls, WEIR_TRANSPORT_UCX);
    check_error(weir_transport_parse("rdma", tls, &choice), WEIR_INVALID_ARGUMENT, "'rdma'");
    check_error(weir_transport_parse("ucx:", tls, &choice), WEIR_INVALID_ARGUMENT, "'ucx:'");
  }
  check_choice("ucx", false, WEIR_TRANSPORT_UCX);
  check_error(weir_transport_parse("ucx", true, &choice), WEIR_INVALID_ARGUMENT, "unencrypted");
}

// The value that |bytes| have in an Any, which is field 6 of a request.
static weir_view_t offer_in(const weir_strbuf_t* request, const char* url) {
  weir_wire_reader_t reader = weir_wire_reader(weir_strbuf_view(request));
  weir_view_t value = weir_view("", 0);
  while (weir_wire_next(&reader)) {
    assert_int_equal(reader.field, 6);
    weir_view_t found = weir_transport_value(reader.bytes, url);
    if (found.size > 0) value = found;
  }
  assert_false(reader.error);
  return value;
}

static void test_offers(void** state) {
  (void)state;
  weir_strbuf_t request = {0}, first = {0}, second = {0};
  weir_strbuf_puts(&first, "one");
  weir_strbuf_puts(&second, "two");
  weir_transport_put_offer(&request, "weir/a", &first);
  weir_transport_put_offer(&request, "weir/b", &second);
  assert_true(weir_view_is(offer_in(&request, "weir/a"), "one"));
  assert_true(weir_view_is(offer_in(&request, "weir/b"), "two"));
  assert_int_equal(offer_in(&request, "weir").size, 0);
  assert_int_equal(offer_in(&request, "weir/ab").size, 0);
  weir_strbuf_free(&request);
  weir_strbuf_free(&first);
  weir_strbuf_free(&second);
}

static void test_values_that_are_none(void** state) {
  (void)state;
  static const char* const anys[] = {
      "", "\n\xff", "\n\6weir/a", "\x12\3one", "\n\6weir/a\x12\7one", "\x08\x01"};
  for (size_t i = 0; i < WEIR_COUNT_OF(anys); ++i)
    assert_int_equal(weir_transport_value(weir_view_of(anys[i]), "weir/a").size, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_choices),
      cmocka_unit_test(test_offers),
      cmocka_unit_test(test_values_that_are_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
