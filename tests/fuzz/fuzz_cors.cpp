// Lines "name: value" as the fields of a request, after a line with its method, and as those of a response. What needs no preflight is small
// and without controls; an answer that lists exactly what was asked allows it, one that lists nothing does not.
#include <cstdlib>

#include "plugins/websec-http/cors/cors.hpp"
#include "tests/fuzz/target.hpp"

using namespace h5i::websec;
using namespace h5i::test;

namespace {

bool is_token(std::string_view s) {
  for (char c : s)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-')) return false;
  return !s.empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Url url = *Url::parse("https://api.test/");
  std::string_view text(reinterpret_cast<const char*>(data), size);
  DocumentRequest request{Url::parse("https://app.test/")->origin(), &url, line(text), {}, size % 2 == 1};
  bool tokens = is_token(request.method);
  while (!text.empty()) {
    std::string_view one = line(text);
    size_t colon = std::min(one.find(':'), one.size());
    Field field{one.substr(0, colon), one.substr(std::min(colon + 1, one.size()))};
    tokens = tokens && is_token(field.name);
    if (is_safelisted_field(field)) {
      if (field.value.size() > 128) abort();
      for (char c : field.value)
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) abort();
    }
    request.fields.push_back(field);
  }
  CorsPlan plan = plan_cors(request);
  if (plan.kind == CorsPlan::Kind::SAME_ORIGIN || (plan.kind == CorsPlan::Kind::PREFLIGHT) != !plan.because.empty()) abort();
  Fields answer = {{"Access-Control-Allow-Origin", plan.origin}, {"Access-Control-Allow-Credentials", "true"}};
  if (!check_response(request, answer).allowed) abort();
  if (plan.kind == CorsPlan::Kind::PREFLIGHT && check_preflight(request, 200, answer).allowed) abort();
  answer.push_back({"Access-Control-Allow-Methods", request.method});
  answer.push_back({"Access-Control-Allow-Headers", plan.request_headers});
  if (tokens && !check_preflight(request, 200, answer).allowed) abort();
  if (check_preflight(request, 302, answer).allowed || check_preflight(request, 200, {answer.begin() + 1, answer.end()}).allowed) abort();
  if (check_response(request, request.fields).why.empty()) abort();
  int64_t lifetime = preflight_lifetime(request.fields);
  if (lifetime < 0 || lifetime > 7200) abort();
  return 0;
}
