import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { findProgram } from '../../stack/context.ts';

/** An entry of a layer. Nothing about it is checked, so it may be as hostile as a test needs. */
export interface LayerEntry {
  name: string;
  kind?: keyof typeof kinds;
  content?: Buffer | string;
  /** Where a link leads. */
  target?: string;
  mode?: number;
  uid?: number;
  gid?: number;
}

/** The type flags of entries in archives (POSIX ustar). */
const kinds = { file: '0', hardlink: '1', symlink: '2', device: '3', disk: '4', folder: '5', fifo: '6' } as const;
const blockBytes = 512;
const pad = (bytes: number) => Buffer.alloc((blockBytes - (bytes % blockBytes)) % blockBytes);

/** An archive with these entries. */
export function tarOf(entries: readonly LayerEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap(partsOf), Buffer.alloc(2 * blockBytes)]);
}

function partsOf({ name, kind = 'file', content = '', target = '', mode, uid = 0, gid = 0 }: LayerEntry): Buffer[] {
  const body = Buffer.from(content);
  const header = Buffer.alloc(blockBytes);
  const put = (text: string, at: number) => header.write(text, at, 'latin1');
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  put(name, 0);
  put(octal(mode ?? (kind === 'folder' ? 0o755 : 0o644), 7), 100);
  put(octal(uid, 7), 108);
  put(octal(gid, 7), 116);
  put(octal(body.length, 11), 124);
  put(octal(1_700_000_000, 11), 136);
  put('        ', 148);
  put(kinds[kind], 156);
  put(target, 157);
  put('ustar\u000000', 257);
  put(octal(1, 7), 329);
  put(octal(3, 7), 337);
  put(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    )} `,
    148,
  );
  return [header, body, pad(body.length)];
}

const sha256 = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** An image as a registry has it. */
export interface TestImage {
  digest: string;
  manifest: Buffer;
  blobs: Map<string, Buffer>;
}

const compressions = { gzip: gzipSync, zstd: zstdCompressSync };

export const ownArchitecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

/** An image with these layers, which are archives. */
export function imageWith(
  layers: readonly Buffer[],
  config: object = {},
  {
    architecture = ownArchitecture,
    compression = 'gzip',
  }: { architecture?: string; compression?: keyof typeof compressions } = {},
): TestImage {
  const blobs = new Map<string, Buffer>();
  const add = (mediaType: string, bytes: Buffer) => {
    const digest = sha256(bytes);
    blobs.set(digest, bytes);
    return { mediaType: `application/vnd.oci.image.${mediaType}`, digest, size: bytes.length };
  };
  const rootfs = { type: 'layers', diff_ids: layers.map(sha256) };
  const said = Buffer.from(JSON.stringify({ architecture, os: 'linux', config, rootfs }));
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: add('config.v1+json', said),
      layers: layers.map((layer) => add(`layer.v1.tar+${compression}`, compressions[compression](layer))),
    }),
  );
  return { digest: sha256(manifest), manifest, blobs };
}

/** Writes the image as an OCI layout with the tag `image`, as `skopeo` reads it. */
export function writeLayout(folder: string, { digest, manifest, blobs }: TestImage): void {
  const files = join(folder, 'blobs', 'sha256');
  mkdirSync(files, { recursive: true });
  for (const [name, bytes] of [...blobs, [digest, manifest] as const]) {
    writeFileSync(join(files, name.replace('sha256:', '')), bytes);
  }
  const annotations = { 'org.opencontainers.image.ref.name': 'image' };
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifests = [{ mediaType, digest, size: manifest.length, annotations }];
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
}

const programs = ['sh', 'cat', 'chown', 'env', 'id', 'ls', 'mkdir', 'sleep', 'stat', 'touch', 'whoami'];

/** A root file system with a shell and a few programs of this machine, and the user `app`. */
export function smallRoot(): LayerEntry[] {
  const files = new Map<string, string>();
  for (const name of programs) {
    const path = findProgram(name, { PATH: '/usr/bin:/bin' }) ?? '';
    files.set(`usr/bin/${name}`, path);
    for (const [, library = ''] of execFileSync('ldd', [path])
      .toString()
      .matchAll(/(\/\S+) \(0x/g)) {
      files.set(join('usr', library.replace(/^\/usr/, '')), library);
    }
  }
  const folders = new Set(['dev', 'etc', 'home', 'opt', 'proc', 'root', 'run', 'srv', 'tmp', 'usr', 'var']);
  for (const file of files.keys()) {
    const names = file.split('/').slice(0, -1);
    for (const [index] of names.entries()) folders.add(names.slice(0, index + 1).join('/'));
  }
  return [
    ...[...folders].sort().map((name): LayerEntry => ({ name: `${name}/`, kind: 'folder' })),
    ...['bin', 'lib', 'lib64', 'sbin'].map((name): LayerEntry => ({ name, kind: 'symlink', target: `usr/${name}` })),
    ...[...files].map(([name, from]) => ({ name, mode: 0o755, content: readFileSync(realpathSync(from)) })),
    { name: 'etc/passwd', content: 'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/srv:/bin/sh\n' },
    { name: 'etc/group', content: 'root:x:0:\napp:x:1000:\n' },
  ];
}
