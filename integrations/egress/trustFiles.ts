import { X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { rootCertificates } from 'node:tls';
import { writeDurably } from '../../disk/durable.ts';
import type { TrustPaths } from './computerEnvironment.ts';

/** Where distributions keep the authorities that they trust. */
const systemBundles = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/cert.pem'];
const folderInside = '/run/trust';

export interface TrustFiles {
  /** The paths as computers see them. */
  paths: TrustPaths;
  /**
   * PEM of the installation's authorities, and of those that the operator added to the host's, such as a company's own.
   */
  besidePublic: readonly string[];
  /** Read-only mounts for computers. One replaces the system's own bundle, for programs that read no variable. */
  readOnly: { from: string; to: string }[];
}

/** The authorities that a system trusts, and where it keeps them. */
export interface SystemBundle {
  file: string;
  pem: string;
}

/** Writes the authorities that computers trust: the system’s, and the installation’s own. */
export async function writeTrustFiles(
  folder: string,
  own: readonly string[],
  given?: SystemBundle,
): Promise<TrustFiles> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o755);
  const system = given ?? (await readSystemBundle());
  const besidePublic = [...own, ...addedTo(system?.pem ?? '')];
  const all = `${system?.pem.trim() ?? rootCertificates.join('\n')}\n${pemOf(own)}`;
  // Each is replaced as a whole, because running computers read it.
  await writeDurably(path.join(folder, 'own.pem'), pemOf(besidePublic), { mode: 0o644 });
  await writeDurably(path.join(folder, 'bundle.pem'), all, { mode: 0o644 });
  const paths = { bundle: `${folderInside}/bundle.pem`, own: `${folderInside}/own.pem` };
  const readOnly = [{ from: folder, to: folderInside }];
  if (system?.file.startsWith('/etc/ssl/')) readOnly.push({ from: path.join(folder, 'bundle.pem'), to: system.file });
  return { paths, besidePublic, readOnly };
}

function pemOf(certificates: readonly string[]): string {
  return `${certificates.map((certificate) => certificate.trim()).join('\n')}\n`;
}

/** The certificates of a bundle that are not public. Node and Chromium bring the public ones along. */
function addedTo(bundle: string): string[] {
  const known = new Set(rootCertificates.map(fingerprintOf));
  const all = bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return all.filter((pem) => {
    const fingerprint = fingerprintOf(pem);
    return fingerprint !== undefined && !known.has(fingerprint);
  });
}

/** Undefined if OpenSSL cannot read the certificate. */
function fingerprintOf(pem: string): string | undefined {
  try {
    return new X509Certificate(pem).fingerprint256;
  } catch {
    return undefined;
  }
}

async function readSystemBundle(): Promise<SystemBundle | undefined> {
  for (const file of systemBundles) {
    const pem = await readFile(file, 'utf8').catch(() => undefined);
    if (pem?.includes('BEGIN CERTIFICATE')) return { file, pem };
  }
  return undefined;
}
