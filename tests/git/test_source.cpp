#include "core/git/source.hpp"

#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::git;

TEST_CASE("https, ssh, git and file URLs and host:path are taken") {
  for (const char* url : {"https://example.org/a/b.git", "ssh://git@example.org/a", "git://example.org/a", "file:///srv/a.git", "git@example.org:a/b.git", "example.org:a", "https://example.org:8443/a"}) {
    INFO(url);
    CHECK(looks_like_url(url));
    CHECK(check_url(url));
  }
}

TEST_CASE("helpers, options, other schemes and passwords are refused") {
  for (const char* url : {"ext::sh -c touch% /tmp/x", "ext::sh", "fd::17", "-uhttps://x/y", "--upload-pack=touch", "http://example.org/a", "ftp://x/y", "javascript://x/y", "ssh://-oProxyCommand=x/y", "ssh://u@-x/y",
                          "-x:y", "git@-x:y", "ssh://-l@example.org/y", "https://user:secret@example.org/a", "https://", "https:///a", "file://", "file://otherhost/a", "https://example.org", "https://example.org/", "x:-path",
                          "https://exa mple.org/a", "https://example.org/a\nb", "", "ext::https://example.org/a", "transport::https://example.org/a", "ssh://example.org/-oX", "git@example.org:"}) {
    INFO(url);
    auto r = check_url(url);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == Errc::GIT_SOURCE);
  }
}

TEST_CASE("names are made from the last component") {
  CHECK(name_from("https://example.org/a/My.Repo.git") == "my.repo");
  CHECK(name_from("git@example.org:tool") == "tool");
  CHECK(name_from("/srv/Work Tree/") == "work-tree");
  CHECK(name_from("/") == "");
  CHECK(name_from("https://e/..-x..") == "x");
  CHECK(name_from("https://e/\xC3\xA9") == "");
}
