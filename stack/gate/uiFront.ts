import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';

export interface UiFrontOptions {
  /** Part of the printed link. Anyone who has the key can see and do everything that we can. */
  key: string;
  /** The front's own address. */
  port: number;
  upstream: { host: string; port: number };
}

/** Headers of one connection. A proxy does not pass them on (RFC 9110 §7.6.1). */
const hopHeaders = ['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'];

export function uiLink(port: number, key: string): string {
  return `http://127.0.0.1:${port}/?key=${key}`;
}

/**
 * Guards the Temporal UI, which has no authentication. It answers only under its own host name, against DNS rebinding.
 * It lets in only a browser that has opened the link with the key. It serves only its own pages, since browsers send a
 * cookie to every port of a host.
 */
export function createUiFront(options: UiFrontOptions): Server {
  const { key, port, upstream } = options;
  const hosts = new Set([`127.0.0.1:${port}`, `localhost:${port}`]);
  const cookieName = `atrium_temporal_ui_${port}`;
  const cookie = createHmac('sha256', key).update('cookie').digest('base64url');

  return createServer({ requestTimeout: 60_000 }, (req, res) => {
    const { host = '', origin, cookie: cookies = '' } = req.headers;
    if (!hosts.has(host)) return refuse(res, 421, 'This address has another name.');
    const given = keyOf(req.url);
    if (given !== undefined) {
      if (!isSame(given, key)) return refuse(res, 401, 'This link is of an earlier start.');
      return letIn(res, `${cookieName}=${cookie}; HttpOnly; SameSite=Strict; Path=/`);
    }
    const site = req.headers['sec-fetch-site'] ?? 'none';
    const isOwn = site === 'same-origin' || site === 'none';
    if (!isOwn || (origin !== undefined && origin !== `http://${host}`)) {
      return refuse(res, 403, 'Another site’s page may not ask this.');
    }
    const pairs = cookies.split(/; */);
    const own = pairs.find((pair) => pair.startsWith(`${cookieName}=`));
    if (own === undefined || !isSame(own.slice(cookieName.length + 1), cookie)) {
      return refuse(res, 401, 'Open it by its link.');
    }
    forward(req, res, upstream, pairs.filter((pair) => pair !== own).join('; '));
  });
}

function keyOf(url = '/'): string | undefined {
  return url.startsWith('/?') ? (new URLSearchParams(url.slice(2)).get('key') ?? undefined) : undefined;
}

function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

const plainHeaders = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' };

function refuse(res: ServerResponse, status: number, reason: string): void {
  const advice = '"npm start" prints the link to the Temporal UI, and so does "npm run -s atrium -- status".';
  res.writeHead(status, { ...plainHeaders, connection: 'close' }).end(`${reason}\n${advice}\n`);
}

/**
 * Sends a page instead of a redirect: after a link from another site, a redirect would not carry a SameSite=Strict
 * cookie.
 */
function letIn(res: ServerResponse, cookie: string): void {
  res
    .writeHead(200, { ...plainHeaders, 'set-cookie': cookie, 'referrer-policy': 'no-referrer', refresh: '0; url=/' })
    .end('Opening the Temporal UI …\n');
}

function forward(
  req: IncomingMessage,
  res: ServerResponse,
  upstream: UiFrontOptions['upstream'],
  cookies: string,
): void {
  const { cookie: _ours, ...rest } = without(req.headers, hopHeaders);
  const headers = { ...rest, ...(cookies !== '' && { cookie: cookies }) };
  const call = request({ ...upstream, method: req.method, path: req.url, headers }, (answer) => {
    res.writeHead(answer.statusCode ?? 502, without(answer.headers, hopHeaders));
    answer.pipe(res);
    answer.once('error', () => res.destroy());
  });
  call.once('error', () => (res.headersSent ? res.destroy() : refuse(res, 502, 'The Temporal UI does not answer.')));
  res.once('close', () => call.destroy());
  req.pipe(call);
}

function without<T extends object>(headers: T, names: string[]): Partial<T> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name))) as Partial<T>;
}
