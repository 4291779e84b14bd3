// What Fetch decides between two origins (section 3.3, CORS protocol, and section 4.9, CORS-preflight fetch).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/websec-http/url/url.hpp"

namespace h5i::websec {

struct Field {
  std::string_view name, value;
};
using Fields = std::vector<Field>;

// A request that a document's script makes.
struct DocumentRequest {
  Origin document;
  const Url* url = nullptr;
  std::string_view method = "GET";  // as it will be sent
  Fields fields;                    // those that the script set
  bool credentials = false;         // credentials mode "include"
};

bool is_safelisted_method(std::string_view method);
bool is_safelisted_field(const Field& field);
// The names that make a preflight necessary: lower case, sorted, none twice. Together, safelisted values of more than 1024 bytes do.
std::vector<std::string> unsafe_names(const Fields& fields);

struct CorsPlan {
  enum class Kind { SAME_ORIGIN, SIMPLE, PREFLIGHT };
  Kind kind = Kind::SAME_ORIGIN;
  std::string origin;                 // the Origin field; "null" of an opaque one
  std::vector<std::string> because;   // of PREFLIGHT: "method PUT", "field x-token"
  // The other two fields of a preflight, whose method is OPTIONS; the second is "" when no name is unsafe and then not sent.
  std::string request_method, request_headers;
};
CorsPlan plan_cors(const DocumentRequest& request);

struct CorsVerdict {
  bool allowed = false;
  std::string why;  // for people; of a refusal what was missing
};
// May the document read the response?
CorsVerdict check_response(const DocumentRequest& request, const Fields& response);
// Does the answer to the preflight allow the request?
CorsVerdict check_preflight(const DocumentRequest& request, int status, const Fields& response);
// Seconds for which the answer may be kept; 5 without Access-Control-Max-Age, at most two hours.
int64_t preflight_lifetime(const Fields& response);

}  // namespace h5i::websec
