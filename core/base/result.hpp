// Result<T>: a value or an Error that cannot be ignored. Nothing in base throws; adapters that call throwing
// libraries catch there and return one of these.
#pragma once
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace h5i {

enum class Errc : int {
  OK = 0,
#define H5I_ERROR(NAME, NUMBER, ID, CLASS, REMEDY) NAME = NUMBER,
#include "h5i/errors.def"
#undef H5I_ERROR
};

enum class ExitClass { REFUSED, USAGE, FAILED, NOTFOUND, NOEXEC, DEADLINE };

std::string_view errc_id(Errc code);       // "tier.probe.missing"
std::string_view errc_remedy(Errc code);   // one line
ExitClass errc_class(Errc code);
Errc errc_from_number(int number);         // unknown numbers become INTERNAL
Errc errc_from_id(std::string_view id);    // unknown ids become INTERNAL

// What was refused or failed (what), the evidence, and what to run next (empty: the table's remedy).
struct [[nodiscard]] Error {
  Errc code = Errc::INTERNAL;
  std::string what;
  std::string evidence;
  std::string next;
  int sys_errno = 0;

  std::string_view id() const { return errc_id(code); }
  std::string remedy() const { return next.empty() ? std::string(errc_remedy(code)) : next; }
};

Error make_error(Errc code, std::string what, std::string evidence = {}, std::string next = {});
// For a failed system call: names the call and errno (taken from `errno` unless given).
Error sys_error(std::string what, int err = errno);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}  // NOLINT
  explicit operator bool() const { return v_.index() == 0; }
  bool ok() const { return v_.index() == 0; }
  T& value() & { return std::get<0>(v_); }
  const T& value() const& { return std::get<0>(v_); }
  T&& value() && { return std::get<0>(std::move(v_)); }
  T& operator*() & { return std::get<0>(v_); }
  const T& operator*() const& { return std::get<0>(v_); }
  T&& operator*() && { return std::get<0>(std::move(v_)); }
  T* operator->() { return &std::get<0>(v_); }
  const T* operator->() const { return &std::get<0>(v_); }
  Error& error() & { return std::get<1>(v_); }
  const Error& error() const& { return std::get<1>(v_); }
  Error&& error() && { return std::get<1>(std::move(v_)); }

 private:
  std::variant<T, Error> v_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : e_(std::move(error)) {}  // NOLINT
  explicit operator bool() const { return !e_; }
  bool ok() const { return !e_; }
  void value() const {}
  Error& error() & { return *e_; }
  const Error& error() const& { return *e_; }
  Error&& error() && { return std::move(*e_); }

 private:
  std::optional<Error> e_;
};

// H5I_TRY(expr): the value of a Result, or return its Error from the enclosing function.
// auto fd = H5I_TRY(open_something());   H5I_TRY(do_something());
#define H5I_TRY(...)                                            \
  ({                                                            \
    auto h5i_try_result_ = (__VA_ARGS__);                       \
    if (!h5i_try_result_) return std::move(h5i_try_result_).error(); \
    std::move(h5i_try_result_).value();                         \
  })

}  // namespace h5i
