/** What a query of a holder may hold. Bytes are escaped as they are: a path need not be UTF-8. */
export type Query = Record<string, string | number | boolean | Uint8Array>;

const unreserved = /[A-Za-z0-9\-._~/]/;

export function encodeQuery(query: Query): string {
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeValue(value)}`);
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/** The parameters of a URL, as bytes. */
export function decodeQuery(url: string): Map<string, Buffer> {
  const start = url.indexOf('?');
  if (start < 0) return new Map();
  const pairs = url
    .slice(start + 1)
    .split('&')
    .map((pair) => {
      const end = pair.indexOf('=');
      const [name, value] = end < 0 ? [pair, ''] : [pair.slice(0, end), pair.slice(end + 1)];
      return [name, decodeValue(value)] as const;
    });
  return new Map(pairs);
}

function encodeValue(value: string | number | boolean | Uint8Array): string {
  const bytes = typeof value === 'object' ? value : Buffer.from(String(value));
  let text = '';
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    text += unreserved.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`;
  }
  return text;
}

function decodeValue(text: string): Buffer {
  const bytes = text.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}
