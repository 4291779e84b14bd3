// One verb = one Command: its options are data, so that --help, the parser, completions and the man page cannot differ.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/base/json.hpp"

namespace h5i::cli {

struct Option {
  std::string name;         // "--isolation"
  std::string value;        // "TIER"; empty: a switch
  std::string help;
  bool repeated = false;
  char short_name = 0;      // 'q'
};

struct Parsed {
  std::map<std::string, std::vector<std::string>> options;  // by name; a switch holds one empty string
  std::vector<std::string> arguments;                       // positional, before "--"
  std::vector<std::string> rest;                            // after "--"
  bool has(const std::string& name) const { return options.count(name) > 0; }
  std::string get(const std::string& name, std::string fallback = {}) const {
    auto it = options.find(name);
    return it == options.end() || it->second.empty() ? fallback : it->second.back();
  }
};

// What every verb gets: parsed words, the output mode, and the only ways to print.
class Context {
 public:
  bool json = false, quiet = false, verbose = false;
  int lost_status = 1;            // the exit status when an answer could not be written: 125 where 1 is the command's own
  std::vector<std::string> argv;  // as given, for the record
  // stdout. Text passes the sanitizer, so callers pass raw text. With --json nothing but result() may be used.
  // One line: a newline inside `text` (a hostile file name) is shown as \n and cannot forge another line.
  void line(const std::string& text);
  // Text of several lines, such as a diff or a rendered receipt; newlines and tabs are kept.
  void block(const std::string& text);
  // Bytes as they are: for a pipe or a file, never for a terminal.
  void raw(const std::string& bytes);
  // The one JSON object of a --json verb: schema docs/schema/<noun>-<verb>.json. Prints it in JSON mode, else nothing.
  void result(const Json& object);
  // stderr, unless -q.
  void note(const std::string& text);
  void detail(const std::string& text);  // only with -v
  // Three lines on stderr (what with id, evidence, command that shows more), or {"error":{...}} on stdout with --json.
  // Returns the exit status for a verb that is not run or shell: 1 or 2.
  int refuse(const Error& e);
  // 0 while everything that was meant for stdout arrived there, else the errno of the first write that did not.
  int output_errno() const { return output_errno_; }
  bool printed() const { return printed_; }

 private:
  void write_out(const std::string& bytes);
  int output_errno_ = 0;
  bool printed_ = false;
};

struct Command {
  std::string noun, verb;   // verb empty: the noun alone is the command, and has no other
  std::string usage;        // "box run BOX [options] -- COMMAND [ARG...]"
  std::string summary;      // one line
  std::string description;  // paragraphs
  std::vector<Option> options;  // besides --json -q -v --help, which every verb has
  int min_args = 0, max_args = 0;  // positional before "--"; -1: any
  bool rest = false;               // takes words after "--"
  int usage_status = 2;            // of wrong words
  int lost_status = 1;             // of an answer that could not be written
  int (*run)(Context&, const Parsed&) = nullptr;
  // The libexec executable that holds the verb; empty: this one. Every executable knows every verb's table, so that
  // `h5i --help` is whole; a verb of another executable is reached by exec.
  std::string executable;

  std::string full_name() const { return verb.empty() ? noun : noun + " " + verb; }
};

// The tables: one file a noun in core/cli/tables_*.cpp; run pointers are set by the executable that holds the verb. A verb
// of this executable that has no run pointer does not exist for the user.
const std::vector<Command>& all_commands();
// Sets the run function of a verb in this executable (called at the start of main).
void implement(const std::string& noun, const std::string& verb, int (*run)(Context&, const Parsed&));
// Parses, handles --help, --version, unknown verbs and options (exit 2, with the nearest known one), dispatches or execs.
int main_with(const std::string& executable, int argc, char** argv);

}  // namespace h5i::cli
