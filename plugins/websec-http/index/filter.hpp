// "host:app.test", "status:4xx", "size>1000": what must hold of a send.
#pragma once
#include <string>
#include <vector>

#include "plugins/websec-http/index/row.hpp"

namespace h5i::websec {

struct Filter {
  enum class Field { HOST, PATH, METHOD, STATUS, ENDED, TYPE, REFUSED, SEQ, SIZE, TIME, EXPERIMENT };
  Field field = Field::SEQ;
  std::string text;            // HOST, PATH, TYPE: a part; METHOD, ENDED, EXPERIMENT: all of it
  int64_t least = 0, most = 0;  // STATUS, REFUSED, SEQ, SIZE, TIME (microseconds): both are in

  bool operator()(const IndexRow& row) const;
};
using Filters = std::vector<Filter>;

// H5I_E_INVALID names what is no filter.
sdk::Result<Filter> parse_filter(const std::string& text);
bool hold(const Filters& filters, const IndexRow& row);

}  // namespace h5i::websec
