import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type ImageName, pinnedImage } from '../../../../base/imageNames.ts';
import { ensureHome } from '../../drivers/bubblewrap/mountPoints.ts';
import { run } from '../../spawner/spawner.ts';
import { ifThere } from '../../system/ifThere.ts';
import type { ImageConfig } from '../../types.ts';
import { makeBaseVolume, unfinishedBase } from '../baseVolumes.ts';
import { type HostContext, requireHomes } from '../context.ts';
import { HostError } from '../hostErrors.ts';
import { Lanes } from '../lanes.ts';
import { imagePrefix, imageVolume, rootIn } from '../layout.ts';
import { requireRoom } from '../life/start.ts';
import { requireSystems } from '../machine/systems.ts';
import { credentialsInside, folderInside, runConfined } from './confined.ts';
import { imageFailure } from './failures.ts';
import { readConfig } from './imageConfig.ts';
import { Pulse, pulledBytes } from './pulse.ts';
import {
  credentialsFor,
  findImagePrograms,
  type ImagePrograms,
  type RegistryOptions,
  requireAllowed,
} from './registries.ts';

const pullMs = 20 * 60_000;
const unpackMs = 12 * 60_000;
const marginMs = 10_000;
const keptMs = 7 * 24 * 3_600_000;
const inUseMs = 3_600_000;

/** The images of registries with whose files computers can begin. Each is fetched once, when a computer first needs it. */
export class Images {
  readonly #context: HostContext;
  readonly #lanes = new Lanes();
  /** When each of their volumes was last asked for. */
  readonly #used = new Map<string, number>();

  constructor(context: HostContext) {
    this.#context = context;
    // What runs of an earlier process have left.
    rmSync(context.layout.images, { recursive: true, force: true });
  }

  /** Whether this host can take images from a registry. */
  get areOffered(): boolean {
    const { registries } = this.#context.options;
    return registries !== undefined && registries.allowed.length > 0 && !('missing' in findImagePrograms());
  }

