import { bytesUpTo } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import type { LiveComputers } from '../computers/liveComputers.ts';
import { treeMissing } from '../git/rules/failures.ts';
import type { DocumentReaders } from '../readers/documentReaders.ts';
import type { ObjectStore } from '../storage/objectStore.ts';
import type { CheckSchedule } from './componentFaults.ts';
import { type Manifest, type ManifestFault, manifestOf } from './readManifest.ts';

/** `tag` identifies a file's bytes. */
type Source =
  | { in: 'folder'; spaceId: string; objectKey: string; size: number; tag: string }
  | { in: 'computer'; spaceId: string; computerId: string; folder: string; path: string };

type Code = 'APP_MANIFEST_MISSING' | 'APP_MANIFEST_TOO_LARGE' | 'APP_MANIFEST_INVALID';

type Reading =
  | { kind: 'same' }
  | { kind: 'read'; tag: string; manifest: Manifest }
  | { kind: 'refused'; tag: string; problem: { code: Code; detail: string; faults: ManifestFault[] } };

interface Deps {
  storage: Pick<ObjectStore, 'read'>;
  documents: Pick<DocumentReaders, 'read'>;
  liveComputers: Pick<LiveComputers, 'asIs'>;
  checkSchedule: CheckSchedule;
}

const maxBytes = 65_536;
const missingTag = 'missing';

/**
 * Reads the manifests of apps in place: in the drive, or in a working tree. No computer is woken for this. Throws 409
 * `GIT_TREE_MISSING` if there is no tree, and 503 if a part is away.
 */
export function createAppManifests({ storage, documents, liveComputers, checkSchedule }: Deps) {
  return {
    async read(source: Source, knownTag: string | undefined, signal: AbortSignal): Promise<Reading> {
      const file = await open(source);
      if (file === undefined) return missing();
      try {
        if (file.tag === knownTag) return { kind: 'same' };
        if (file.size > maxBytes) return refused(file.tag, 'APP_MANIFEST_TOO_LARGE', 'A manifest has at most 64 KiB.');
        const bytes = await bytesUpTo(await file.body(), maxBytes);
        if (bytes.length > maxBytes)
          return refused(file.tag, 'APP_MANIFEST_TOO_LARGE', 'A manifest has at most 64 KiB.');
        const reading = await documents.read('yaml', bytes, { spaceId: source.spaceId, signal });
        const value = manifestOf(reading.kind === 'read' ? reading.value : { faults: [unreadable] }, checkSchedule);
        if ('manifest' in value) return { kind: 'read', tag: file.tag, manifest: value.manifest };
        return refused(file.tag, 'APP_MANIFEST_INVALID', detailOf(value.faults), value.faults);
      } finally {
        file.close();
      }
    },
  };

  async function open(source: Source) {
    if (source.in === 'folder') {
      const body = () => storage.read(source.objectKey);
      return { tag: source.tag, size: source.size, body, close: () => undefined };
    }
    try {
      const client = await liveComputers.asIs(source);
      try {
        const { etag: tag, size, body } = await client.readFile(source.path);
        return { tag, size, body: async () => body, close: () => void body.destroy() };
      } catch (error) {
        if (!isNoFile(error)) throw error;
      }
      // The manifest is missing, or the whole tree is. Then this throws.
      await client.statFile(source.folder);
      return undefined;
    } catch (error) {
      // A computer that was never used has no files yet.
      if (isNoFile(error) || codeOf(error) === 'COMPUTER_NOT_RUNNING') throw treeMissing();
      throw error;
    }
  }
}

export type AppManifests = ReturnType<typeof createAppManifests>;

function codeOf(error: unknown): string | undefined {
  return error instanceof DomainError ? error.code : undefined;
}

function isNoFile(error: unknown): boolean {
  return ['FILE_NOT_FOUND', 'NOT_A_FILE'].includes(codeOf(error) ?? '');
}

const unreadable: ManifestFault = { line: 1, column: 1, detail: 'could not be read' };

/** Names the first fault, which is often the cause of the others. */
function detailOf([first]: ManifestFault[]): string {
  if (first === undefined) return 'The manifest is wrong.';
  return `Line ${first.line} of the manifest is wrong: ${first.detail}`;
}

function missing(): Reading {
  return refused(missingTag, 'APP_MANIFEST_MISSING', 'There is no file atrium.yaml in it.');
}

function refused(tag: string, code: Code, detail: string, faults: ManifestFault[] = []): Reading {
  return { kind: 'refused', tag, problem: { code, detail, faults } };
}
