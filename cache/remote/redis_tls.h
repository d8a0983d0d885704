// TLS to Redis: a part of hiredis since 1.0, in a library of its own. A build without it has this
// door too, and it answers with an error.
#pragma once

#include "cache/remote/redis_connection.h"

namespace chord::cache {

bool has_redis_tls();

// On a connected socket that does not block; the handshake itself goes on with the first command.
// The certificate has to come from a known authority. That it is of this very host is checked from
// hiredis 1.5 on; older ones can not.
Status start_redis_tls(redisContext& context, const RedisAddress& address);

}  // namespace chord::cache
