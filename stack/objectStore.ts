import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDurablySync } from '../disk/durable.ts';
import type { StackContext } from './context.ts';
import { choosePort } from './ports.ts';
import { timed } from './report.ts';
import { type Service, startService } from './services.ts';
import { giveTo, serviceFolder, serviceUser } from './users.ts';
import { waitUntil } from './waiting.ts';

const usualPort = 7070;
const startTimeoutMs = 120_000;
const region = 'us-east-1';

interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
}

export interface ObjectStore extends Credentials {
  service: Service;
  port: number;
  address: string;
  endpoint: string;
  region: string;
}

/**
 * Serves S3 from a folder, by the program in store/. Its keys are in the environment, since every user of the machine
 * can read a command line. With `former` it reuses that port.
 */
export async function startObjectStore(
  context: StackContext,
  program: string,
  former?: Pick<ObjectStore, 'port'>,
): Promise<ObjectStore> {
  const user = serviceUser(context, 'storage');
  const folder = serviceFolder(context, 'storage', user);
  const objects = join(folder, 'objects');
  mkdirSync(objects, { recursive: true });
  giveTo(objects, user);
  const credentials = readOrMakeCredentials(context);

  return timed(context.report, { done: 'Object store started' }, async () => {
    const port = former?.port ?? (await choosePort(context.ports === 'usual' ? usualPort : undefined));
    const service = await startService(context, {
      name: 'storage',
      title: 'The object store',
      command: program,
      args: [
        ...['-address', `127.0.0.1:${port}`, '-region', region],
        // Pages upload parts of files to signed links. The signature alone is the permission, since there are no
        // cookies here.
        ...['-cors', '*'],
        ...(context.durability === 'relaxed' ? ['-relaxed'] : []),
        objects,
      ],
      cwd: folder,
      environment: {
        STORE_ACCESS_KEY_ID: credentials.accessKeyId,
        STORE_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      },
      user,
    });
    const endpoint = `http://127.0.0.1:${port}`;
    try {
      await waitUntil(() => ensureBucket(endpoint, credentials, context.bucket), {
        ...context,
        title: 'The object store',
        timeoutMs: startTimeoutMs,
        assertAlive: service.assertAlive,
      });
    } catch (error) {
      await service.stop();
      throw error;
    }
    return { service, port, address: `127.0.0.1:${port}`, endpoint, region, ...credentials };
  });
}

async function ensureBucket(endpoint: string, credentials: Credentials, bucket: string): Promise<void> {
  const { CreateBucketCommand, HeadBucketCommand, S3Client } = await import('@aws-sdk/client-s3');
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true, maxAttempts: 1 });
  try {
    await client.send(new HeadBucketCommand({ Bucket: bucket })).catch(async (error: { name?: string }) => {
      if (error.name !== 'NotFound') throw error;
      await client.send(new CreateBucketCommand({ Bucket: bucket }));
    });
  } finally {
    client.destroy();
  }
}

function readOrMakeCredentials(context: StackContext): Credentials {
  const file = join(context.dataDir, 'storage-credentials.json');
  if (!existsSync(file)) {
    const made = { accessKeyId: randomBytes(10).toString('hex'), secretAccessKey: randomBytes(24).toString('hex') };
    createDurablySync(file, JSON.stringify(made));
  }
  return JSON.parse(readFileSync(file, 'utf8')) as Credentials;
}
