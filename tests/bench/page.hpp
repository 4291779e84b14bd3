// A table for people: printed, and put into docs/performance.md between its marks.
#pragma once
#include <string>
#include <vector>

namespace h5i::bench {

struct Table {
  std::string name;     // the mark's
  std::string caption;  // one sentence: what was measured, on what
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> verdicts;  // "bar: ...; here: ..."
};

std::string number(double v, int digits = 2);
std::string milliseconds(double us);

std::string markdown(const Table& t);
// Replaces what stands between "<!-- begin NAME -->" and "<!-- end NAME -->"; false when the page has no such marks.
bool put_into_page(const std::string& path, const std::string& name, const std::string& text);
// Processor, kernel, number of processors, compiler, and when.
std::string machine();

}  // namespace h5i::bench
