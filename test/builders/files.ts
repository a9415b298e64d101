import { randomUUID } from 'node:crypto';
import { ObjectStore } from '../../integrations/storage/objectStore.ts';
import { transaction } from '../../models/database.ts';
import { driveContainerId } from '../../models/drive/containers.ts';
import { DriveObject } from '../../models/drive/driveObject.ts';
import { parsePath } from '../../models/drive/names.ts';
import { placeFile } from '../../models/drive/placeFile.ts';
import type { TestEnvironment } from '../support/environment.ts';

/** Puts a file into a space, as an upload does: its bytes into the object store, its item into the tree. */
export async function putFile(
  { config, database }: Pick<TestEnvironment, 'config' | 'database'>,
  owner: { spaceId: string; userId: string },
  path: string,
  bytes: Buffer | string,
  containerId = driveContainerId,
): Promise<{ containerId: string; path: string; itemId: string }> {
  const store = new ObjectStore(config.storage);
  try {
    const object = await DriveObject.begin(owner.spaceId);
    const names = parsePath(path);
    const fileName = names.at(-1) ?? randomUUID();
    const inspected = await store.write(object.objectKey, oneChunk(Buffer.from(bytes)), {
      fileName,
      maxBytes: 100_000_000,
      reserve: (size) => object.reserve(database, size, 0),
    });
    const content = { ...inspected, objectKey: object.objectKey };
    const target = { ...owner, containerId, names, isFolder: false, fileName, onConflict: 'replace' as const };
    const { item } = await transaction(database, (tx) =>
      placeFile(target, { content, text: inspected.text }, { keptVersions: 10, tx }),
    );
    return { containerId, path, itemId: item.id };
  } finally {
    store.close();
  }
}

async function* oneChunk(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

/** A PDF of pages with a line of text each. */
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

/** The smallest PNG: one pixel. */
export const onePixelPng = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
