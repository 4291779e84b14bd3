#include "image.hpp"
#include "tests/support/catch.hpp"

using namespace h5i::container;

TEST_CASE("an image has one of four forms, and each is written as it was read", "[container][image]") {
  const std::string digest(64, 'a');
  struct {
    std::string text;
    Image::Kind kind;
  } good[] = {{"busybox", Image::Kind::STORAGE},
              {"busybox:1.36", Image::Kind::STORAGE},
              {"library/busy-box__x.y:_Tag-1.0", Image::Kind::STORAGE},
              {"localhost/docker:1", Image::Kind::STORAGE},
              {"docker", Image::Kind::STORAGE},
              {"localhost/h5i/dev", Image::Kind::STORAGE},
              {"registry.example:5000/team/dev:1", Image::Kind::STORAGE},
              {"registry.example/dev@sha256:" + digest, Image::Kind::STORAGE},
              {"dev:1@sha256:" + digest, Image::Kind::STORAGE},
              {"oci:/var/images/dev", Image::Kind::LAYOUT},
              {"oci-archive:/var/images/dev.tar", Image::Kind::ARCHIVE},
              {"/srv/roots/debian-12", Image::Kind::ROOT}};
  for (const auto& g : good) {
    INFO(g.text);
    auto image = parse_image(g.text);
    REQUIRE(image.ok());
    CHECK(image->kind == g.kind);
    CHECK(image->text() == g.text);
  }
}

TEST_CASE("what podman, a shell or mount would read as more than a name is no image", "[container][image]") {
  std::vector<std::string> bad = {
      "", "-v", "--privileged", "--rootfs=/", "-v/:/host", " busybox", "busybox ", "busy box", "busybox\n", "busybox;id", "busybox|id", "$(id)", "`id`", "busybox&", "a>b", "'a'", "\"a\"", "a\\b", "a*", "~", "a{b}",
      "docker://registry.example/x", "https://registry.example/x", "containers-storage:busybox", "docker-archive:/x.tar", "dir:/x", "docker-daemon:busybox:1", "ostree:x", "docker:x", "oci:x", "oci:relative", "oci:", "oci:/x:tag", "oci-archive:x.tar", "oci://x",
      "..", "a/../b", "/..", "/a/../etc", "/a/./b", "//a", "/a//b", "/a/", "/", "/a:b", "/a:O", "/a,b", "/a b", "/a\"b", "/a\nb", "./a", "../a", "a//b", "/a\x7f", "a/", "/-\t",
      "BusyBox", "busybox:", "busybox:-x", "busybox:a/b", "busybox:a:b", "a__.b", "a___b", "a..b", "-a/b", "a-/b", ".a", "a.", "registry.example:/x", "registry.example:99999999/x", "reg!.example/x",
      "busybox@", "busybox@sha256:", "busybox@sha256:" + std::string(63, 'a'), "busybox@sha256:" + std::string(64, 'A'), "busybox@sha512:" + std::string(128, 'a'), "busybox@sha256:" + std::string(64, 'a') + "@x",
      std::string("busybox\0x", 9), "b\xc3\xbcsybox", std::string(513, 'a')};
  for (const std::string& b : bad) {
    INFO(b);
    auto image = parse_image(b);
    CHECK_FALSE(image.ok());
    if (!image.ok()) CHECK(image.error().code == H5I_E_POLICY_VALUE);
  }
}
