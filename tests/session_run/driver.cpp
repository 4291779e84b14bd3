// What `box run` does around run_in_box, without the command line: driver BOX_DIR OPTIONS.json, the report on descriptor 9.
#include <unistd.h>

#include "core/session/receipt.hpp"
#include "core/session/run.hpp"
#include "tests/support/text_file.hpp"

using namespace h5i;

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  auto o = parse_json(test::read_file(argv[2]), "options");
  if (!o) return 99;
  session::BoxEntry box;
  box.name = {"human", "test"};
  box.paths.dir = argv[1];
  session::RunOptions options;
  for (const Json& a : (*o)["argv"].array()) options.argv.push_back(a.string());
  options.cwd = (*o)["cwd"].string();
  options.shell = (*o)["shell"].boolean();
  options.record = (*o)["record"].boolean();
  options.json = (*o)["json"].boolean();
  auto report = session::run_in_box(box, options);
  Json out;
  int status;
  if (report) {
    out = json::Object{{"receipt", report->receipt}, {"exit_status", report->exit_status}, {"record", report->receipt_record}};
    status = report->exit_status;
  } else {
    const Error& e = report.error();
    status = session::exit_status_of(e);
    out = json::Object{{"error", json::Object{{"id", e.id()}, {"what", e.what}, {"evidence", e.evidence}}}, {"exit_status", status}};
  }
  std::string line = json::canonical(out);
  (void)!write(9, line.data(), line.size());
  return status;
}
