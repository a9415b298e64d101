import type { ChatUser } from './chat.ts';

/** Uploads a file into the user's space, or into one of their threads. */
export async function putFile(
  product: { url: string },
  user: Pick<ChatUser, 'token' | 'spaceId'>,
  path: string,
  bytes: Buffer | string,
  threadId?: string,
): Promise<{ containerId: string; path: string }> {
  const form = new FormData();
  if (threadId !== undefined) form.set('threadId', threadId);
  form.set('path', path);
  form.set('onConflict', 'replace');
  form.set('file', new Blob([new Uint8Array(Buffer.from(bytes))]), path.split('/').at(-1));
  const place = threadId === undefined ? 'drive/upload' : 'thread-files';
  const response = await fetch(`${product.url}/api/spaces/${user.spaceId}/${place}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${user.token}` },
    body: form,
  });
  if (!response.ok) throw new Error(`The upload was refused with ${response.status}: ${await response.text()}`);
  return (await response.json()) as { containerId: string; path: string };
}

/** A PDF whose pages have one line of text each. */
export function buildPdf(pages: readonly string[]): Buffer {
  const kids = pages.map((_, index) => `${4 + index * 2} 0 R`).join(' ');
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...pages.flatMap((text, index) => {
      const drawn = `BT /F1 12 Tf 72 720 Td (${text}) Tj ET`;
      const resources = '/Resources << /Font << /F1 3 0 R >> >>';
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] ${resources} /Contents ${5 + index * 2} 0 R >>`,
        `<< /Length ${drawn.length} >>\nstream\n${drawn}\nendstream`,
      ];
    }),
  ];
  let file = '%PDF-1.4\n';
  const offsets = objects.map((object, index) => {
    const offset = file.length;
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(offset).padStart(10, '0')} 00000 n \n`;
  });
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`;
  const trailer = `trailer << /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${file.length}\n%%EOF`;
  return Buffer.from(file + table + trailer, 'latin1');
}

export const onePixelPng = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** The header of a PNG of this size, without a picture. */
export function pngOf(width: number, height: number): Buffer {
  const header = Buffer.from(onePixelPng.subarray(0, 33));
  header.writeUInt32BE(width, 16);
  header.writeUInt32BE(height, 20);
  return header;
}
