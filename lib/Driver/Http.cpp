#include "Http.h"

#include "ppcc/Support/Uri.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace ppcc;

static constexpr size_t maxHeaderBytes = 16 << 10, maxWaiting = 32,
                        maxConnections = 2 * maxWaiting;
static constexpr std::chrono::seconds timeout(10);

/// A part of a query, where `+` is a blank.
static std::string decoded(StringRef text) {
  std::string blanks = text.str();
  std::replace(blanks.begin(), blanks.end(), '+', ' ');
  return percentDecoded(blanks);
}

static std::string wireText(const HttpResponse &response) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
      "Connection: close\r\nCache-Control: no-store\r\n"
      "Content-Security-Policy: {}\r\nX-Content-Type-Options: nosniff\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n"
      "Referrer-Policy: no-referrer\r\n\r\n{}",
      response.status, response.status == 200 ? "OK" : "Refused", response.type,
      response.body.size(), response.policy, response.body);
}

HttpServer::~HttpServer() {
  for (const Connection &connection : connections)
    close(connection.socket);
  if (listener >= 0)
    close(listener);
}

llvm::Error HttpServer::listen(uint16_t port) {
  listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto *generic = reinterpret_cast<sockaddr *>(&address);
  socklen_t size = sizeof address;
  int on = 1;
  if (listener < 0 ||
      setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(listener, generic, size) != 0 || ::listen(listener, 16) != 0 ||
      getsockname(listener, generic, &size) != 0)
    return llvm::createStringError({errno, std::generic_category()},
                                   "port %u: %s", unsigned(port),
                                   strerror(errno));
  boundPort = ntohs(address.sin_port);
  return llvm::Error::success();
}

void HttpServer::accept() {
  while (connections.size() != maxConnections) {
    int socket =
        accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0)
      return;
    connections.push_back(
        {socket, std::chrono::steady_clock::now() + timeout, "", ""});
  }
}

/// Reads the head into `request`; gives what is wrong with it.
std::optional<HttpResponse> HttpServer::refusal(StringRef head,
                                                HttpRequest &request) const {
  auto [line, rest] = head.split("\r\n");
  auto [method, target] = line.split(' ');
  if (method != "GET")
    return HttpResponse{405, "text/plain", "only GET"};
  auto [path, query] = target.split(' ').first.split('?');
  request.path = decoded(path);
  for (StringRef pair : llvm::split(query, '&'))
    if (auto [name, value] = pair.split('='); !name.empty())
      request.query.emplace_back(decoded(name), decoded(value));
  bool isNavigation = false, isCrossSite = false;
  StringRef host, origin;
  while (!rest.empty()) {
    StringRef header;
    std::tie(header, rest) = rest.split("\r\n");
    auto [name, spaced] = header.split(':');
    StringRef value = spaced.trim();
    if (name.equals_insensitive("host"))
      host = value;
    else if (name.equals_insensitive("origin"))
      origin = value;
    else if (name.equals_insensitive("sec-fetch-site"))
      isCrossSite |= value != "same-origin" && value != "none";
    else if (name.equals_insensitive("sec-fetch-mode"))
      isNavigation = value == "navigate";
  }
  // Clients leave out port 80.
  StringRef machine = host.split(':').first;
  bool isOurs = machine == "127.0.0.1" || machine == "localhost";
  isCrossSite |= !origin.empty() && origin != ("http://" + host).str();
  // Who follows a link, or shows the page in a frame, cannot read it.
  if (!isOurs || (isCrossSite && !isNavigation))
    return HttpResponse{403, "text/plain", "for pages of this server only"};
  return std::nullopt;
}

bool HttpServer::advance(Connection &connection, bool isReady,
                         Handler handler) {
  if (isReady && connection.out.empty()) {
    char buffer[4096];
    ssize_t count = recv(connection.socket, buffer, sizeof buffer, 0);
    if (count == 0 || (count < 0 && errno != EAGAIN) ||
        connection.in.size() > maxHeaderBytes)
      return false;
    connection.in.append(buffer, std::max<ssize_t>(count, 0));
  }
  size_t end = connection.in.find("\r\n\r\n");
  if (connection.out.empty() && end != std::string::npos) {
    std::optional<HttpResponse> response;
    bool isNew = !connection.request;
    if (isNew)
      response = refusal(StringRef(connection.in).take_front(end),
                         connection.request.emplace());
    if (!response)
      response = handler(*connection.request);
    auto isWaiting = [](const Connection &one) {
      return one.request && one.out.empty();
    };
    if (!response && isNew &&
        size_t(llvm::count_if(connections, isWaiting)) > maxWaiting)
      response = HttpResponse{503, "text/plain", "too many pages are open"};
    auto now = std::chrono::steady_clock::now();
    if (response)
      connection.out = wireText(*response);
    connection.deadline = now + timeout;
  }
  if (connection.out.empty())
    return true;
  ssize_t sent = send(connection.socket, connection.out.data(),
                      connection.out.size(), MSG_NOSIGNAL);
  if (sent < 0)
    return errno == EAGAIN;
  connection.out.erase(0, sent);
  return !connection.out.empty();
}

void HttpServer::serve(std::chrono::milliseconds pollTimeout, Handler handler,
                       int extraDescriptor) {
  bool isFull = connections.size() == maxConnections;
  std::vector<pollfd> polled{{isFull ? -1 : listener, POLLIN, 0}};
  for (const Connection &connection : connections)
    polled.push_back({connection.socket,
                      short(connection.out.empty() ? POLLIN : POLLOUT), 0});
  polled.push_back({extraDescriptor, POLLIN, 0});
  if (poll(polled.data(), polled.size(), int(pollTimeout.count())) < 0)
    return;
  auto now = std::chrono::steady_clock::now();
  const pollfd *state = polled.data() + 1;
  for (auto at = connections.begin(); at != connections.end(); ++state) {
    bool keepOpen =
        now < at->deadline && advance(*at, state->revents != 0, handler);
    if (!keepOpen)
      close(at->socket);
    at = keepOpen ? std::next(at) : connections.erase(at);
  }
  if (polled.front().revents != 0)
    accept();
}
