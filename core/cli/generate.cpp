#include "core/cli/generate.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <map>

#include "core/base/unique_fd.hpp"
#include "core/cli/parse.hpp"

namespace h5i::cli {
namespace {

// roff: a backslash is an escape, a hyphen that is typed must be \-, and a line may not begin with . or '.
std::string roff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    line_start = c == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string paragraphs(const std::string& text) {
  std::string out;
  for (char c : roff(text)) {
    if (c == '\n')
      out += "\n.PP\n";
    else
      out += c;
  }
  return out;
}

void append_option(std::string& out, const Option& o) {
  out += ".TP\n";
  if (o.short_name) out += "\\fB\\-" + std::string(1, o.short_name) + "\\fR, ";
  out += "\\fB" + roff(o.name) + "\\fR";
  if (!o.value.empty()) out += " \\fI" + roff(o.value) + "\\fR";
  out += "\n" + roff(o.help + (o.repeated ? " (may be repeated)" : "")) + "\n";
}

std::string page_head(const std::string& title, const std::string& name, const std::string& summary) {
  return ".TH " + title + " 1 \"\" \"h5i " H5I_VERSION "\"\n.SH NAME\n" + roff(name) + " \\- " + roff(summary) + "\n";
}

std::string page_name(const Command& c) { return "h5i-" + c.noun + (c.verb.empty() ? "" : "-" + c.verb); }

std::string page_of(const Command& c) {
  std::string name = page_name(c), title = name;
  for (char& ch : title) ch = ch >= 'a' && ch <= 'z' ? static_cast<char>(ch - 32) : ch;
  std::string out = page_head(title, name, c.summary) + ".SH SYNOPSIS\n.B h5i\n" + roff(c.usage) + "\n";
  if (!c.description.empty()) out += ".SH DESCRIPTION\n" + paragraphs(c.description) + "\n";
  out += ".SH OPTIONS\n";
  for (const Option& o : c.options) append_option(out, o);
  for (const Option& o : common_options()) append_option(out, o);
  return out + ".SH SEE ALSO\n.BR h5i (1)\n";
}

std::string overview_page(const std::vector<const Command*>& verbs) {
  std::string out = page_head("H5I", "h5i", "run unreviewed work in confined boxes") +
                    ".SH SYNOPSIS\n.B h5i\n.I NOUN VERB\n[options]\n.SH VERBS\n";
  for (const Command* c : verbs)
    out += ".TP\n\\fB" + roff(c->full_name()) + "\\fR\n" + roff(c->summary) + "\n";
  return out;
}

Result<void> write_page(const std::string& folder, const std::string& name, const std::string& text) {
  std::string path = folder + "/" + name;
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) return sys_error("write " + path);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return sys_error("write " + path);
  return {};
}

Result<void> write_pages(const std::vector<const Command*>& verbs, const std::string& folder) {
  H5I_TRY(write_page(folder, "h5i.1", overview_page(verbs)));
  for (const Command* c : verbs) H5I_TRY(write_page(folder, page_name(*c) + ".1", page_of(*c)));
  return {};
}

std::vector<const Option*> options_of(const Command& c) {
  std::vector<const Option*> out;
  for (const Option& o : c.options) out.push_back(&o);
  for (const Option& o : common_options()) out.push_back(&o);
  return out;
}

std::string option_names(const Command& c) {
  std::string out;
  for (const Option* o : options_of(c)) out += o->name + " ";
  return out;
}

std::map<std::string, std::vector<const Command*>> by_noun(const std::vector<const Command*>& verbs) {
  std::map<std::string, std::vector<const Command*>> out;
  for (const Command* c : verbs) out[c->noun].push_back(c);
  return out;
}

std::string bash_completion(const std::vector<const Command*>& verbs) {
  auto nouns = by_noun(verbs);
  std::string out =
      "# bash completion for h5i, made by h5i --generate-completion bash\n_h5i() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} noun=${COMP_WORDS[1]} verb=${COMP_WORDS[2]} words=\n"
      "  [ \"$noun\" = env ] && noun=box\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words='env --version --help";
  for (auto& [noun, list] : nouns) out += " " + noun;
  out += "'\n  elif [ \"$COMP_CWORD\" -eq 2 ]; then\n    case $noun in\n";
  for (auto& [noun, list] : nouns) {
    out += "      " + noun + ") words='";
    for (const Command* c : list) out += c->verb.empty() ? option_names(*c) : c->verb + " ";
    out += "--help' ;;\n";
  }
  out += "    esac\n  elif [[ $cur == -* ]]; then\n    case \"$noun $verb\" in\n";
  for (const Command* c : verbs)
    if (!c->verb.empty()) out += "      '" + c->full_name() + "') words='" + option_names(*c) + "' ;;\n";
  return out +
         "    esac\n  elif [ \"$noun\" = box ]; then\n    words=$(h5i box ls --names 2>/dev/null)\n  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _h5i h5i\n";
}

std::string quoted_for_shell(std::string text) {
  std::string out;
  for (char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':')
      out += std::string("\\") + c;
    else
      out += c;
  }
  return out;
}

