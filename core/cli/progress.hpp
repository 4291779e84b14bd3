// What takes long, said on standard error: only when that is a terminal, only after half a second, gone when it ends.
#pragma once
#include <string>

#include "core/cli/command.hpp"

namespace h5i::cli {

class Progress {
 public:
  explicit Progress(const Context& ctx);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // The step that begins now. Cheap: a step that is over before the next tenth of a second is not drawn.
  void say(const std::string& step);
  // Takes the line away again, before anything else is printed.
  void done();

 private:
  bool wanted_ = false, drawn_ = false;
  long long began_ns_ = 0, drawn_ns_ = 0;
};

}  // namespace h5i::cli
