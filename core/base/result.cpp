#include "core/base/result.hpp"

#include <cstring>

namespace h5i {
namespace {
struct Row {
  Errc code;
  const char* id;
  ExitClass cls;
  const char* remedy;
};
constexpr Row kRows[] = {
#define H5I_ERROR(NAME, NUMBER, ID, CLASS, REMEDY) {Errc::NAME, ID, ExitClass::CLASS, REMEDY},
#include "h5i/errors.def"
#undef H5I_ERROR
};
const Row& row(Errc code) {
  for (const Row& r : kRows)
    if (r.code == code) return r;
  return kRows[0];
}
}  // namespace

std::string_view errc_id(Errc code) { return code == Errc::OK ? "ok" : row(code).id; }
std::string_view errc_remedy(Errc code) { return row(code).remedy; }
ExitClass errc_class(Errc code) { return row(code).cls; }

Errc errc_from_number(int number) {
  for (const Row& r : kRows)
    if (static_cast<int>(r.code) == number) return r.code;
  return number == 0 ? Errc::OK : Errc::INTERNAL;
}

Errc errc_from_id(std::string_view id) {
  for (const Row& r : kRows)
    if (id == r.id) return r.code;
  return Errc::INTERNAL;
}

Error make_error(Errc code, std::string what, std::string evidence, std::string next) {
  return Error{code, std::move(what), std::move(evidence), std::move(next), 0};
}

Error sys_error(std::string what, int err) {
  Errc code = err == EACCES || err == EPERM || err == EROFS ? Errc::DENIED
              : err == ENOENT                               ? Errc::NOT_FOUND
              : err == EEXIST                               ? Errc::EXISTS
              : err == ENOSYS || err == EOPNOTSUPP          ? Errc::UNSUPPORTED
                                                            : Errc::SYSTEM;
  Error e{code, std::move(what), std::string(strerror(err)) + " (errno " + std::to_string(err) + ")", {}, err};
  return e;
}

}  // namespace h5i
