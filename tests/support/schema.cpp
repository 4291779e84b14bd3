#include "tests/support/schema.hpp"

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace h5i::test {
namespace {

using Errors = std::vector<std::string>;

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return in ? out.str() : std::string();
}

bool type_is(const std::string& type, const Json& v) {
  if (type == "null") return v.is_null();
  if (type == "boolean") return v.is_bool();
  if (type == "integer") return v.is_int();
  if (type == "number") return v.is_number();
  if (type == "string") return v.is_string();
  if (type == "array") return v.is_array();
  return type == "object" && v.is_object();
}

size_t characters(const std::string& s) {
  size_t n = 0;
  for (char c : s) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

struct Validator {
  std::string folder;
  Json root;  // of the document that "#" means
  int depth = 0;

  // The schema that `ref` names, with the document that its own "#" means.
  bool resolve(const std::string& ref, Json* schema, Json* document, std::string* why) const {
    size_t hash = ref.find('#');
    std::string file = ref.substr(0, hash), pointer = hash == std::string::npos ? "" : ref.substr(hash + 1);
    *document = root;
    if (!file.empty()) {
      auto parsed = json::parse(read_text(folder + "/" + file));
      if (file.find('/') != std::string::npos || !parsed) {
        *why = "$ref to " + file + ", which cannot be read";
        return false;
      }
      *document = *parsed;
    }
    const Json* at = document;
    std::istringstream parts(pointer);
    for (std::string part; std::getline(parts, part, '/');) {
      if (part.empty()) continue;
      const bool index = at->is_array() && part.size() < 5 && part.find_first_not_of("0123456789") == std::string::npos && std::stoul(part) < at->array().size();
      const Json* next = index ? &at->array()[std::stoul(part)] : at->object().find(part);
      if (!next) {
        *why = "$ref " + ref + " names nothing";
        return false;
      }
      at = next;
    }
    *schema = *at;
    return true;
  }

  bool valid(const Json& schema, const Json& v) {
    Errors errors;
    check(schema, v, "", errors);
    return errors.empty();
  }

  void check(const Json& schema, const Json& v, const std::string& at, Errors& errors) {
    auto fail = [&](const std::string& why) { errors.push_back((at.empty() ? "/" : at) + ": " + why); };
    if (schema.is_bool()) {
      if (!schema.boolean()) fail("nothing is allowed here");
      return;
    }
    if (!schema.is_object()) return fail("the schema here is not an object");
    if (++depth > 64) return fail("the schema refers to itself without end");
    for (const auto& [key, rule] : schema.object()) keyword(key, rule, schema, v, at, errors);
    depth--;
  }

  void keyword(const std::string& key, const Json& rule, const Json& schema, const Json& v, const std::string& at,
               Errors& errors) {
    auto fail = [&](const std::string& why) { errors.push_back((at.empty() ? "/" : at) + ": " + why); };
    static const std::set<std::string> kNotes = {"$schema", "$id", "title", "description", "definitions", "examples"};
    if (kNotes.count(key)) return;
    if (key == "$ref") {
      Json target, document;
      std::string why;
      if (!resolve(rule.string(), &target, &document, &why)) return fail(why);
      Validator inner{folder, document, depth};
      inner.check(target, v, at, errors);
    } else if (key == "type") {
      bool ok = type_is(rule.string(), v);
      for (const Json& t : rule.array()) ok = ok || type_is(t.string(), v);
      if (!ok) fail("is not of type " + json::canonical(rule));
    } else if (key == "const") {
      if (!(rule == v)) fail("is not " + json::canonical(rule));
    } else if (key == "enum") {
      bool ok = false;
      for (const Json& t : rule.array()) ok = ok || t == v;
      if (!ok) fail("is not one of " + json::canonical(rule) + ": " + json::canonical(v));
    } else if (key == "pattern") {
      if (v.is_string() && !std::regex_search(v.string(), std::regex(rule.string(), std::regex::ECMAScript)))
        fail("does not match " + rule.string() + ": " + v.string());
    } else if (key == "minLength") {
      if (v.is_string() && characters(v.string()) < static_cast<size_t>(rule.integer())) fail("is too short");
    } else if (key == "maxLength") {
      if (v.is_string() && characters(v.string()) > static_cast<size_t>(rule.integer())) fail("is too long");
    } else if (key == "minimum") {
      if (v.is_number() && v.number() < rule.number()) fail("is below " + json::canonical(rule));
    } else if (key == "maximum") {
      if (v.is_number() && v.number() > rule.number()) fail("is above " + json::canonical(rule));
    } else if (key == "required") {
      for (const Json& name : rule.array())
        if (v.is_object() && !v.object().contains(name.string())) fail("lacks " + name.string());
    } else if (key == "properties") {
      for (const auto& [name, inner] : rule.object())
        if (const Json* member = v.object().find(name)) check(inner, *member, at + "/" + name, errors);
    } else if (key == "patternProperties") {
      for (const auto& [pattern, inner] : rule.object())
        for (const auto& [name, member] : v.object())
          if (std::regex_search(name, std::regex(pattern))) check(inner, member, at + "/" + name, errors);
    } else if (key == "additionalProperties") {
      for (const auto& [name, member] : v.object()) {
        if (schema["properties"].object().contains(name)) continue;
        bool matched = false;
        for (const auto& [pattern, inner] : schema["patternProperties"].object())
          matched = matched || std::regex_search(name, std::regex(pattern));
        if (matched) continue;
        if (rule.is_bool() && !rule.boolean())
          fail("has the unknown member " + name);
        else
          check(rule, member, at + "/" + name, errors);
      }
    } else if (key == "items") {
      if (!v.is_array()) return;
      for (size_t i = 0; i < v.array().size(); i++) check(rule, v.array()[i], at + "/" + std::to_string(i), errors);
    } else if (key == "minItems") {
      if (v.is_array() && v.array().size() < static_cast<size_t>(rule.integer())) fail("has too few items");
    } else if (key == "maxItems") {
      if (v.is_array() && v.array().size() > static_cast<size_t>(rule.integer())) fail("has too many items");
    } else if (key == "uniqueItems") {
      for (size_t i = 0; rule.boolean() && i < v.array().size(); i++)
        for (size_t k = 0; k < i; k++)
          if (v.array()[i] == v.array()[k]) fail("has an item twice");
    } else if (key == "allOf") {
      for (const Json& inner : rule.array()) check(inner, v, at, errors);
    } else if (key == "anyOf" || key == "oneOf") {
      size_t matched = 0;
      Errors nearest;
      for (const Json& inner : rule.array()) {
        Errors own;
        check(inner, v, at, own);
        matched += own.empty();
        if (nearest.empty() || (!own.empty() && own.size() < nearest.size())) nearest = own;
      }
      if (matched == 0) {
        fail("matches none of " + key);
        errors.insert(errors.end(), nearest.begin(), nearest.end());
      }
      if (matched > 1 && key == "oneOf") fail("matches more than one of oneOf");
    } else if (key == "not") {
      if (valid(rule, v)) fail("matches what it must not");
    } else if (key == "if" || key == "then" || key == "else") {
      if (key == "if") {
        const char* branch = valid(rule, v) ? "then" : "else";
        if (const Json* inner = schema.object().find(branch)) check(*inner, v, at, errors);
      }
    } else {
      fail("the schema uses the keyword " + key + ", which this validator does not know");
    }
  }
};

}  // namespace

std::vector<std::string> schema_errors(const std::string& folder, const Json& schema, const Json& value) {
  Errors errors;
  Validator{folder, schema}.check(schema, value, "", errors);
  return errors;
}

std::vector<std::string> schema_errors(const std::string& name, const Json& value) {
  const char* source = getenv("H5I_SOURCE_DIR");
  std::string folder = std::string(source ? source : ".") + "/docs/schema";
  json::ParseError why;
  std::string text = read_text(folder + "/" + name + ".json");
  if (text.empty()) return {"there is no schema " + folder + "/" + name + ".json"};
  auto schema = json::parse(text, &why);
  if (!schema) return {name + ".json is not JSON at byte " + std::to_string(why.offset) + ": " + why.message};
  return schema_errors(folder, *schema, value);
}

std::vector<std::string> schema_errors_of_text(const std::string& name, const std::string& text) {
  json::ParseError why;
  auto value = json::parse(text, &why);
  if (!value) return {"not one JSON document at byte " + std::to_string(why.offset) + ": " + why.message + ": " + text};
  if (text.back() != '\n') return {"no newline at the end"};
  return schema_errors(name, *value);
}

}  // namespace h5i::test
