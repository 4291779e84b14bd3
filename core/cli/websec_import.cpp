// websec import: the file is read by the engine, which is confined. It is given a copy in the session's folder, which goes with the act.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/sha256.hpp"
#include "core/base/text.hpp"
#include "core/cli/websec_verbs.hpp"
#include "core/os/beneath.hpp"
#include "core/os/fs.hpp"

namespace h5i::cli {
namespace {

constexpr size_t kLargest = 64u << 20;
constexpr const char* kFolder = "state";
constexpr const char* kFile = "import";

Error misused(std::string what, std::string evidence) { return make_error(Errc::USAGE, std::move(what), std::move(evidence), "h5i websec import --help"); }

Result<std::string> format_of(const Parsed& words) {
  const std::string& file = words.arguments[1];
  std::string format = words.get("--format");
  if (!words.has("--format")) format = file.ends_with(".har") ? "har" : file.ends_with(".json") || file.ends_with(".yaml") || file.ends_with(".yml") ? "openapi" : file.ends_with(".txt") ? "urls" : "";
  if (format == "har" || format == "openapi" || format == "urls") return format;
  if (!words.has("--format")) return misused("the file's name does not say what it is", "--format har, openapi or urls");
  return misused("not a format of candidates: " + printable(format, {.limit = 100}), "har, openapi, urls");
}

// A copy that goes when it is forgotten. One that a killed import left is written over.
class Lent {
 public:
  static Result<Lent> make(const session::WebSession& session, const std::string& bytes) {
    Lent out;
    UniqueFd folder = H5I_TRY(os::open_directory(session.dir));
    out.dir_ = H5I_TRY(os::open_directory_beneath(folder, kFolder));
    UniqueFd file = H5I_TRY(os::open_beneath(out.dir_, kFile, O_RDWR | O_CREAT, 0600));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
      return errno == EWOULDBLOCK ? make_error(Errc::BUSY, "another import of the session " + session.name + " goes on", "it has the lock of " + session.dir + "/state/import") : sys_error("lock what is imported");
    // Whoever held it may have taken the name away meanwhile.
    struct stat here {}, named {};
    if (::fstat(file.get(), &here) != 0 || ::fstatat(out.dir_.get(), kFile, &named, AT_SYMLINK_NOFOLLOW) != 0 || here.st_ino != named.st_ino || !S_ISREG(here.st_mode))
      return make_error(Errc::BUSY, "another import of the session " + session.name + " goes on", "its file went");
    out.file_ = std::move(file);
    if (::ftruncate(out.file_.get(), 0) != 0) return sys_error("write what is imported");
    H5I_TRY(os::write_all(out.file_, bytes));
    return out;
  }
  Lent(Lent&&) = default;
  Lent& operator=(Lent&&) = delete;
  ~Lent() {
    if (file_) (void)::unlinkat(dir_.get(), kFile, 0);
  }

 private:
  Lent() = default;
  UniqueFd dir_, file_;
};

}  // namespace

int websec_import(Context& ctx, const Parsed& words) {
  const std::string& name = words.arguments[0];
  if (words.has("--list")) {
    if (words.arguments.size() > 1 || words.has("--format")) return refuse_web(ctx, misused("--list takes no file", "h5i websec import SESSION --list"));
    const std::string last = words.get("--last", "200");
    if (last.empty() || last.size() > 4 || last.find_first_not_of("0123456789") != std::string::npos || std::stoi(last) > 1000) return refuse_web(ctx, misused("--last is not a number up to 1000", printable(last, {.limit = 100})));
    return act_and_print(ctx, name, "candidates", json::Object{{"last", std::stoi(last)}}, true);
  }
  if (words.has("--last")) return refuse_web(ctx, misused("--last is of --list", "h5i websec import SESSION --list --last 20"));
  if (words.arguments.size() < 2) return refuse_web(ctx, misused("no file is given", "h5i websec import SESSION FILE, or --list"));
  auto format = format_of(words);
  if (!format) return refuse_web(ctx, format.error());
  auto session = web_session(name);
  if (!session) return refuse_web(ctx, session.error());
  auto bytes = os::read_file(words.arguments[1], kLargest);
  if (!bytes) return refuse_web(ctx, bytes.error());
  auto lent = Lent::make(*session, *bytes);
  if (!lent) return refuse_web(ctx, lent.error());
  return act_and_print(ctx, name, "import", json::Object{{"format", *format}, {"sha256", sha256_hex(*bytes)}}, false);
}

}  // namespace h5i::cli
