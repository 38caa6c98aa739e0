// tls_test.c — TLS and mutual TLS: who is let in and who is not. Certificates are made on the spot.
#include "rpc/tls.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "rpc/rpc_testing.h"

// ---- certificates ----
typedef struct identity_t {
  EVP_PKEY* key;
  X509* cert;
  char cert_file[64], key_file[64];
} identity_t;

static void add_extension(X509* cert, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
  assert_non_null(extension);
  assert_int_equal(X509_add_ext(cert, extension, -1), 1);
  X509_EXTENSION_free(extension);
}

static void write_files(identity_t* identity, const char* name) {
  snprintf(identity->cert_file, sizeof(identity->cert_file), "/tmp/weir_tls_%d_%s.crt",
           (int)getpid(), name);
  snprintf(identity->key_file, sizeof(identity->key_file), "/tmp/weir_tls_%d_%s.key", (int)getpid(),
           name);
  FILE* file = fopen(identity->cert_file, "w");
  assert_non_null(file);
  assert_int_equal(PEM_write_X509(file, identity->cert), 1);
  fclose(file);
  file = fopen(identity->key_file, "w");
  assert_non_null(file);
  assert_int_equal(PEM_write_PrivateKey(file, identity->key, NULL, NULL, 0, NULL, NULL), 1);
  fclose(file);
}

// |issuer| NULL: a CA that signs itself. |names|: of the subject, "DNS:localhost,IP:127.0.0.1".
static identity_t make_identity(const char* name, const identity_t* issuer, const char* names) {
  identity_t identity = {.key = EVP_EC_gen("P-256"), .cert = X509_new()};
  assert_non_null(identity.key);
  X509* cert = identity.cert;
  X509_set_version(cert, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(cert), issuer ? 2 : 1);
  X509_gmtime_adj(X509_getm_notBefore(cert), -60);
  X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
  X509_set_pubkey(cert, identity.key);
  X509_NAME* subject = X509_get_subject_name(cert);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char*)name, -1, -1, 0);
  X509* signer = issuer ? issuer->cert : cert;
  X509_set_issuer_name(cert, X509_get_subject_name(signer));
  add_extension(cert, signer, NID_basic_constraints, issuer ? "CA:FALSE" : "critical,CA:TRUE");
  if (names) add_extension(cert, signer, NID_subject_alt_name, names);
  assert_true(X509_sign(cert, issuer ? issuer->key : identity.key, EVP_sha256()) > 0);
  write_files(&identity, name);
  return identity;
}

static void free_identity(identity_t* identity) {
  unlink(identity->cert_file);
  unlink(identity->key_file);
  X509_free(identity->cert);
  EVP_PKEY_free(identity->key);
}

static identity_t ca, other_ca, server_id, stranger_id, client_id, false_client_id;

static int set_up(void** state) {
  (void)state;
  ca = make_identity("ca", NULL, NULL);
  other_ca = make_identity("other_ca", NULL, NULL);
  server_id = make_identity("server", &ca, "DNS:localhost,IP:127.0.0.1");
  stranger_id = make_identity("stranger", &ca, "DNS:elsewhere");
  client_id = make_identity("client", &ca, NULL);
  false_client_id = make_identity("false_client", &other_ca, NULL);
  return 0;
}

static int tear_down(void** state) {
  (void)state;
  identity_t* all[] = {&ca, &other_ca, &server_id, &stranger_id, &client_id, &false_client_id};
  for (size_t i = 0; i < WEIR_COUNT_OF(all); ++i) free_identity(all[i]);
  return 0;
}

// ---- calls ----
static weir_rpc_tls_t tls_of(const identity_t* identity, const identity_t* trusted) {
  weir_rpc_tls_t tls = {.is_enabled = true, .ca_file = trusted ? trusted->cert_file : NULL};
  if (identity) {
    tls.cert_file = identity->cert_file;
    tls.key_file = identity->key_file;
  }
  return tls;
}

static void serve_tls(world_t* world, const identity_t* identity, bool is_mutual) {
  world_open(world, (weir_rpc_loop_options_t){0});
  weir_rpc_server_options_t options = {.address = "127.0.0.1:0", .tls = tls_of(identity, &ca)};
  options.tls.is_mutual = is_mutual;
  world_serve(world, options);
}

