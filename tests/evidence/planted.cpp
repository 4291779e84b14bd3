#include "tests/evidence/planted.hpp"

#include "core/base/text.hpp"

namespace h5i::test {
namespace {

struct Kind {
  std::string rule, prefix;
  size_t length;
  std::string alphabet;
};

// Prefixes are put together here so that they do not stand in this file as a scanner would see them.
std::vector<Kind> kinds() {
  const std::string hexadecimal = kDigits + "abcdef";
  return {
      {"AWS_ACCESS_KEY_ID", std::string("AK") + "IA", 16, kUpper + kDigits},
      {"AWS_ACCESS_KEY_ID", std::string("AS") + "IA", 16, kUpper + kDigits},
      {"GCP_API_KEY", std::string("AI") + "za", 35, kUrlChars},
      {"GCP_OAUTH_TOKEN", std::string("ya") + "29.", 60, kUrlChars},
      {"GITHUB_PAT", std::string("gh") + "p_", 36, kAlnumChars},
      {"GITHUB_PAT", std::string("gh") + "o_", 36, kAlnumChars},
      {"GITHUB_PAT", std::string("gh") + "s_", 36, kAlnumChars},
      {"GITHUB_FINE_GRAINED_PAT", std::string("github_") + "pat_", 82, kAlnumChars + "_"},
      {"GITLAB_PAT", std::string("gl") + "pat-", 20, kUrlChars},
      {"SLACK_TOKEN", std::string("xo") + "xb-", 50, kDigits + "-" + kAlnumChars},
      {"SLACK_TOKEN", std::string("xo") + "xp-", 60, kAlnumChars},
      {"STRIPE_SECRET_KEY", std::string("sk_") + "live_", 24, kAlnumChars},
      {"STRIPE_SECRET_KEY", std::string("rk_") + "test_", 24, kAlnumChars},
      {"ANTHROPIC_API_KEY", std::string("sk-") + "ant-api03-", 95, kUrlChars},
      {"OPENAI_API_KEY", std::string("sk-") + "proj-", 48, kUrlChars},
      {"OPENAI_API_KEY", std::string("sk") + "-", 48, kAlnumChars},
      {"NPM_TOKEN", std::string("np") + "m_", 36, kAlnumChars},
      {"PYPI_TOKEN", std::string("py") + "pi-AgEIcHlwaS5vcmc", 120, kUrlChars},
      {"HUGGINGFACE_TOKEN", std::string("h") + "f_", 34, kAlnumChars},
      {"SENDGRID_API_KEY", std::string("S") + "G.", 66, kAlnumChars},
      {"DIGITALOCEAN_TOKEN", std::string("do") + "p_v1_", 64, hexadecimal},
  };
}

std::string pem_body(Dice& d, const std::string& eol) {
  std::string out;
  for (int i = 0; i < 12; i++) out += d.pick(kAlnumChars + "+/", 64) + eol;
  return out + d.pick(kAlnumChars, 22) + "==" + eol;
}

}  // namespace

std::vector<Planted> planted_secrets(uint64_t seed) {
  Dice d(seed);
  std::vector<Planted> out;
  for (const Kind& k : kinds()) {
    auto fresh = [&] { return d.pick(k.alphabet, k.length); };
    auto plant = [&](const std::string& before, const std::string& after) {
      std::string body = fresh();
      out.push_back({k.rule, before + k.prefix + body + after, body});
    };
    plant("", "\n");
    plant("export X=", "\n");
    plant("using key ", " for upload\n");
    plant("{\"k\": \"", "\"}\n");
    plant("['", "']\n");
    plant("curl -u ", ": https://example.com/\n");
    plant("error: rejected (", ")\r\n");
    plant("\x1b[32m", "\x1b[0m\n");
    plant("\xff\xfe broken bytes ", " \xc3\n");
    plant("<td>", "</td>");
    plant("a=1&k=", "&b=2\n");
    plant("placeholder example todo changeme: ", "\n");
    std::string body = fresh();
    std::string half = body.substr(0, body.size() / 2), rest = body.substr(body.size() / 2);
    out.push_back({k.rule, "grep: " + k.prefix + half + "\x1b[01;31m" + rest + "\x1b[0m\n", half});
    std::string wide;
    body = fresh();
    for (char c : " " + k.prefix + body + " ") wide += c, wide += '\0';
    std::string wide_body;
    for (char c : body) wide_body += c, wide_body += '\0';
    out.push_back({k.rule, wide, wide_body});
  }

  auto add = [&](const char* rule, const std::string& before, const std::string& secret, const std::string& after) {
    out.push_back({rule, before + secret + after, secret});
  };
  for (int i = 0; i < 4; i++) {
    std::string jwt = d.pick(kUrlChars, 24) + "." + d.pick(kUrlChars, 120) + "." + d.pick(kUrlChars, 43);
    add("JWT", "cookie: session=eyJ", jwt, "; path=/\n");
    add("JWT", "\"id\":\"eyJ", jwt, "\"");
    for (const char* label : {"RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY",
                              "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"}) {
      std::string begin = std::string("-----BEGIN ") + label + "-----",
                  end = std::string("-----END ") + label + "-----\n";
      add("PRIVATE_KEY_PEM", begin + "\n", pem_body(d, "\n"), end);
      add("PRIVATE_KEY_PEM", begin + "\r\n", pem_body(d, "\r\n"), end);
      add("PRIVATE_KEY_PEM", "  key: |\n    " + begin + "\n    ", pem_body(d, "\n    "), end);
      add("PRIVATE_KEY_PEM", "{\"key\":\"" + begin + "\\n", pem_body(d, "\\n"), end + "\"}\n");
      add("PRIVATE_KEY_PEM", begin + "\n", pem_body(d, "\n"), "make: *** [all] Error 1\n");  // without an end
      add("PRIVATE_KEY_PEM", begin + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n", pem_body(d, "\n"), end);
    }
    auto password = [&] { return d.pick(kAlnumChars, 12); };
    add("POSTGRES_CONNECTION_STRING", "DATABASE_URL=postgres://app:", password(), "@db.internal:5432/app\n");
    add("POSTGRES_CONNECTION_STRING", "postgresql://app:", password() + "%40x", "@db/app");
    add("MYSQL_CONNECTION_STRING", "mysql://root:", password(), "@127.0.0.1/x ");
    add("MONGODB_CONNECTION_STRING", "mongodb+srv://u:", password(), "@cluster0.example.net/?retryWrites=true\n");
    add("REDIS_CONNECTION_STRING", "redis://:", password(), "@cache:6379/0\n");
    add("HTTP_BASIC_AUTH_URL", "fatal: unable to access 'https://bot:", password(), "@git.example.com/x.git/': 403\n");
    add("HTTP_BASIC_AUTH_URL", "proxy http://user:", password() + "@" + password(), "@proxy:3128\n");
    add("PASSWORD_ASSIGNMENT", "jdbc:mysql://h/db?user=app&password=", d.pick(kLower + kDigits, 14), "&ssl=true\n");
    add("PASSWORD_ASSIGNMENT", "MYSQL_PASSWORD=", d.pick(kAlnumChars, 14), "\n");
    add("PASSWORD_ASSIGNMENT", "\"db_password\": \"", d.pick(kAlnumChars + "!$%", 14), "\",\n");
    add("PASSWORD_ASSIGNMENT", "--password=", d.pick(kAlnumChars, 14), " --verbose\n");
    add("AUTHORIZATION_HEADER", "> Authorization: Bearer ", d.pick(kUrlChars, 40), "\r\n");
    add("AUTHORIZATION_HEADER", "> authorization: Basic ", base64(d.pick(kAlnumChars, 21)), "\r\n");
    add("AUTHORIZATION_HEADER", "{\"Authorization\":\"token ", d.pick(kAlnumChars, 40), "\"}\n");
    add("AUTHORIZATION_HEADER", "curl -H 'Authorization: ", d.pick(kAlnumChars, 32), "'\n");
    add("AUTHORIZATION_HEADER", "sent Bearer ", d.pick(kUrlChars, 40), " upstream\n");
    add("GENERIC_HIGH_ENTROPY", "client_secret = \"", d.pick(kUrlChars, 36), "\"\n");
    add("GENERIC_HIGH_ENTROPY", "{\\\"apiKey\\\":\\\"", d.pick(kAlnumChars, 36), "\\\"}\n");
    add("GENERIC_HIGH_ENTROPY", "config['secret_key'] = '", d.pick(kAlnumChars, 40), "'\n");
    add("GENERIC_HIGH_ENTROPY_UNQUOTED", "AWS_SECRET_ACCESS_KEY=", d.pick(kAlnumChars + "+/", 39) + "7", "\n");
    add("GENERIC_HIGH_ENTROPY_UNQUOTED", "access_token: ", d.pick(kAlnumChars, 39) + "3", "\n");
    add("GENERIC_HIGH_ENTROPY_UNQUOTED", "AccountKey=", base64(d.pick(kAlnumChars, 64)) + "9", ";EndpointSuffix=x\n");
    add("GENERIC_HIGH_ENTROPY_UNQUOTED", "X-Auth-Token: ", d.pick(kDigits + "abcdef", 39) + "1", "\r\n");
    add("GENERIC_HIGH_ENTROPY_UNQUOTED", "npm config set //registry/:_authToken=", d.pick(kAlnumChars, 39) + "5", "\n");
  }
  return out;
}

}  // namespace h5i::test
