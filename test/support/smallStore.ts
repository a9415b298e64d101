import { execFileSync, spawnSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { loadLaunchConfig } from '../../config/launch.ts';
import { choosePort } from '../../stack/ports.ts';
import { getObjectStore } from '../../stack/programs.ts';
import { tied } from '../../stack/tied.ts';
import { temporaryFolder } from './folders.ts';
import { start } from './processes.ts';
import { createStackContext } from './stackContext.ts';
import { waitFor } from './waitFor.ts';

/** An object store that can run out of room. */
export interface SmallStore {
  /** The variables of config/ with its address. */
  environment: Record<string, string>;
  /**
   * Leaves room for nothing, for one part of a 20 MiB file, or for all its parts but not also for the assembled file.
   */
  fill(room: Room): void;
  makeRoom(): void;
  stop(): Promise<void>;
}

export type Room = 'none' | 'aPart' | 'theParts';
/** A full disk or, on machines that cannot make one, a process whose files may not grow. */
export type Shortage = 'full disk' | 'limited process';

const mebibyte = 1_048_576;
const diskBytes = 96 * mebibyte;
const free = {
  'full disk': { none: 0, aPart: 12 * mebibyte, theParts: 30 * mebibyte },
  /** Limits for each file. */
  'limited process': { none: 0, aPart: 1 * mebibyte, theParts: 12 * mebibyte },
};
const ownNamespaces = ['unshare', '--user', '--map-root-user', '--mount'] as const;
/** Makes a private in-memory disk, and runs a command line on it. */
const onSmallDisk = ['sh', '-c', `mount -t tmpfs -o size=${diskBytes} none "$0" && exec "$@"`] as const;

/**
 * A full disk if this machine can make one. Not every kernel lets users mount, or supports file attributes in memory
 * (since 6.6). `ATRIUM_TEST_SHORTAGE` overrides.
 */
export function shortageHere(): Shortage {
  const { ATRIUM_TEST_SHORTAGE: wanted } = process.env;
  if (wanted === 'full disk' || wanted === 'limited process') return wanted;
  const [command, ...args] = [...ownNamespaces, ...onSmallDisk, '/mnt', 'true'];
  const [major = 0, minor = 0] = release().split('.').map(Number);
  const isNewEnough = major > 6 || (major === 6 && minor >= 6);
  return isNewEnough && spawnSync(command, args).status === 0 ? 'full disk' : 'limited process';
}

export async function startSmallStore(shortage: Shortage): Promise<SmallStore> {
  const { cacheDir } = loadLaunchConfig(process.env);
  const program = await getObjectStore(createStackContext({ cacheDir }));
  const folder = temporaryFolder();
  const port = await choosePort();
  const store = [program, '-address', `127.0.0.1:${port}`, folder];
  const isDisk = shortage === 'full disk';
  const [command, ...args] = isDisk
    ? [...ownNamespaces, ...tied(process.env, [...onSmallDisk, folder, ...store])]
    : tied(process.env, store);
  const credentials = { accessKeyId: 'small', secretAccessKey: 'small-store' };
  const running = start(command, args, {
    env: {
      ...process.env,
      STORE_ACCESS_KEY_ID: credentials.accessKeyId,
      STORE_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    },
  });
  const endpoint = `http://127.0.0.1:${port}`;
  const client = new S3Client({ endpoint, region: 'us-east-1', credentials, forcePathStyle: true, maxAttempts: 1 });
  await waitFor('the object store to answer', async () => {
    if (running.child.exitCode !== null) throw new Error(`The store ended:\n${running.output()}`);
    return client.send(new CreateBucketCommand({ Bucket: 'first' })).catch(() => undefined);
  });
  client.destroy();

  // The disk is visible only in the process's own mount namespace.
  const filler = join('/proc', `${running.pid}`, 'root', folder, 'filler');
  const limitFiles = (bytes: number | 'unlimited') =>
    execFileSync('prlimit', ['--pid', `${running.pid}`, `--fsize=${bytes}:unlimited`]);
  const smallStore: SmallStore = {
    environment: {
      ATRIUM_S3_ENDPOINT: endpoint,
      ATRIUM_S3_REGION: 'us-east-1',
      ATRIUM_S3_ACCESS_KEY_ID: credentials.accessKeyId,
      ATRIUM_S3_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    },
    fill(room) {
      smallStore.makeRoom();
      if (!isDisk) return void limitFiles(free[shortage][room]);
      const { bavail, bsize } = statfsSync(join(filler, '..'));
      writeFileSync(filler, Buffer.alloc(bavail * bsize - free[shortage][room]));
    },
    makeRoom() {
      if (isDisk) rmSync(filler, { force: true });
      else limitFiles('unlimited');
    },
    async stop() {
      running.child.kill('SIGTERM');
      await running.exited;
    },
  };
  return smallStore;
}