std::string zsh_arguments(const Command& c) {
  std::string out = "_arguments";
  for (const Option* o : options_of(c)) {
    out += " '" + std::string(o->repeated ? "*" : "") + o->name + "[" + quoted_for_shell(o->help) + "]";
    if (!o->value.empty()) out += ":" + o->value + ":_files";
    out += "'";
  }
  return out + " '*:word:_files'";
}

std::string zsh_completion(const std::vector<const Command*>& verbs) {
  auto nouns = by_noun(verbs);
  std::string out =
      "#compdef h5i\n# made by h5i --generate-completion zsh\n_h5i() {\n  local noun=$words[2]\n"
      "  [[ $noun == env ]] && noun=box\n  if (( CURRENT == 2 )); then\n    compadd env --version --help";
  for (auto& [noun, list] : nouns) out += " " + noun;
  out += "\n  elif (( CURRENT == 3 )); then\n    case $noun in\n";
  for (auto& [noun, list] : nouns) {
    if (list[0]->verb.empty()) {
      out += "      " + noun + ") " + zsh_arguments(*list[0]) + " ;;\n";
      continue;
    }
    out += "      " + noun + ") local -a v=(";
    for (const Command* c : list) out += "'" + c->verb + ":" + quoted_for_shell(c->summary) + "' ";
    out += "); _describe verb v ;;\n";
  }
  out += "    esac\n  else\n    case \"$noun $words[3]\" in\n";
  for (const Command* c : verbs) out += "      " + (c->verb.empty() ? c->noun + "\\ *" : "'" + c->full_name() + "'") + ") " + zsh_arguments(*c) + " ;;\n";
  return out + "    esac\n  fi\n}\n_h5i \"$@\"\n";
}

std::string fish_completion(const std::vector<const Command*>& verbs) {
  auto nouns = by_noun(verbs);
  auto quote = [](const std::string& s) {
    std::string q = "'";
    for (char c : s) q += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return q + "'";
  };
  std::string out = "# fish completion for h5i, made by h5i --generate-completion fish\n";
  for (auto& [noun, list] : nouns) {
    std::string spelled = noun == "box" ? "box env" : noun, all;
    for (const Command* c : list) all += c->verb + " ";
    out += "complete -c h5i -n __fish_use_subcommand -f -a '" + spelled + "'\n";
    for (const Command* c : list) {
      const bool alone = c->verb.empty();
      if (!alone)
        out += "complete -c h5i -n '__fish_seen_subcommand_from " + spelled + "; and not __fish_seen_subcommand_from " + all +
               "' -f -a " + c->verb + " -d " + quote(c->summary) + "\n";
      for (const Option* o : options_of(*c)) {
        out += "complete -c h5i -n '__fish_seen_subcommand_from " + spelled + (alone ? "" : "; and __fish_seen_subcommand_from " + c->verb) +
               "' -l " + o->name.substr(2);
        if (o->short_name) out += std::string(" -s ") + o->short_name;
        if (!o->value.empty()) out += " -r";
        out += " -d " + quote(o->help) + "\n";
      }
    }
  }
  return out;
}

}  // namespace

int generate_man(Context& ctx, const std::vector<const Command*>& verbs, const std::string& folder) {
  auto written = write_pages(verbs, folder);
  return written ? 0 : ctx.refuse(written.error());
}

int generate_completion(Context& ctx, const std::vector<const Command*>& verbs, const std::string& shell) {
  if (shell == "bash")
    ctx.block(bash_completion(verbs));
  else if (shell == "zsh")
    ctx.block(zsh_completion(verbs));
  else if (shell == "fish")
    ctx.block(fish_completion(verbs));
  else
    return ctx.refuse(make_error(Errc::USAGE, "no completion for the shell " + shell, "known: bash, zsh, fish"));
  return 0;
}

}  // namespace h5i::cli
