// chord-cache serve: compiles for nodes that have no compiler, until it is told to end.
#include <fmt/format.h>
#include <signal.h>

#include <atomic>

#include "src/base/log.h"
#include "src/base/posix_file_system.h"
#include "src/base/system_clock.h"
#include "src/farm/farm_server.h"
#include "src/prewarm.h"
#include "tools/cache/command.h"
#include "tools/cache/service.h"
#include "tools/cache/text.h"
#include "tools/cli.h"

namespace chord::tools {
namespace {

struct Flags {
  RemoteFlags remote;
  int jobs = 0;
};

std::atomic<bool> is_over{false};

void end(int /*signal*/) { is_over = true; }

void end_on_signals() {
  struct sigaction action {};
  action.sa_handler = end;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

Result<int> run(const Flags& flags, const Common& common) {
  base::PosixFileSystem files;
  base::SystemClock clock;
  Options options;
  options.remote_write = true;
  const LogSink log = base::make_log(LogLevel::info, {});
  CHORD_TRY(const Service service, open_service(common, flags.remote, std::move(options), log));
  if (service.options.remote->empty())
    return bad_flags("a compile farm", "no remote store", "name a Redis with --remote");
  if (!service.options.signing_key)
    return bad_flags("a compile farm", "no signing key",
                     "name one with CHORD_SIGNING_KEY: nobody loads what is not signed");
  // A farm without a compiler would answer every request with a failure.
  CHORD_TRY(const std::string compiler, service.compiler->identity());
  CHORD_TRY(const cache::RemoteSettings remote, remote_settings(service.options));
  CHORD_TRY(cache::RedisStore redis, cache::open_redis(remote));
  farm::FarmOptions how;
  how.label = files.process_label();
  how.jobs = compile_jobs(flags.jobs);
  const std::string place = redis.client->address().name;
  farm::FarmServer server(std::move(redis), *service.store, service.cache(), how, clock, log);
  end_on_signals();
  if (!common.json)
    print_text(
        fmt::format("serving {} with {}, {} compiles at a time\n", place, compiler, how.jobs));
  server.run([] { return is_over.load(); });
  const farm::FarmCounters& counters = server.counters();
  if (common.json)
    return print_json(Json{{"served", counters.served.load()},
                           {"compiled", counters.compiled.load()},
                           {"failed", counters.failed.load()},
                           {"claimed", counters.claimed.load()},
                           {"given_up", counters.given_up.load()}});
  return print_text(fmt::format("served {}, compiled {}, failed {}\n", counters.served.load(),
                                counters.compiled.load(), counters.failed.load()));
}

Action prepare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  add_remote_flag(app, flags->remote);
  app.add_option("--jobs", flags->jobs, "compiles at a time; default: cores, bounded by memory")
      ->type_name("COUNT")
      ->transform(whole_number(1, 1024));
  return [flags](const Common& common) { return run(*flags, common); };
}

}  // namespace

const Command kServeCommand{
    "serve", "compile for nodes that have no compiler, until SIGTERM or SIGINT",
    "  CHORD_SIGNING_KEY=farm.key chord-cache serve --remote redis://cache.internal --jobs 8",
    prepare};

}  // namespace chord::tools
