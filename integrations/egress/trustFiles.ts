import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { rootCertificates } from 'node:tls';
import type { TrustPaths } from './computerEnvironment.ts';

/** Where distributions keep the authorities that they trust. */
const systemBundles = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/cert.pem'];
const folderInside = '/run/trust';

export interface TrustFiles {
  /** As computers see them. */
  paths: TrustPaths;
  /** What they are shown of the host: in place of the system's own bundle too, for programs that read no variable. */
  readOnly: { from: string; to: string }[];
}

/** Writes the authorities that computers trust: the system's, and the installation's own. */
export async function writeTrustFiles(folder: string, own: readonly string[]): Promise<TrustFiles> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o755);
  const system = await readSystemBundle();
  const ownPem = `${own.map((certificate) => certificate.trim()).join('\n')}\n`;
  await write(path.join(folder, 'own.pem'), ownPem);
  await write(path.join(folder, 'bundle.pem'), `${system?.pem.trim() ?? rootCertificates.join('\n')}\n${ownPem}`);
  const paths = { bundle: `${folderInside}/bundle.pem`, own: `${folderInside}/own.pem` };
  const readOnly = [{ from: folder, to: folderInside }];
  if (system?.file.startsWith('/etc/ssl/')) readOnly.push({ from: path.join(folder, 'bundle.pem'), to: system.file });
  return { paths, readOnly };
}

async function readSystemBundle(): Promise<{ file: string; pem: string } | undefined> {
  for (const file of systemBundles) {
    const pem = await readFile(file, 'utf8').catch(() => undefined);
    if (pem?.includes('BEGIN CERTIFICATE')) return { file, pem };
  }
  return undefined;
}

/** Whole or not at all: computers that run read it too. */
async function write(file: string, text: string): Promise<void> {
  const temporary = `${file}.new`;
  await writeFile(temporary, text, { mode: 0o644 });
  await rename(temporary, file);
}
