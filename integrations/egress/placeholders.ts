import type { IncomingHttpHeaders } from 'node:http';
import { ProxyError } from './connect.ts';
import { type Destination, parseHostPattern } from './hostPattern.ts';

/** A text that stands for a secret on a computer, and the hosts that get the value in its place. */
export interface SecretPlaceholder {
  /** The secret's, for the log. */
  name: string;
  placeholder: string;
  /** Patterns of names; without a port, 443 is meant. */
  hosts: readonly string[];
  /** Whether it is replaced in URLs too. */
  inUrl: boolean;
  /** Undefined when there is no such secret any more: then the placeholder stays. */
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
 * What these say is kept, shown or passed on by servers rather than checked: a program could read there what it must
 * not know.
 */
const notForSecrets =
  /^(host|user-agent|referer|origin|range|from|slug|date|x-http-method-override|(content|if|accept|sec|access-control)-.*|.*-meta-.*|x-.*-metadata-.*|x-amz-(tagging|copy-source.*)|x-forwarded-.*)$/;

/** Whether the value may be sent there. Only names can be meant: a certificate says who answers to a name. */
export function isFor({ hosts }: Pick<SecretPlaceholder, 'hosts'>, to: Destination): boolean {
  return hosts.some((text) => {
    const pattern = parseHostPattern(/:\d+$/.test(text) ? text : `${text}:${tlsPort}`);
    return pattern?.(to) ?? false;
  });
}

/** The request with the values in place of their placeholders. They must all be for the host that it goes to. */
export async function fillRequest(
  request: { path: string; headers: IncomingHttpHeaders },
  placeholders: readonly SecretPlaceholder[],
): Promise<FilledRequest> {
  const filled: FilledRequest = { path: request.path, headers: { ...request.headers }, used: [] };
  const basic = basicCredentials(request.headers.authorization);
  const credentials = { text: basic };
  for (const { name, placeholder, inUrl, value: open } of placeholders) {
    const isInUrl = inUrl && filled.path.includes(placeholder);
    const inHeaders = Object.entries(filled.headers).filter(
      ([header, value]) => !notForSecrets.test(header) && [value].flat().some((text) => text?.includes(placeholder)),
    );
    const isInCredentials = credentials.text?.includes(placeholder) ?? false;
    if (!isInUrl && inHeaders.length === 0 && !isInCredentials) continue;
    const value = (await open())?.replace(/\r?\n$/, '');
    if (value === undefined) continue;
    if (isInUrl) filled.path = fillPath(filled.path, placeholder, value);
    for (const [header, text] of inHeaders) {
      const asHeader = headerText(name, value);
      const put = (each: string) => each.replaceAll(placeholder, () => asHeader);
      filled.headers[header] = Array.isArray(text) ? text.map(put) : put(text ?? '');
    }
    const texts = [value, Buffer.from(value, 'utf8').toString('latin1')];
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

function basicCredentials(authorization: string | undefined): string | undefined {
  const [, encoded] = /^basic +([a-z0-9+/=_-]+) *$/i.exec(authorization ?? '') ?? [];
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8');
}

/** As UTF-8, byte for byte, which is how Node writes headers in Latin-1. */
function headerText(name: string, value: string): string {
  // RFC 9110 §5.5: a line break would begin another header.
  if (/(?!\t)\p{Cc}/u.test(value)) {
    throw new ProxyError(502, `The secret ${name} has characters that no header can have.`);
  }
  return Buffer.from(value, 'utf8').toString('latin1');
}

/** In a path, what RFC 3986 allows there stays readable: some servers compare it without decoding. */
function fillPath(path: string, placeholder: string, value: string): string {
  const inQuery = encodeURIComponent(value);
  const inPath = inQuery.replace(/%(3A|40|24|26|2B|2C|3B|3D)/g, (code) => decodeURIComponent(code));
  const [before = '', ...query] = path.split('?');
  const filled = [before.replaceAll(placeholder, () => inPath)];
  if (query.length > 0) filled.push(query.join('?').replaceAll(placeholder, () => inQuery));
  return filled.join('?');
}
