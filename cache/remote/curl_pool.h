// Easy handles of libcurl, kept between calls: a handle keeps its connection, so that the next call
// costs one round trip and no handshake. One handle per call in flight; the one used last goes
// first, because its connection is the most likely to be alive.
//
// After a fork the child has a pool of its own (per_process.h): a connection that two processes
// write to carries the requests of both. What the child inherited is never freed there, since
// freeing it would say goodbye on the parent's TLS session.
#pragma once

#include <curl/curl.h>

#include <mutex>
#include <vector>

#include "cache/remote/per_process.h"

namespace chord::cache {

class CurlPool {
  struct Shelf {
    ~Shelf();
    std::mutex mutex;
    std::vector<CURL*> idle;
  };

 public:
  // A handle for one call, back in the pool when it ends. nullptr when libcurl gives none.
  class Loan {
   public:
    Loan(Shelf& shelf, CURL* handle) : shelf_(shelf), handle_(handle) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan();

    CURL* handle() const { return handle_; }

   private:
    Shelf& shelf_;
    CURL* handle_;
  };

  CurlPool();
  Loan borrow();

 private:
  PerProcess<Shelf> shelf_;
};

}  // namespace chord::cache
