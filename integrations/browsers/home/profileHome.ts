import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { DomainError } from '../../../base/errors.ts';
import type { FileContent, HostClient } from '../../computers/hostClient.ts';
import { type Exit, noteOf } from '../../computers/processes/records.ts';
import { endpointFile, profileCaches } from '../chromium.ts';

/** A file in the folder of a profile with the number of the session that used it last. */
const numberFile = 'atrium-number';
const missing = 66;
const tooLarge = 69;
const blockBytes = 512;
const scriptMs = 5 * 60_000;

/** Files that Chromium makes again by itself, and files of one run of it. */
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

// `$1` is the folder, `$2` the archive, `$3` the limit for the archive in blocks.
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

// `$1` is the folder, `$2` the archive, `$3` the number of the session that has saved it. The folder appears in one
// step, and a failed attempt leaves no files that take up the computer's disk.
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

/** The files of a profile in the home of a computer. `folder` is relative to the home. */
export class ProfileHome {
  readonly #client: HostClient;
  readonly #folder: string;

  constructor(client: HostClient, folder: string) {
    this.#client = client;
    this.#folder = folder;
  }

  /** The number of the session that used the profile last on this computer; 0 when none did. */
  async number(): Promise<number> {
    try {
      const { size, body } = await this.#client.readFile(this.#numberPath);
      if (size > 20) {
        body.destroy();
        return 0;
      }
      const digits = await text(body);
      return /^\d{1,15}$/.test(digits) ? Number(digits) : 0;
    } catch (error) {
      if (error instanceof DomainError && error.code === 'FILE_NOT_FOUND') return 0;
      throw error;
    }
  }

  /** Notes that the session with this number uses the profile. */
  async setNumber(number: number): Promise<void> {
    const bytes = Buffer.from(String(number));
    await this.#client.writeFile(this.#numberPath, bytes, { parents: true, mode: 0o600 });
  }

  /** Replaces the files by a saved archive. Throws 422 `PROFILE_BROKEN` when the archive cannot be unpacked. */
  async fill(bytes: AsyncIterable<Uint8Array>, number: number, signal: AbortSignal): Promise<void> {
    const archive = `${this.#folder}-open/${randomBytes(8).toString('hex')}`;
    await this.#client.writeFile(archive, bytes, { parents: true, mode: 0o600, signal });
    const code = await runScript(this.#client, unpackScript, [this.#folder, archive, String(number)], signal);
    if (code === 0) return;
    throw unfit('PROFILE_BROKEN', 'The saved profile could not be unpacked on the computer.');
  }

  /**
   * Packs all files but caches; undefined when the profile has no folder. Its Chromium must have ended. Throws 422
   * `PROFILE_TOO_LARGE` and `PROFILE_NOT_PACKED`.
   */
  async pack(maxBytes: number, signal: AbortSignal): Promise<FileContent | undefined> {
    const archive = `${this.#folder}-save/${randomBytes(8).toString('hex')}`;
    const blocks = String(Math.floor(maxBytes / blockBytes));
    const code = await runScript(this.#client, packScript, [this.#folder, archive, blocks], signal);
    if (code === missing) return undefined;
    if (code !== 0 && code !== tooLarge) {
      throw unfit('PROFILE_NOT_PACKED', 'The profile could not be packed on the computer.');
    }
    const content = code === 0 ? await this.#client.readFile(archive, { signal }) : undefined;
    if (content !== undefined && content.size <= maxBytes) return content;
    content?.body.destroy();
    throw unfit('PROFILE_TOO_LARGE', 'The profile is too large to be saved.');
  }

  /** Removes the archive that packing has left. */
  async settle(): Promise<void> {
    await this.#client.clearPath(`${this.#folder}-save`);
  }

  get #numberPath(): string {
    return `${this.#folder}/${numberFile}`;
  }
}

function unfit(code: string, detail: string): DomainError {
  return new DomainError('unprocessable', code, detail);
}

/**
 * Runs one of our shell scripts in the home of a computer, with arguments from `$1` on, and returns its exit code.
 * Throws 502 `PROFILE_WORK_ENDED` when the script was killed.
 */
async function runScript(
  { own }: HostClient,
  script: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const processId = `profile_${randomBytes(12).toString('hex')}`;
  try {
    await own.startProcess({ processId, command: ['/bin/sh', '-c', script, 'sh', ...args], timeoutMs: scriptMs });
    let code: number | null = null;
    for await (const record of own.output(processId, { follow: true, signal })) {
      if (record.kind !== 'exit') continue;
      // A script that was killed has no exit code of its own.
      const { exitCode, killedBy } = noteOf<Exit>(record);
      code = killedBy === null ? exitCode : null;
    }
    signal.throwIfAborted();
    if (code !== null) return code;
    throw new DomainError('upstream', 'PROFILE_WORK_ENDED', 'The computer has killed the work on a profile.');
  } catch (error) {
    if (signal.aborted) await own.signalProcess(processId, 'SIGKILL').catch(() => undefined);
    throw error;
  } finally {
    void own.forgetProcess(processId).catch(() => undefined); // Otherwise the host prunes it later.
  }
}