  /** Asks a registry for the digest and the settings of an image. */
  async resolve(image: string, signal?: AbortSignal): Promise<{ digest: string; config: ImageConfig }> {
    const { name, ...given } = this.#require(image);
    const timeoutMs = 2 * this.#context.deadlines.registryMs;
    const inspect = (flag: string, source: string) =>
      this.#skopeo(
        { ...given, name, signal, timeoutMs },
        { does: 'inspect', flags: ['--retry-times', '1', '--no-tags', flag], places: [`docker://${source}`] },
      );
    try {
      const manifest = await inspect('--raw', withoutTag(name));
      const digest = `sha256:${createHash('sha256').update(manifest).digest('hex')}`;
      if (name.digest !== undefined && name.digest !== digest) {
        throw new HostError('IMAGE_DAMAGED', `the registry has something else for ${name.digest}`);
      }
      requireManifest(manifest);
      return { digest, config: readConfig(await inspect('--config', pinnedImage(name, digest))) };
    } catch (error) {
      signal?.throwIfAborted();
      throw imageFailure(error);
    }
  }

  /** Makes the volume of an image, which is named by its digest, unless it is there. */
  prepare(image: string, signal?: AbortSignal): Promise<void> {
    // One at a time: each may fill the network and the disk.
    return this.#lanes.in('', async (own) => {
      requireHomes(this.#context);
      requireSystems(this.#context);
      const volume = imageVolume(this.#context.layout, image);
      this.#used.set(volume, Date.now());
      if (existsSync(volume)) return;
      const both = signal === undefined ? own : AbortSignal.any([own, signal]);
      both.throwIfAborted();
      await this.#removeOld();
      await this.#make(image, volume, both);
      this.#used.set(volume, Date.now());
    });
  }

  async #make(image: string, volume: string, signal: AbortSignal): Promise<void> {
    const { name, registries, programs } = this.#require(image);
    requireRoom(this.#context);
    const how = {
      limitMiB: registries.mostMiB,
      failed: imageFailure,
      fill: async (draft: string) => {
        await this.#pull(name, { registries, programs, draft, signal });
        await this.#unpack(programs, draft, signal);
      },
    };
    await makeBaseVolume(this.#context, volume, how, signal);
    this.#context.log('info', { image }, 'Made a root file system for computers from an image');
  }

  /** Fetches the image into a folder of the draft. */
  async #pull(
    name: ImageName,
    given: { registries: RegistryOptions; programs: ImagePrograms; draft: string; signal: AbortSignal },
  ): Promise<void> {
    const { draft, signal } = given;
    mkdirSync(packed(draft), { mode: 0o755 });
    using pulse = new Pulse(() => pulledBytes(packed(draft)), this.#context.deadlines.registryMs);
    const both = AbortSignal.any([signal, pulse.stopped]);
    await this.#skopeo(
      { ...given, name, folder: draft, signal: both, timeoutMs: pullMs },
      {
        does: 'copy',
        // umoci reads no other compression.
        flags: ['--quiet', '--retry-times', '2', '--remove-signatures', '--dest-compress-format', 'gzip'],
        places: [`docker://${withoutTag(name)}`, `oci:${folderInside}/${packedName}:${tag}`],
      },
    );
  }

  async #unpack({ umoci }: ImagePrograms, draft: string, signal: AbortSignal): Promise<void> {
    const root = rootIn(draft);
    mkdirSync(root, { mode: 0o755 });
    const from = `${folderInside}/${packedName}:${tag}`;
    const command = [umoci, 'raw', 'unpack', '--image', from, rootIn(folderInside)];
    await runConfined(this.#context, { folder: draft, command, hasNetwork: false, timeoutMs: unpackMs, signal });
    await run('rm', ['-rf', '--one-file-system', '--', packed(draft)], { timeoutMs: unpackMs, signal });
    if (!lstatSync(root).isDirectory()) throw new HostError('IMAGE_FAILED', 'the image has no root folder');
    ensureHome(root);
  }

  /** Runs skopeo. Its credentials are in a file, since all users of the host see its arguments. */
  async #skopeo(
    given: {
      name: ImageName;
      registries: RegistryOptions;
      programs: ImagePrograms;
      folder?: string;
      signal: AbortSignal | undefined;
      timeoutMs: number;
    },
    { does, flags, places }: { does: 'inspect' | 'copy'; flags: string[]; places: string[] },
  ): Promise<string> {
    const { name, registries, programs, timeoutMs } = given;
    const credentials = credentialsFor(name, registries);
    const prefix = does === 'copy' ? '--src-' : '--';
    const auth = credentials === undefined ? [`${prefix}no-creds`] : ['--authfile', credentialsInside];
    const tls = registries.insecure.includes(name.registry) ? [`${prefix}tls-verify=false`] : [];
    const command = [programs.skopeo, '--insecure-policy', does, ...auth, ...tls, ...flags, ...places];
    const late = new AbortController();
    const reason = new HostError('REGISTRY_TIMED_OUT', `the registry took longer than ${timeoutMs / 1_000} s`);
    const timer = setTimeout(() => late.abort(reason), timeoutMs);
    const signal = given.signal === undefined ? late.signal : AbortSignal.any([given.signal, late.signal]);
    const where = given.folder === undefined ? {} : { folder: given.folder };
    const most = { timeoutMs: timeoutMs + marginMs, signal };
    try {
      return await runConfined(this.#context, { ...where, command, hasNetwork: true, credentials, ...most });
    } finally {
      clearTimeout(timer);
    }
  }

  #require(image: string): { name: ImageName; registries: RegistryOptions; programs: ImagePrograms } {
    const { registries } = this.#context.options;
    const name = requireAllowed(image, registries);
    const programs = findImagePrograms();
    if ('missing' in programs) throw new HostError('IMAGES_OFF', programs.missing);
    return { name, registries: registries as RegistryOptions, programs };
  }

  /** Removes the volumes that no computer has begun with for long, and those that an earlier process left unfinished. */
  async #removeOld(): Promise<void> {
    const { layout, disks } = this.#context;
    const names = ifThere(() => readdirSync(layout.bases)) ?? [];
    for (const name of names.filter((each) => each.startsWith(imagePrefix))) {
      const volume = join(layout.bases, name);
      const made = statSync(volume, { throwIfNoEntry: false })?.ctimeMs ?? 0;
      const isOld = Date.now() - made > keptMs && Date.now() - (this.#used.get(volume) ?? 0) > inUseMs;
      if (isOld || name.endsWith(unfinishedBase(''))) await disks.remove(volume);
    }
  }
}

/** The packed image, in the volume that is made from it. */
const packedName = 'packed';
const tag = 'image';
const packed = (draft: string) => join(draft, packedName);

/** skopeo takes no name with both a tag and a digest. */
function withoutTag(name: ImageName): string {
  const { registry, repository, tag: named, digest } = name;
  return digest === undefined ? `${registry}/${repository}:${named}` : pinnedImage(name, digest);
}

/** Throws `IMAGE_UNSUPPORTED` for a manifest of Docker's first form, which says nothing reliable about the content. */
function requireManifest(text: string): void {
  const { schemaVersion } = JSON.parse(text) as { schemaVersion?: unknown };
  if (schemaVersion !== 2) throw new HostError('IMAGE_UNSUPPORTED', 'the manifest of the image has an old form');
}
