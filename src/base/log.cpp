// The only user of spdlog.
#include "src/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <utility>

namespace chord::base {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

// Not registered with spdlog: the program around us may use it as well, with names of its own.
LogSink standard_error() {
  auto logger =
      std::make_shared<spdlog::logger>("chord", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spdlog::level::debug);
  logger->set_pattern("chord %l: %v");
  logger->set_error_handler([](const std::string&) {});
  return [logger](LogLevel level, std::string_view message) {
    logger->log(spdlog_level(level), spdlog::string_view_t(message.data(), message.size()));
  };
}

}  // namespace

LogSink make_log(LogLevel level, LogSink user) {
  LogSink target = user ? std::move(user) : standard_error();
  return [level, target = std::move(target)](LogLevel of_message, std::string_view message) {
    if (of_message < level || level == LogLevel::off || of_message == LogLevel::off) return;
    try {
      target(of_message, message);
    } catch (...) {
      // The log must not decide the fate of the job.
    }
  };
}

}  // namespace chord::base
