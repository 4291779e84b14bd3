// What may be named as an image. Every form is absolute and plain, so that no word of it means something else to podman: it reads
// transports, options and mount flags in such texts.
#pragma once
#include <string>
#include <string_view>

#include "h5i/plugin.hpp"

namespace h5i::container {

struct Image {
  enum class Kind {
    STORAGE,  // "registry.example/dev:1", "busybox@sha256:...": in local storage, never fetched
    LAYOUT,   // "oci:/path": an OCI image layout
    ARCHIVE,  // "oci-archive:/path": the same in one file
    ROOT,     // "/path": a root directory
  };
  Kind kind = Kind::STORAGE;
  std::string name;  // STORAGE: as it stands, with its tag or digest
  std::string path;  // the others

  std::string text() const;
};

// POLICY_VALUE with what is wrong.
sdk::Result<Image> parse_image(std::string_view text);

}  // namespace h5i::container
