import { createHash } from 'node:crypto';
import { DomainError } from '../../../base/errors.ts';
import type { FileContent, FilePath, HostClient } from '../../computers/hostClient.ts';
import type { FileEntry } from '../../computers/types.ts';

/** The names that Chromium gives to unfinished downloads. */
const arriving = /\.crdownload$|^\.(org\.chromium|com\.google)\./;
const listedAtOnce = 1_000;

/** A finished download. */
export interface DownloadedFile {
  name: string;
  path: FilePath;
}

/** The folder of a session's downloads in its computer's home. Any program on the computer can put files there. */
export class DownloadsHome {
  readonly #client: HostClient;
  readonly #folder: string;

  constructor(client: HostClient, folder: string) {
    this.#client = client;
    this.#folder = folder;
  }

  /** The finished downloads among the folder's first 1,000 entries. `isAll` says whether it has no more entries. */
  async finished(): Promise<{ files: DownloadedFile[]; isAll: boolean }> {
    let entries: FileEntry[];
    let nextCursor: string | null;
    try {
      ({ entries, nextCursor } = await this.#client.listFiles(this.#folder, { limit: listedAtOnce }));
    } catch (error) {
      if (error instanceof DomainError && error.code === 'FILE_NOT_FOUND') return { files: [], isAll: true };
      throw error;
    }
    const names = new Set(entries.map(({ name }) => name));
    const files = entries
      .filter(({ name, type }) => type === 'file' && !arriving.test(name) && !names.has(`${name}.crdownload`))
      .map((entry) => ({ name: entry.name, path: this.#pathOf(entry) }));
    return { files, isAll: nextCursor === null };
  }

  /** Undefined when the file is gone or is not a regular file. */
  async open({ path }: DownloadedFile, signal: AbortSignal): Promise<FileContent | undefined> {
    try {
      return await this.#client.readFile(path, { signal });
    } catch (error) {
      if (error instanceof DomainError && ['FILE_NOT_FOUND', 'NOT_A_FILE'].includes(error.code)) return undefined;
      throw error;
    }
  }

  /** Whether the file has not changed since it was opened. A file that is gone counts as unchanged. */
  async isStill(file: DownloadedFile, { etag }: Pick<FileContent, 'etag'>, signal: AbortSignal): Promise<boolean> {
    const now = await this.open(file, signal);
    now?.body.destroy();
    return now === undefined || now.etag === etag;
  }

  async remove({ path }: DownloadedFile): Promise<void> {
    await this.#client.deleteFile(path).catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.code !== 'FILE_NOT_FOUND') throw error;
    });
  }

  #pathOf({ name, nameBytes }: FileEntry): FilePath {
    if (nameBytes === undefined) return `${this.#folder}/${name}`;
    return Buffer.concat([Buffer.from(`${this.#folder}/`), Buffer.from(nameBytes, 'base64')]);
  }
}

/** A key for one state of a file. A later download with the same name has another key. */
export function keyOf({ path }: DownloadedFile, { etag }: Pick<FileContent, 'etag'>): Buffer {
  return createHash('sha256').update(path).update('\0').update(etag).digest();
}
