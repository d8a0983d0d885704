// See service.h.
#include "tools/cache/service.h"

#include "src/base/environment.h"
#include "src/base/posix_file_system.h"
#include "src/base/system_clock.h"

namespace chord::tools {

Result<Service> open_service(const Common& common, const RemoteFlags& remote, Options from_code,
                             const LogSink& log) {
  static base::PosixFileSystem files;
  static base::SystemClock clock;
  if (!common.cache_dir.empty()) from_code.cache_dir = common.cache_dir;
  CHORD_TRY(apply(remote, from_code));
  from_code.compile_at = CompileAt::local;
  const LogSink sink = log ? log : [](LogLevel, std::string_view) {};
  const EnvironmentLookup environment = base::process_environment();
  Service service;
  CHORD_TRY(service.options,
            base::resolve_options(std::move(from_code), environment, parse_overrides));
  CHORD_TRY(service.opened, open_cache(service.options, environment, files, clock, sink));
  service.compiler = std::make_unique<cubin::NvrtcCompiler>(service.options.nvrtc_library);
  service.store = std::make_unique<cubin::CubinStore>(service.cache(), *service.compiler,
                                                      *service.options.jit, sink);
  return service;
}

}  // namespace chord::tools
