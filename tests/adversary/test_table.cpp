// The table itself: whole, without loose ends, and what docs/adversary.md says.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/adversary/cases.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/text_file.hpp"

using namespace h5i;

namespace {

// Of the catalogue's groups A to F: each case that the core, process, supervised or workspace must hold, but for those of proxies and credentials.
constexpr const char* kCatalogue =
    "A01 A03 A04 A06 A07 A09 A10 A12 A13 A15 A16 A18 A19 A21 A22 A24 A25 A27 A28 A29 A30 A31 A33 A34 A36 A37 A39 A40 A42 "
    "B01 B03 B04 B06 B07 B09 B10 B12 B13 B15 B16 B18 B19 B21 B22 B24 B25 B27 B28 B30 B31 B33 B34 "
    "C01 C03 C04 C05 C06 C07 C09 C10 C12 C13 C15 C16 C18 C19 C21 C22 C24 C25 C27 C28 C29 C30 C31 C33 C34 C36 "
    "D01 D03 D04 D06 D07 D09 D12 D13 D15 D16 D24 D25 D27 D28 D30 D31 D37 D39 "
    "E01 E03 E04 E06 E07 E09 E10 E12 E13 E15 E16 E18 E19 E21 E22 E24 "
    "F01 F03 F04 F06 F07 F09 F10 F12 F13 F15";
constexpr size_t kMostWrittenOff = 5;

// Words may be split over lines of the source: adjacent literals, and nothing but white space between them.
std::string without_breaks(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '"') {
      size_t next = text.find_first_not_of(" \n", i + 1);
      if (next != std::string::npos && text[next] == '"' && text.find('\n', i) < next) {
        i = next;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

bool has_test(const std::string& file, const std::string& name) {
  std::string text = without_breaks(test::read_file(std::string(getenv("H5I_SOURCE_DIR")) + "/" + file));
  for (const char* macro : {"TEST_CASE(", "KERNEL_TEST("})
    for (size_t at = 0; (at = text.find(macro, at)) != std::string::npos; at++) {
      size_t quote = text.find_first_not_of(" \n", at + strlen(macro));
      if (quote != std::string::npos && text.compare(quote, name.size() + 2, "\"" + name + "\"") == 0) return true;
    }
  return false;
}

}  // namespace

TEST_CASE("every case of the catalogue is in the table, and nothing else", "[adversary][table]") {
  std::set<std::string> wanted, there;
  std::istringstream ids(kCatalogue);
  for (std::string id; ids >> id;) wanted.insert(id);
  for (const auto& c : adversary::table()) there.insert(c.id);
  CHECK(there == wanted);
}

TEST_CASE("every case is tried or names the test that tries it, and says what is right", "[adversary][table]") {
  for (const auto& c : adversary::table()) {
    INFO(c.id << " " << c.what);
    CHECK_FALSE(c.what.empty());
    CHECK_FALSE(c.right.empty());
    CHECK(c.must.find_first_not_of("KPSW") == std::string::npos);
    CHECK((!c.tries.empty() || !c.elsewhere.empty()));
    for (const auto& t : c.tries) {
      CHECK_FALSE(t.words.empty());
      CHECK_FALSE(t.right.empty());
      CHECK_FALSE(t.control.empty());
      // A row whose control is its right outcome could not tell a tier from none; rows of what a box may do are meant so.
      bool may = t.right == adversary::Answers{"did"} && t.control == t.right;
      if (!may)
        for (const auto& answer : t.control) CHECK(std::find(t.right.begin(), t.right.end(), answer) == t.right.end());
    }
  }
}

TEST_CASE("a test that a case points to exists under that name", "[adversary][table]") {
  CHECK_FALSE(has_test("tests/git/test_hostile.cpp", "hooks never"));  // control: a part of a name is none
  for (const auto& c : adversary::table())
    for (const auto& e : c.elsewhere) {
      INFO(c.id << ": " << e.file << ": " << e.test);
      CHECK(has_test(e.file, e.test));
    }
}

TEST_CASE("few cases are written off, each for an interface of the kernel that is proved missing", "[adversary][table]") {
  size_t n = 0;
  for (const auto& c : adversary::table()) {
    if (!c.written_off) continue;
    n++;
    CHECK_FALSE(c.written_off->missing.interface.empty());
    CHECK_FALSE(c.written_off->field.empty());
    CHECK(c.written_off->missing.proved);
  }
  CHECK(n <= kMostWrittenOff);
}

TEST_CASE("docs/adversary.md is what the table says", "[adversary][table]") {
  std::string path = std::string(getenv("H5I_SOURCE_DIR")) + "/docs/adversary.md", text = adversary::markdown();
  if (getenv("H5I_UPDATE_GOLDENS")) std::ofstream(path, std::ios::binary) << text;
  bool same = test::read_file(path) == text;
  INFO("H5I_UPDATE_GOLDENS=1 writes it");
  CHECK(same);
}
