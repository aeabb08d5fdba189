// Answers browsers of this machine.
#pragma once

#include "ppcc/Support/LLVM.h"
#include "llvm/Support/Error.h"

#include <chrono>
#include <list>

namespace ppcc {

/// A GET request, decoded.
struct HttpRequest {
  std::string path; ///< Without the query.
  std::vector<std::pair<std::string, std::string>> query;
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8", body;
  std::string policy = "default-src 'none'"; ///< Of the content's security.
};

/// Serves HTTP/1.1 on 127.0.0.1, one request a connection. What another origin
/// asks for is refused: its `Origin`, its `Sec-Fetch-Site`, and a `Host` that
/// is not this machine (a name that somebody else lets lead here). Bounded:
/// heads of 16 KiB, 32 requests that wait, 10 s for a head or a body.
class HttpServer {
public:
  /// Nothing for a request that is to be asked again a little later.
  using Handler =
      function_ref<std::optional<HttpResponse>(const HttpRequest &)>;

  HttpServer() = default;
  HttpServer(const HttpServer &) = delete;
  ~HttpServer();

  /// Port 0 is any that is free.
  llvm::Error listen(uint16_t port);
  uint16_t port() const { return boundPort; }
  /// Takes and answers what comes within `pollTimeout`, or up to when something
  /// comes from `other`, a descriptor; what waits is asked again.
  void serve(std::chrono::milliseconds pollTimeout, Handler handler,
             int extraDescriptor = -1);

private:
  struct Connection {
    int socket;
    std::chrono::steady_clock::time_point deadline;
    std::string in, out;
    std::optional<HttpRequest> request = {}; ///< Read, not answered.
  };

  void accept();
  /// False when the connection is at its end.
  bool advance(Connection &connection, bool isReady, Handler handler);
  std::optional<HttpResponse> refusal(StringRef head,
                                      HttpRequest &request) const;

  int listener = -1;
  uint16_t boundPort = 0;
  std::list<Connection> connections;
};

} // namespace ppcc
