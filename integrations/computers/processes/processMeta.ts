import { createHash } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import type { ProcessInfo, StartProcess } from '../types.ts';
import { readPlainFile } from './plainFiles.ts';

/** A command has at most 1 MiB, which JSON may make six times as long. */
const maxMetaBytes = 8 * 1_048_576;

/** The description of a process, which is kept beside its log. */
export interface ProcessMeta {
  info: ProcessInfo;
  /** Identifies the command, without its secrets. */
  fingerprint: string;
}

/** A hash that recognizes two requests for the same process. Variables may differ, because some are new each time. */
export function fingerprintOf({ command, cwd, pty, stdin, input }: StartProcess): string {
  const what = [command, cwd ?? null, pty !== undefined, stdin ?? '', input ?? false];
  return createHash('sha256').update(JSON.stringify(what)).digest('hex');
}

export async function readMeta(folder: string): Promise<ProcessMeta | undefined> {
  try {
    return JSON.parse(await readPlainFile(folder, 'meta.json', maxMetaBytes)) as ProcessMeta;
  } catch (error) {
    const { code, name } = error as NodeJS.ErrnoException;
    // A holder that was killed before it wrote the description has started nothing.
    if (code === 'ENOENT' || code === 'ENOTDIR' || name === 'SyntaxError') return undefined;
    throw error;
  }
}

export async function writeMeta(folder: string, meta: ProcessMeta): Promise<void> {
  const temporary = `${folder}/meta.json.new`;
  await writeFile(temporary, JSON.stringify(meta), { mode: 0o600 });
  await rename(temporary, `${folder}/meta.json`);
}
