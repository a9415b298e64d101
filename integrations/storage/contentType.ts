import { onFirstUse } from '../onFirstUse.ts';

const loadLibrary = onFirstUse(() => import('file-type'));

/** How much of a file's beginning is used to detect its type. */
export const sampleBytes = 4_100;
const binary = 'application/octet-stream';

/** Types by extension, for files that are known to be text. */
const textTypes: Record<string, string> = {
  css: 'text/css',
  csv: 'text/csv',
  htm: 'text/html',
  html: 'text/html',
  js: 'text/javascript',
  json: 'application/json',
  jsonl: 'application/jsonl',
  md: 'text/markdown',
  mjs: 'text/javascript',
  svg: 'image/svg+xml',
  toml: 'application/toml',
  tsv: 'text/tab-separated-values',
  xhtml: 'application/xhtml+xml',
  xml: 'application/xml',
  yaml: 'application/yaml',
  yml: 'application/yaml',
};

/**
 * A file's type by its first bytes, whatever its name says: by signature, else whether it is text, and then which kind.
 * The name only distinguishes kinds of text that look the same.
 */
export async function detectContentType(sample: Buffer, fileName: string): Promise<string> {
  if (sample.length === 0) return textTypes[extensionOf(fileName)] ?? binary;
  const markup = isText(sample) ? markupOf(sample) : undefined;
  if (markup !== undefined) return markup;
  const { fileTypeFromBuffer } = await loadLibrary();
  const signature = await fileTypeFromBuffer(sample).catch(() => undefined);
  if (signature !== undefined) return signature.mime;
  return isText(sample) ? (textTypes[extensionOf(fileName)] ?? 'text/plain') : binary;
}

/** Valid UTF-8 without the control characters that text never has. The sample may end within a character. */
export function isText(sample: Buffer): boolean {
  for (const byte of sample) {
    if (byte < 0x20 && !textControls.has(byte)) return false;
  }
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(sample, { stream: true });
    return true;
  } catch {
    return false;
  }
}

const textControls = new Set([0x09, 0x0a, 0x0c, 0x0d, 0x1b]);

/** The types that a browser shows as a page, or as an image that can run scripts. */
function markupOf(sample: Buffer): string | undefined {
  const start = sample
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .replace(/^(\s|<!--[\s\S]*?-->)+/, '')
    .slice(0, 1_024);
  if (/^<(!doctype html|html|head|body|script|iframe|title|style|meta|base)\b/i.test(start)) return 'text/html';
  if (/^<svg\b/i.test(start) || (/^<[?!]/.test(start) && /<svg\b/i.test(start))) return 'image/svg+xml';
  return /^<\?xml\b/i.test(start) ? 'application/xml' : undefined;
}

function extensionOf(fileName: string): string {
  return /\.([^.]+)$/.exec(fileName)?.[1]?.toLowerCase() ?? '';
}
