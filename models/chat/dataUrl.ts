/**
 * The bytes of a `data:` URL (RFC 2397, as browsers read it); undefined when it is not one, or its base64 is broken.
 * Nothing is fetched.
 */
export function readDataUrl(url: string): Buffer | undefined {
  const comma = url.indexOf(',');
  if (!/^data:/i.test(url) || comma < 0) return undefined;
  const [body = ''] = url.slice(comma + 1).split('#', 1);
  const bytes = percentDecoded(body);
  if (!/;\s*base64\s*$/i.test(url.slice(0, comma))) return bytes;
  const base64 = bytes.toString('latin1').replace(/\s/g, '');
  const isWhole = /^[A-Za-z0-9+/]*={0,2}$/.test(base64) && base64.replace(/=+$/, '').length % 4 !== 1;
  return isWhole ? Buffer.from(base64, 'base64') : undefined;
}

function percentDecoded(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8').toString('latin1');
  const decoded = bytes.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(decoded, 'latin1');
}
