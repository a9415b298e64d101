/** RFC 9110 §7.6.1, and what is between a client and its proxy. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Tells of a lower-case name whether that header is of one connection only, and not passed on: the usual ones, and what
 * `connection`, the value of that header, names. Where a body ends stays said, whatever it names: else the rest of the
 * body would be read as the next request.
 */
export function ofOneConnection(connection = ''): (name: string) => boolean {
  const named = new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
  named.delete('content-length');
  return (name) => hopByHop.has(name) || named.has(name);
}
