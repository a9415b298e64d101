import type { Duplex } from 'node:stream';
import { type FileRequest, Refusal } from '../../protocol/agentRequests.ts';
import { encodeMessage, messageKind } from '../../protocol/messages.ts';
import { entryOf, listFolder } from './entries.ts';
import { deletePath, makeFolder, movePath } from './paths.ts';
import { readFileTo } from './readFile.ts';
import { writeFileFrom } from './writeFile.ts';

/**
 * Serves file requests inside the sandbox, so a link reaches only what the tenant's own programs reach. Throws
 * `Refusal`.
 */
export async function takeFileRequest(stream: Duplex, request: FileRequest): Promise<void> {
  try {
    const path = pathOf(request.path);
    if (request.kind === 'file.read') return await readFileTo(stream, path, request);
    const value = request.kind === 'file.write' ? await writeFileFrom(stream, path, request) : await act(path, request);
    stream.end(encodeMessage(messageKind.answer, value ?? {}));
    stream.resume();
  } catch (error) {
    throw refusalOf(error);
  }
}

function act(path: Buffer, request: Exclude<FileRequest, { kind: 'file.read' | 'file.write' }>): Promise<unknown> {
  switch (request.kind) {
    case 'file.stat':
      return entryOf(path);
    case 'file.list':
      return listFolder(path, request);
    case 'file.delete':
      return deletePath(path, request);
    case 'file.move':
      return movePath(path, pathOf(request.to), request);
    case 'file.folder':
      return makeFolder(path, request);
    default:
      throw new Refusal('REQUEST_UNKNOWN');
  }
}

/** A path is absolute, or relative to the home, which is the agent's working folder. */
function pathOf(base64: string): Buffer {
  const path = Buffer.from(base64, 'base64');
  if (path.length === 0 || path.length > 4_095 || path.includes(0)) throw new Refusal('PATH_INVALID');
  return path[0] === slash ? path : Buffer.concat([Buffer.from(`${process.cwd()}/`), path]);
}

const slash = 0x2f;

const codes: Record<string, string> = {
  ENOENT: 'FILE_NOT_FOUND',
  ENOTDIR: 'FILE_NOT_FOUND',
  EACCES: 'FILE_ACCESS_DENIED',
  EPERM: 'FILE_ACCESS_DENIED',
  EROFS: 'FILE_ACCESS_DENIED',
  EBUSY: 'FILE_ACCESS_DENIED',
  ELOOP: 'PATH_INVALID',
  ENAMETOOLONG: 'PATH_INVALID',
  EINVAL: 'PATH_INVALID',
  EEXIST: 'FILE_EXISTS',
  ENOTEMPTY: 'FOLDER_NOT_EMPTY',
  EISDIR: 'NOT_A_FILE',
  ENXIO: 'NOT_A_FILE',
  ENOSPC: 'DISK_FULL',
  EDQUOT: 'DISK_FULL',
  EFBIG: 'DISK_FULL',
};

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  return new Refusal(codes[(error as NodeJS.ErrnoException).code ?? ''] ?? 'FILE_FAILED');
}
