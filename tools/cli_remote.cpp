// See cli_remote.h.
#include "tools/cli_remote.h"

#include "tools/cli.h"

namespace chord::tools {

void add_remote_flag(CLI::App& app, RemoteFlags& flags) {
  app.add_option("--remote", flags.url,
                 "store that a fleet shares, as CHORD_REMOTE: redis://host, http://host/path")
      ->type_name("URL")
      ->check(flag_text());
}

Status apply(const RemoteFlags& flags, Options& options) {
  if (flags.url.empty()) return {};
  // user:password@host; looked for in the text, so that nothing depends on how the rest of a wrong
  // URL is read.
  const std::size_t begin = flags.url.find("://");
  const std::size_t at = flags.url.rfind('@');
  const bool is_http = flags.url.starts_with("http");  // there a user alone may be a token
  if (begin != flags.url.npos && at != flags.url.npos &&
      (is_http || flags.url.find(':', begin + 3) < at))
    return bad_flags("--remote", "a password in the URL, where other users of this machine see it",
                     "give it by CHORD_REMOTE_PASSWORD_FILE, or the whole URL by CHORD_REMOTE");
  options.remote = flags.url;
  return {};
}

}  // namespace chord::tools
