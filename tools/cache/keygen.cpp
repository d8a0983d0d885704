// chord-cache keygen: a pair of keys, the secret one for who makes entries, the public one for who
// loads them.
#include <fmt/format.h>
#include <sys/stat.h>

#include "cache/signatures.h"
#include "src/base/posix_file_system.h"
#include "tools/cache/command.h"
#include "tools/cache/text.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

struct Flags {
  std::string out;
  std::string comment;
};

Status write_new(const std::string& path, const std::string& text) {
  base::PosixFileSystem files;
  const FileError error = files.write_exclusive(path, text);
  if (!error) return {};
  return Error{ErrorCode::invalid_argument, fmt::format("write a key to {}", path), error.message(),
               "name a file that does not exist yet; a key is never overwritten"};
}

Result<int> run(const Flags& flags, const Common& common) {
  if (flags.comment.find('\n') != flags.comment.npos)
    return bad_flags("--comment", "it has several lines", "give one line");
  const cache::SigningKey key = cache::SigningKey::generate();
  const std::string public_path = flags.out + ".pub";
  const std::string public_text =
      fmt::format("{}{}{}\n", key.signer(), flags.comment.empty() ? "" : " ", flags.comment);
  CHORD_TRY(write_new(flags.out, key.file_text()));
  if (Status written = write_new(public_path, public_text); !written) {
    base::PosixFileSystem files;
    (void)files.remove(flags.out);  // half a pair is of no use
    return std::move(written).error();
  }
  (void)::chmod(public_path.c_str(), 0644);
  if (common.json)
    return print_json(Json{{"signing_key", flags.out},
                           {"public_key_file", public_path},
                           {"public_key", key.signer()}});
  return print_text(
      fmt::format("secret  {}  (CHORD_SIGNING_KEY, on machines that compile)\n"
                  "public  {}  (a line of CHORD_TRUSTED_KEYS, on all machines)\n"
                  "key     {}\n",
                  flags.out, public_path, key.signer()));
}

Action prepare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("--out", flags->out, "file of the secret key; the public one gets .pub behind it")
      ->type_name("FILE")
      ->check(flag_text())
      ->required();
  app.add_option("--comment", flags->comment, "whose key it is, for people")
      ->type_name("TEXT")
      ->check(flag_text());
  return [flags](const Common& common) { return run(*flags, common); };
}

}  // namespace

const Command kKeygenCommand{"keygen", "make a pair of keys that sign and check entries",
                             "  chord-cache keygen --out build.key --comment 'the build machine'",
                             prepare};

}  // namespace chord::tools