static void expect_tls(world_t* world, weir_rpc_tls_t tls, weir_code_t code, const char* text) {
  weir_rpc_channel_options_t options = {.address = weir_rpc_server_address(world->server),
                                        .tls = tls};
  weir_rpc_channel_t* channel = NULL;
  assert_null(weir_rpc_channel_create(world->loop, &options, &channel));
  expect_call(channel, "/weir.Test/Echo", "secret", NULL, code, text);
  weir_rpc_channel_destroy(channel);
}

static void test_server_certificate(void** state) {
  (void)state;
  world_t world;
  serve_tls(&world, &server_id, false);
  expect_tls(&world, tls_of(NULL, &ca), WEIR_OK, "secret");
  weir_rpc_tls_t named = tls_of(NULL, &ca);
  named.server_name = "localhost";
  expect_tls(&world, named, WEIR_OK, "secret");
  // Signed by a CA that the client does not trust; for another name; no TLS at all.
  expect_tls(&world, tls_of(NULL, &other_ca), WEIR_UNAVAILABLE, "not trusted");
  named.server_name = "elsewhere";
  expect_tls(&world, named, WEIR_UNAVAILABLE, "not trusted");
  expect_tls(&world, (weir_rpc_tls_t){0}, WEIR_UNAVAILABLE, NULL);
  world_close(&world);

  serve_tls(&world, &stranger_id, false);
  expect_tls(&world, tls_of(NULL, &ca), WEIR_UNAVAILABLE, "not trusted");
  world_close(&world);
}

static void test_mutual(void** state) {
  (void)state;
  world_t world;
  serve_tls(&world, &server_id, true);
  expect_tls(&world, tls_of(&client_id, &ca), WEIR_OK, "secret");
  expect_tls(&world, tls_of(NULL, &ca), WEIR_UNAVAILABLE, NULL);
  expect_tls(&world, tls_of(&false_client_id, &ca), WEIR_UNAVAILABLE, NULL);
  expect_tls(&world, tls_of(&client_id, &ca), WEIR_OK, "secret");
  world_close(&world);
}

static void test_plain_server(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0"});
  expect_tls(&world, tls_of(NULL, &ca), WEIR_UNAVAILABLE, "TLS handshake");
  world_close(&world);
}

static void test_large(void** state) {
  (void)state;
  world_t world;
  serve_tls(&world, &server_id, true);
  char address[80];
  snprintf(address, sizeof(address), "grpc+tls://%s", weir_rpc_server_address(world.server));
  weir_rpc_channel_options_t options = {.address = address, .tls = tls_of(&client_id, &ca)};
  options.tls.is_enabled = false;  // the address says it
  weir_rpc_channel_t* channel = NULL;
  assert_null(weir_rpc_channel_create(world.loop, &options, &channel));
  char* text = weir_malloc(20000001);
  assert_non_null(text);
  for (int i = 0; i < 20000000; ++i) text[i] = (char)('a' + i % 23);
  text[20000000] = '\0';
  outcome_t outcomes[4];
  for (int i = 0; i < 4; ++i)
    outcome_start(&outcomes[i], channel, "/weir.Test/PoolEcho", text + i, NULL, NULL);
  for (int i = 0; i < 4; ++i) outcome_expect(&outcomes[i], WEIR_OK, text + i);
  weir_free(text);
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

static void expect_context(weir_rpc_tls_t tls, bool is_server, const char* text) {
  weir_rpc_tls_context_t* context = NULL;
  weir_status_t* status = weir_rpc_tls_context_create(&tls, is_server, &context);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), text));
  weir_status_destroy(status);
}

static void test_bad_files(void** state) {
  (void)state;
  expect_context((weir_rpc_tls_t){0}, true, "needs a certificate");
  expect_context((weir_rpc_tls_t){.ca_file = "/nowhere.pem"}, false, "/nowhere.pem");
  weir_rpc_tls_t tls = tls_of(&server_id, NULL);
  tls.is_mutual = true;
  expect_context(tls, true, "needs a CA file");
  tls = tls_of(&server_id, NULL);
  tls.key_file = client_id.key_file;  // of another certificate
  expect_context(tls, true, client_id.key_file);
  tls.cert_file = server_id.key_file;  // no certificate at all
  expect_context(tls, true, server_id.key_file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_server_certificate), cmocka_unit_test(test_mutual),
      cmocka_unit_test(test_plain_server),       cmocka_unit_test(test_large),
      cmocka_unit_test(test_bad_files),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
