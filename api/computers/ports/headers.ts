import { ofOneConnection } from '../../../integrations/http/connectionHeaders.ts';

/**
 * The HTTP headers that pass between a browser and a program on a computer. Headers are flat lists, in which each name
 * is followed by its value.
 */

const admissionCookies = ['atrium-port', 'atrium-port-lax', '__Host-atrium-port'] as const;

/** Headers that would affect more than the link's own origin. */
const widerThanOrigin = new Set(['alt-svc', 'clear-site-data', 'nel', 'report-to', 'strict-transport-security']);

export interface ForwardedBy {
  address: string;
  protocol: 'http' | 'https';
  host: string;
  isUpgrade: boolean;
}

/**
 * A request's headers for the program: without Atrium's own credentials, and with the request's origin. All others,
 * including the app's own `Authorization`, pass.
 */
export function requestHeaders(raw: readonly string[], by: ForwardedBy): string[] {
  const passed: string[] = [];
  const isDropped = ofOneConnection(connectionOf(raw));
  let isChunked = false;
  for (const [name, value] of pairs(raw)) {
    const key = name.toLowerCase();
    if (key === 'transfer-encoding') isChunked = true;
    if (isDropped(key) || key === 'expect' || /^(forwarded$|x-forwarded-)/.test(key)) continue;
    if (key === 'authorization' && isOurs(value)) continue;
    const kept = key === 'cookie' ? withoutAdmission(value) : value;
    if (kept !== '') passed.push(name, kept);
  }
  if (isChunked) passed.push('Transfer-Encoding', 'chunked');
  if (by.isUpgrade) passed.push('Connection', 'Upgrade', 'Upgrade', 'websocket');
  else passed.push('Connection', 'close');
  passed.push('X-Forwarded-For', by.address, 'X-Forwarded-Proto', by.protocol, 'X-Forwarded-Host', by.host);
  return passed;
}

/** An answer's headers for the browser. A cookie stays on the link's own host. */
export function responseHeaders(raw: readonly string[], { isUpgrade = false } = {}): string[] {
  const passed: string[] = [];
  const isDropped = ofOneConnection(connectionOf(raw));
  for (const [name, value] of pairs(raw)) {
    const key = name.toLowerCase();
    if (isDropped(key) || widerThanOrigin.has(key)) continue;
    if (key === 'set-cookie') {
      if (!isAdmission(nameOf(value))) passed.push(name, value.replace(/;\s*domain\s*(=[^;]*)?(?=;|$)/gi, ''));
    } else passed.push(name, value);
  }
  if (isUpgrade) passed.push('Connection', 'Upgrade', 'Upgrade', 'websocket');
  return passed;
}

/** The values of our own cookies in a header. */
export function admissionsIn(cookie = ''): string[] {
  return cookie.split(';').flatMap((part) => {
    const value = part.slice(part.indexOf('=') + 1).trim();
    return isAdmission(nameOf(part)) && /^[\w-]{43}$/.test(value) ? [value] : [];
  });
}

function withoutAdmission(cookie: string): string {
  return cookie
    .split(';')
    .filter((part) => !isAdmission(nameOf(part)))
    .join(';')
    .trim();
}

function nameOf(pair: string): string {
  return (pair.split('=', 1)[0] ?? '').trim();
}

function isAdmission(name: string): boolean {
  return (admissionCookies as readonly string[]).includes(name);
}

/**
 * Whether the credential is Atrium's: an API key, or a session token by its type (models/identity/sessionTokens.ts).
 */
function isOurs(authorization: string): boolean {
  const [, token = ''] = /^bearer\s+(\S+)/i.exec(authorization) ?? [];
  if (token.startsWith('atr_')) return true;
  try {
    const header = JSON.parse(Buffer.from(token.split('.', 1)[0] ?? '', 'base64url').toString()) as { typ?: unknown };
    return header.typ === 'at+jwt';
  } catch {
    return false;
  }
}

function connectionOf(raw: readonly string[]): string {
  return pairs(raw)
    .flatMap(([name, value]) => (name.toLowerCase() === 'connection' ? [value] : []))
    .join();
}

function pairs(raw: readonly string[]): [name: string, value: string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[index * 2] ?? '', raw[index * 2 + 1] ?? '']);
}
