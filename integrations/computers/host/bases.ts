import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { renameDurablySync } from '../../../disk/durable.ts';
import { run } from '../spawner/spawner.ts';
import { findSystemProgram } from '../system/programs.ts';
import type { BaseName } from '../types.ts';
import { makeBaseVolume } from './baseVolumes.ts';
import { type HostContext, requireHomes } from './context.ts';
import { HostError } from './hostErrors.ts';
import { Lanes } from './lanes.ts';
import { baseVolume, rootIn } from './layout.ts';
import { requireRoom } from './life/start.ts';
import { requireSystems } from './machine/systems.ts';

export const baseNames: readonly BaseName[] = ['debian'];

const makingMs = 30 * 60_000;
const freshMs = 7 * 24 * 3_600_000;
const bytesOfBase = 1_024 * 1_048_576;

/** Packages beside the essential ones: what most steps of an environment begin with. */
const packages = ['ca-certificates', 'curl', 'git', 'less', 'procps', 'sudo', 'xz-utils'];

/** The root file systems with which computers can begin. Each is made once, when a computer first needs it. */
export class Bases {
  readonly #context: HostContext;
  readonly #lanes = new Lanes();

  constructor(context: HostContext) {
    this.#context = context;
  }

  /** Makes a base unless it is there. Throws `BASES_OFF`, `BASE_FAILED` or `DISK_FULL`. */
  prepare(base: BaseName, signal?: AbortSignal): Promise<void> {
    return this.#lanes.in(base, async (own) => {
      requireHomes(this.#context);
      requireSystems(this.#context);
      if (!existsSync(baseVolume(this.#context.layout, base))) {
        await this.#make(base, signal === undefined ? own : AbortSignal.any([own, signal]));
      }
    });
  }

  async #make(base: BaseName, signal: AbortSignal): Promise<void> {
    const { layout, log } = this.#context;
    const program = findSystemProgram('mmdebstrap');
    if (program === undefined) {
      throw new HostError('BASES_OFF', 'mmdebstrap is missing; install it (apt-get install mmdebstrap)');
    }
    requireRoom(this.#context, bytesOfBase);
    const how = {
      fill: (draft: string) => this.#unpackDebian(program, draft, signal),
      failed: (error: unknown) => new HostError('BASE_FAILED', error instanceof Error ? error.message : String(error)),
    };
    await makeBaseVolume(this.#context, baseVolume(layout, base), how, signal);
    log('info', { base }, 'Made a root file system for computers');
  }

  /**
   * Debian's stable system. It is packed first, since mmdebstrap makes devices, and the file system of the homes has
   * none.
   */
  async #unpackDebian(mmdebstrap: string, volume: string, signal: AbortSignal): Promise<void> {
    const { cacheDir } = this.#context.options;
    const root = rootIn(volume);
    mkdirSync(root, { mode: 0o755 });
    const archive = join(cacheDir ?? volume, 'debian-bookworm.tar');
    if (!isFresh(archive)) {
      if (cacheDir !== undefined) mkdirSync(cacheDir, { recursive: true });
      const draft = `${archive}.${process.pid}`;
      const how = ['--quiet', '--mode=root', '--variant=minbase', '--format=tar', `--include=${packages.join(',')}`];
      try {
        await run(mmdebstrap, [...how, 'bookworm', draft], { timeoutMs: makingMs, signal });
        renameDurablySync(draft, archive);
      } finally {
        rmSync(draft, { force: true });
      }
    }
    const how = ['--extract', '--numeric-owner', '--preserve-permissions', '--xattrs', '--xattrs-include=*'];
    const from = ['--exclude=./dev/*', '--directory', root, '--file', archive];
    try {
      await run('tar', [...how, ...from], { timeoutMs: makingMs, signal });
    } catch (error) {
      rmSync(archive, { force: true }); // it may be damaged
      throw error;
    }
    if (cacheDir === undefined) rmSync(archive);
    mkdirSync(join(root, 'home', 'user'), { recursive: true, mode: 0o755 });
  }
}

/** Whether a packed system is recent enough to have the security updates of the last days. */
function isFresh(archive: string): boolean {
  const made = statSync(archive, { throwIfNoEntry: false });
  return made !== undefined && Date.now() - made.mtimeMs < freshMs;
}
