// Content codings over the wire: what came is kept as it came, what it says is hashed and counted, and nothing grows without an end.
#include <zstd.h>

#include "core/base/sha256.hpp"
#include "tests/support/encoders.hpp"
#include "tests/websec_send/site.hpp"

using namespace h5i;
using namespace h5i::test;

namespace {

std::string zstd(const std::string& plain) {
  std::string out(ZSTD_compressBound(plain.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 3));
  return out;
}

std::string encoded(const std::string& coding, const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Encoding: " + coding + "\r\nContent-Type: text/html\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("each coding is taken off, its wire form is kept, and one that nobody knows is named") {
  const std::string page = "<html><body>" + std::string(5000, 'p') + "</body></html>";
  struct Row {
    const char* coding;
    std::string body;
    bool known;
  };
  const Row rows[] = {{"gzip", gzip(page), true}, {"br", brotli(page), true}, {"zstd", zstd(page), true}, {"gzip, br", brotli(gzip(page)), true}, {"x-made-up", "bytes", false}};
  User user(people().back());
  int n = 0;
  for (const Row& row : rows) {
    CAPTURE(row.coding);
    Origin origin([&](const std::string&) { return encoded(row.coding, row.body); });
    const std::string name = "s" + std::to_string(n++);
    user.open(name, {origin.url("")}, {"--capture"});
    CHECK(user.run({"send", name, origin.url("/")}).status == 0);
    Json body = user.records(name, "outcome")[0]["body"];
    CHECK(body["body_bytes"].integer() == static_cast<int64_t>(row.body.size()));
    CHECK(body["body_sha256"].string() == sha256_hex(row.body));
    CHECK(read_file(user.folder(name) + "/blobs/" + sha256_hex(row.body).substr(0, 2) + "/" + sha256_hex(row.body).substr(2)) == row.body);
    if (row.known) {
      CHECK(body["decoded_bytes"].integer() == static_cast<int64_t>(page.size()));
      CHECK(body["decoded_sha256"].string() == sha256_hex(page));
    } else {
      CHECK(json::canonical(body["codings_left_on"]) == R"(["x-made-up"])");
      CHECK(json::canonical(body["facts"]).find("coding-unknown") != std::string::npos);
    }
  }
}

TEST_CASE("a bomb is told and bounded: its wire form is read, what it would become is not") {
  const std::string zeros(200u << 20, '\0');
  const std::string once = gzip(zeros), twice = gzip(once), br = brotli(zeros), zs = zstd(zeros);
  User user(people().back());
  int n = 0;
  for (const auto& [coding, body] : std::vector<std::pair<std::string, std::string>>{{"gzip", once}, {"gzip, gzip", twice}, {"br", br}, {"zstd", zs}}) {
    CAPTURE(coding, body.size());
    Origin origin([&, c = coding, b = body](const std::string&) { return encoded(c, b); });
    const std::string name = "s" + std::to_string(n++);
    user.open(name, {origin.url("")});
    CHECK(user.run({"send", name, origin.url("/")}).status == 0);
    Json o = user.records(name, "outcome")[0]["body"];
    CHECK(o["body_bytes"].integer() == static_cast<int64_t>(body.size()));
    CHECK(o["decoded_bytes"].integer() <= 64 << 20);
    const std::string facts = json::canonical(o["facts"]);
    CHECK((facts.find("decoded-ratio") != std::string::npos || facts.find("decoded-too-large") != std::string::npos));
  }
}
