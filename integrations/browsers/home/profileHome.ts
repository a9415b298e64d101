import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { DomainError } from '../../../base/errors.ts';
import type { FileContent, HostClient } from '../../computers/hostClient.ts';
import { endpointFile, profileCaches } from '../chromium.ts';
import { runScript } from './runScript.ts';

/** In the folder of a profile: the number of the session that had it last. */
const numberFile = 'atrium-number';
const missing = 66;
const tooLarge = 69;
const blockBytes = 512;

/** What Chromium makes again by itself, and what belongs to one run of it. */
const leftOut = [
  numberFile,
  endpointFile,
  '.atrium-lock',
  'Singleton*',
  'BrowserMetrics*',
  'Crash Reports',
  'Safe Browsing',
  'optimization_guide*',
  ...profileCaches,
];

// `$1` is the folder, `$2` where the archive goes, `$3` how large that may be, in blocks.
const packScript = `
umask 077
[ -d "$1" ] || exit ${missing}
rm -rf -- "$1-save"
mkdir -p -- "$1-save" || exit 1
ulimit -f "$3"
tar -C "$1" ${leftOut.map((pattern) => `--exclude='./${pattern}'`).join(' ')} -cSzf "$2" . && exit 0
if [ "$(stat -c %s -- "$2" 2>/dev/null || echo 0)" -ge $(($3 * ${blockBytes})) ]; then exit ${tooLarge}; fi
exit 1
`;

// `$1` is the folder, `$2` the archive, `$3` the number of the session that it is from. The folder is there in one step:
// what does not fit leaves nothing behind that takes the computer's room.
const unpackScript = `
umask 077
new="$1-new"
rm -rf -- "$new"
mkdir -p -- "$new" &&
tar -C "$new" --no-same-owner -xzf "$2" &&
printf %s "$3" > "$new/${numberFile}" &&
rm -rf -- "$1" &&
mv -- "$new" "$1"
code=$?
rm -rf -- "$new" "$1-open"
exit $code
`;

/** A profile as its files are in the home of a computer. `folder` is relative to that. */
export class ProfileHome {
  readonly #client: HostClient;
  readonly #folder: string;

  constructor(client: HostClient, folder: string) {
    this.#client = client;
    this.#folder = folder;
  }

  /** The number of the session that had it last here; 0 where it never was. */
  async number(): Promise<number> {
    try {
      const { size, body } = await this.#client.readFile(this.#numberPath);
      if (size > 20) {
        body.destroy();
        return 0;
      }
      const said = await text(body);
      return /^\d{1,15}$/.test(said) ? Number(said) : 0;
    } catch (error) {
      if (isMissing(error)) return 0;
      throw error;
    }
  }

  /** From now on it is a session's with this number. */
  async setNumber(number: number): Promise<void> {
    const bytes = Buffer.from(String(number));
    await this.#client.writeFile(this.#numberPath, bytes, { parents: true, mode: 0o600 });
  }

  /** Puts what was saved in its place. Throws 422 `PROFILE_BROKEN` where that cannot be unpacked. */
  async fill(bytes: AsyncIterable<Uint8Array>, number: number, signal: AbortSignal): Promise<void> {
    const archive = `${this.#folder}-open/${randomBytes(8).toString('hex')}`;
    await this.#client.writeFile(archive, bytes, { parents: true, mode: 0o600, signal });
    const code = await runScript(this.#client, unpackScript, [this.#folder, archive, String(number)], signal);
    if (code === 0) return;
    throw new DomainError(
      'unprocessable',
      'PROFILE_BROKEN',
      'The saved profile could not be unpacked on the computer.',
    );
  }

  /**
   * All of it but caches, packed. Undefined where there is nothing of it. The folder is not in use then. Throws 422
   * `PROFILE_TOO_LARGE` and `PROFILE_NOT_PACKED`.
   */
  async pack(maxBytes: number, signal: AbortSignal): Promise<FileContent | undefined> {
    const archive = `${this.#folder}-save/${randomBytes(8).toString('hex')}`;
    const blocks = String(Math.floor(maxBytes / blockBytes));
    const code = await runScript(this.#client, packScript, [this.#folder, archive, blocks], signal);
    if (code === missing) return undefined;
    if (code !== 0 && code !== tooLarge) {
      throw new DomainError('unprocessable', 'PROFILE_NOT_PACKED', 'The profile could not be packed on the computer.');
    }
    const content = code === 0 ? await this.#client.readFile(archive, { signal }) : undefined;
    if (content !== undefined && content.size <= maxBytes) return content;
    content?.body.destroy();
    throw new DomainError('unprocessable', 'PROFILE_TOO_LARGE', 'The profile is larger than one may be that is saved.');
  }

  /** Removes what packing has left. */
  async settle(): Promise<void> {
    await removeFolder(this.#client, `${this.#folder}-save`);
  }

  get #numberPath(): string {
    return `${this.#folder}/${numberFile}`;
  }
}

/** Removes a folder of the home with what is in it, if it is there. */
export async function removeFolder(client: HostClient, folder: string): Promise<void> {
  try {
    await client.deleteFile(folder, { recursive: true });
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof DomainError && error.code === 'FILE_NOT_FOUND';
}
