// The layout of every struct that crosses the boundary, on 64-bit platforms. A change here breaks built plugins: it
// needs a new major version, or a new member at the end with its own size.
#include <cstddef>

#include "h5i/abi.h"
#include "h5i/host.h"
#include "h5i/tier.h"
#include "h5i/websec.h"
#include "tests/support/catch.hpp"

static_assert(sizeof(h5i_str) == 16 && offsetof(h5i_str, len) == 8);
static_assert(sizeof(h5i_bytes) == 16 && offsetof(h5i_bytes, len) == 8);
static_assert(sizeof(h5i_error) == 256 && offsetof(h5i_error, code) == 4 && offsetof(h5i_error, sys_errno) == 8 &&
              offsetof(h5i_error, text_len) == 12 && offsetof(h5i_error, text) == 16);
static_assert(sizeof(h5i_host) == 24 && offsetof(h5i_host, context) == 8 && offsetof(h5i_host, get_interface) == 16);
static_assert(sizeof(h5i_plugin_entry) == 72 && offsetof(h5i_plugin_entry, abi_major) == 4 &&
              offsetof(h5i_plugin_entry, abi_minor) == 8 && offsetof(h5i_plugin_entry, min_host_minor) == 12 &&
              offsetof(h5i_plugin_entry, id) == 16 && offsetof(h5i_plugin_entry, version) == 32 &&
              offsetof(h5i_plugin_entry, open) == 48 && offsetof(h5i_plugin_entry, close) == 56 &&
              offsetof(h5i_plugin_entry, get_interface) == 64);
static_assert(sizeof(h5i_host_log) == 16 && offsetof(h5i_host_log, write) == 8);
static_assert(sizeof(h5i_host_evidence) == 16 && offsetof(h5i_host_evidence, record) == 8);
static_assert(sizeof(h5i_spawn_result) == 216 && offsetof(h5i_spawn_result, status) == 4 &&
              offsetof(h5i_spawn_result, code) == 8 && offsetof(h5i_spawn_result, exec_errno) == 12 &&
              offsetof(h5i_spawn_result, setup_errno) == 16 && offsetof(h5i_spawn_result, setup_step) == 20 &&
              offsetof(h5i_spawn_result, wall_us) == 24 && offsetof(h5i_spawn_result, max_rss_kib) == 48 &&
              offsetof(h5i_spawn_result, setup_text) == 56 && offsetof(h5i_spawn_result, reserved) == 184);
static_assert(sizeof(h5i_host_spawn) == 32 && offsetof(h5i_host_spawn, start) == 8 &&
              offsetof(h5i_host_spawn, wait) == 16 && offsetof(h5i_host_spawn, kill) == 24);
static_assert(sizeof(h5i_host_cgroup) == 16 && sizeof(h5i_host_clock) == 24 &&
              offsetof(h5i_host_clock, cancelled) == 16);
static_assert(sizeof(h5i_outcome) == 48 && offsetof(h5i_outcome, code) == 8 && offsetof(h5i_outcome, reason) == 12 &&
              offsetof(h5i_outcome, reserved) == 16);
static_assert(sizeof(h5i_tier) == 48 && offsetof(h5i_tier, probe) == 8 && offsetof(h5i_tier, verify_exec) == 16 &&
              offsetof(h5i_tier, plan) == 24 && offsetof(h5i_tier, run) == 32 && offsetof(h5i_tier, cleanup) == 40);
static_assert(sizeof(h5i_websec) == 40 && offsetof(h5i_websec, probe) == 8 && offsetof(h5i_websec, verify_exec) == 16 &&
              offsetof(h5i_websec, run) == 24 && offsetof(h5i_websec, cleanup) == 32);
static_assert(sizeof(h5i_host_session) == 56 && offsetof(h5i_host_session, append) == 8 && offsetof(h5i_host_session, flush) == 16 &&
              offsetof(h5i_host_session, read) == 24 && offsetof(h5i_host_session, put) == 32 && offsetof(h5i_host_session, get) == 40 && offsetof(h5i_host_session, lines) == 48);

TEST_CASE("error numbers are for ever: the first of each range has the number it was given") {
  CHECK(H5I_OK == 0);
  CHECK(H5I_E_INTERNAL == 1);
  CHECK(H5I_E_POLICY_PARSE == 100);
  CHECK(H5I_E_TIER_NOT_INSTALLED == 200);
  CHECK(H5I_E_PLUGIN_MANIFEST == 300);
  CHECK(H5I_E_PLUGIN_NEEDS == 317);
  CHECK(H5I_E_BOX_NAME == 400);
  CHECK(H5I_E_GIT_NO_REPOSITORY == 500);
  CHECK(H5I_E_GATE_DOTGIT == 600);
  CHECK(H5I_E_LOG_CHAIN == 700);
}

TEST_CASE("no two errors share a number or an id") {
  struct Row {
    int number;
    std::string id;
  };
  const Row rows[] = {
#define H5I_ERROR(NAME, NUMBER, ID, CLASS, REMEDY) {NUMBER, ID},
#include "h5i/errors.def"
#undef H5I_ERROR
  };
  for (const Row& a : rows)
    for (const Row& b : rows)
      if (&a != &b) {
        CHECK(a.number != b.number);
        CHECK(a.id != b.id);
      }
}
