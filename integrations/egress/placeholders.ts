import type { IncomingHttpHeaders } from 'node:http';
import { ProxyError } from './connect.ts';
import { type Destination, parseHostPattern } from './hostPattern.ts';

/** A text that stands for a secret on a computer, and the hosts that get the value in its place. */
export interface SecretPlaceholder {
  /** The secret's name, for the log. */
  name: string;
  placeholder: string;
  /** Patterns of host names. Without a port, they mean port 443. */
  hosts: readonly string[];
  /** Whether it is replaced in URLs too. */
  inUrl: boolean;
  /** Lower-case names of headers that get the value too, beside those that are known to carry credentials. */
  headers: readonly string[];
  /** Undefined if the secret no longer exists: then the placeholder stays. */
  value(): Promise<string | undefined>;
}

export interface FilledRequest {
  path: string;
  headers: IncomingHttpHeaders;
  /** The secrets that were put in, with the texts in which a response could repeat them. */
  used: { name: string; texts: string[] }[];
}

const tlsPort = 443;
/**
 * Names of headers that carry credentials, which servers check. Other headers get no value: a server may store or show
 * them, and a program could then read the secret.
 */
const forSecrets =
  /^(authorization|cookie)$|(^|[-_.])(x|my|o|api|app|application|access|account|admin|bearer|client|consumer|csrf|dev|developer|id|job|license|login|private|project|proxy|refresh|secure|security|server|service|session|shared|signing|subscription|team|tracker|user|webhook|xsrf)*((key|token|secret|password|passwd|passphrase|auth|authorization|authentication|credentials?|jwt)+)(id)?([-_.]|$)/;
/** Headers with such a name that servers store, show, pass on or compare. */
const notForSecrets =
  /^(sec|content|if|accept|access-control|x-forwarded)-|(^|-)(meta|metadata|tag|tags|tagging)(-|$)|(^|-)(idempotency|surrogate|cache|partition|routing|sort|object|file|bucket|blob|public)-?key(-|$)|(^|-)(lock|continuation|page|next|sync|client|client-request|request)-?token(-|$)/;
/** Headers that route or frame the request are never filled. */
const ofTheRequest = /^(host|content-length|transfer-encoding|connection|upgrade|te|trailer|expect|accept-encoding)$/;

function isForSecrets(header: string, { headers }: Pick<SecretPlaceholder, 'headers'>): boolean {
  if (ofTheRequest.test(header)) return false;
  return headers.includes(header) || (forSecrets.test(header) && !notForSecrets.test(header));
}

/** Whether the value may be sent to this destination. `hosts` are names, because a certificate proves only a name. */
export function isFor({ hosts }: Pick<SecretPlaceholder, 'hosts'>, to: Destination): boolean {
  return hosts.some((text) => {
    const pattern = parseHostPattern(/:\d+$/.test(text) ? text : `${text}:${tlsPort}`);
    return pattern?.(to) ?? false;
  });
}

/** The request with the values in place of their placeholders. All placeholders must be for the request's host. */
export async function fillRequest(
  request: { path: string; headers: IncomingHttpHeaders },
  placeholders: readonly SecretPlaceholder[],
): Promise<FilledRequest> {
  const filled: FilledRequest = { path: request.path, headers: { ...request.headers }, used: [] };
  const basic = basicCredentials(request.headers.authorization);
  const credentials = { text: basic };
  for (const given of placeholders) {
    const { name, placeholder, inUrl, value: open } = given;
    const isInUrl = inUrl && filled.path.includes(placeholder);
    const inHeaders = Object.entries(filled.headers).filter(
      ([header, value]) => isForSecrets(header, given) && [value].flat().some((text) => text?.includes(placeholder)),
    );
    const isInCredentials = credentials.text?.includes(placeholder) ?? false;
    if (!isInUrl && inHeaders.length === 0 && !isInCredentials) continue;
    const value = sentAs(await open());
    if (value === undefined) continue;
    if (isInUrl) filled.path = fillPath(filled.path, placeholder, value);
    for (const [header, text] of inHeaders) {
      const asHeader = headerText(name, value);
      const put = (each: string) => each.replaceAll(placeholder, () => asHeader);
      filled.headers[header] = Array.isArray(text) ? text.map(put) : put(text ?? '');
    }
    const texts = textsOf(value);
    if (isInCredentials) credentials.text = credentials.text?.replaceAll(placeholder, () => value);
    filled.used.push({ name, texts });
  }
  if (credentials.text !== undefined && credentials.text !== basic) {
    const encoded = Buffer.from(credentials.text, 'utf8').toString('base64');
    filled.headers.authorization = `Basic ${encoded}`;
    for (const { texts } of filled.used) texts.push(encoded);
  }
  return filled;
}

/** All texts in which these secrets could come back: one connection may show a secret that another has sent. */
export async function textsToMask(placeholders: readonly SecretPlaceholder[]): Promise<string[]> {
  const values = await Promise.all(placeholders.map(async ({ value }) => sentAs(await value())));
  return values.flatMap((value) => (value === undefined ? [] : textsOf(value)));
}

/** Drops the line break at the end, which comes from writing a secret into a file. */
function sentAs(value: string | undefined): string | undefined {
  return value?.replace(/\r?\n$/, '');
}

function textsOf(value: string): string[] {
  return [value, Buffer.from(value, 'utf8').toString('latin1')];
}

function basicCredentials(authorization: string | undefined): string | undefined {
  const [, encoded] = /^basic +([a-z0-9+/=_-]+) *$/i.exec(authorization ?? '') ?? [];
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8');
}

/** The UTF-8 bytes as a Latin-1 string, because Node writes headers in Latin-1. */
function headerText(name: string, value: string): string {
  // RFC 9110 §5.5: a line break would begin another header.
  if (/(?!\t)\p{Cc}/u.test(value)) {
    throw new ProxyError(502, `The secret ${name} has characters that no header can have.`);
  }
  return Buffer.from(value, 'utf8').toString('latin1');
}

/** Characters that RFC 3986 allows in a path stay readable there: some servers compare paths without decoding them. */
function fillPath(path: string, placeholder: string, value: string): string {
  const inQuery = encodeURIComponent(value);
  const inPath = inQuery.replace(/%(3A|40|24|26|2B|2C|3B|3D)/g, (code) => decodeURIComponent(code));
  const [before = '', ...query] = path.split('?');
  const filled = [before.replaceAll(placeholder, () => inPath)];
  if (query.length > 0) filled.push(query.join('?').replaceAll(placeholder, () => inQuery));
  return filled.join('?');
}
