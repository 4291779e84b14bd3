// The located tree that both adapters build: every value and key knows its line and column.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.hpp"

namespace h5i::policy {

constexpr size_t kMaxConfigBytes = 256u << 10;
constexpr int kMaxNesting = 16;

struct Mark {
  int line = 0, column = 0;  // from 1; columns count characters
};

struct Entry;
struct Node {
  enum class Kind { NONE, BOOL, INTEGER, REAL, TEXT, LIST, MAP, OTHER };  // OTHER: a date or time of TOML
  Kind kind = Kind::NONE;
  Mark at;
  std::string text;     // TEXT: the value; other scalars: as they would be written
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;
  std::vector<Node> items;     // LIST
  std::vector<Entry> entries;  // MAP, in the order of the file

  const Node* find(std::string_view key) const;
};
struct Entry {
  std::string key;
  Mark key_at;
  Node value;
};

std::string_view kind_name(Node::Kind kind);  // "a list", "text", ...

// "name:line:column" for an error's first words.
std::string place(const std::string& name, Mark at);

// What both formats share before any parser sees a byte: size, UTF-8, no control characters.
Result<void> check_bytes(std::string_view bytes, const std::string& name);

}  // namespace h5i::policy
