// fields.h — Numbers of the fields of etcd's messages (etcdserverpb and mvccpb, version 3).
//
// As in cluster/task/fields.h: one enum a message, and nothing that nobody here reads or writes.
#ifndef WEIR_CLUSTER_ETCD_FIELDS_H_
#define WEIR_CLUSTER_ETCD_FIELDS_H_

// ---- keys ----
enum {
  KEY_VALUE_KEY = 1,
  KEY_VALUE_MOD_REVISION = 3,
  KEY_VALUE_VALUE = 5,
  KEY_VALUE_LEASE = 6,
};
enum { RANGE_REQUEST_KEY = 1, RANGE_REQUEST_RANGE_END = 2 };
enum { RANGE_RESPONSE_KVS = 2 };
enum { PUT_REQUEST_KEY = 1, PUT_REQUEST_VALUE = 2, PUT_REQUEST_LEASE = 3 };

// ---- transactions ----
enum { TXN_REQUEST_COMPARE = 1, TXN_REQUEST_SUCCESS = 2 };
enum { TXN_RESPONSE_SUCCEEDED = 2 };
enum { REQUEST_OP_PUT = 2 };
enum { COMPARE_RESULT = 1, COMPARE_TARGET = 2, COMPARE_KEY = 3, COMPARE_MOD_REVISION = 6 };
enum { COMPARE_EQUAL = 0 };       // a value of Compare.result
enum { COMPARE_TARGET_MOD = 2 };  // a value of Compare.target

// ---- leases ----
enum { LEASE_GRANT_REQUEST_TTL = 1 };
enum { LEASE_GRANT_RESPONSE_ID = 2, LEASE_GRANT_RESPONSE_TTL = 3, LEASE_GRANT_RESPONSE_ERROR = 4 };
enum { LEASE_REVOKE_REQUEST_ID = 1 };
enum { LEASE_KEEP_ALIVE_REQUEST_ID = 1 };
enum { LEASE_KEEP_ALIVE_RESPONSE_ID = 2, LEASE_KEEP_ALIVE_RESPONSE_TTL = 3 };

#endif  // WEIR_CLUSTER_ETCD_FIELDS_H_
