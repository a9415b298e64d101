import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findImagePrograms } from '../../integrations/computers/host/images/registries.ts';
import { findProgram } from '../../stack/context.ts';
import { canInstall, installPackages } from '../../stack/install.ts';
import { cacheDir } from './computerPrograms.ts';
import { createStackContext } from './stackContext.ts';

/** Why images cannot be tested here. Undefined if they can, or once root has installed what they need. */
export function missingForImages(): string | undefined {
  const found = findImagePrograms();
  return 'missing' in found && !canInstall({ environment: process.env }) ? found.missing : undefined;
}

export async function getImagePrograms(): Promise<void> {
  if ('missing' in findImagePrograms()) {
    await installPackages(createStackContext(), ['skopeo', 'umoci'], 'programs for images');
  }
}

/**
 * Debian's registry, or undefined where it cannot be had. It is not installed, since its package is a system service
 * too.
 */
export function getRegistryProgram(): string | undefined {
  const program = 'usr/bin/docker-registry';
  const folder = join(cacheDir, 'docker-registry');
  const known = findProgram('docker-registry', process.env);
  if (known !== undefined) return known;
  if (existsSync(join(folder, program))) return join(folder, program);
  if (!canInstall({ environment: process.env })) return undefined;
  mkdirSync(cacheDir, { recursive: true });
  const draft = mkdtempSync(join(cacheDir, 'docker-registry.'));
  try {
    execFileSync('apt-get', ['download', 'docker-registry'], { cwd: draft, stdio: 'ignore' });
    const [archive = ''] = readdirSync(draft);
    execFileSync('dpkg-deb', ['--extract', archive, 'tree'], { cwd: draft, stdio: 'ignore' });
    renameSync(join(draft, 'tree'), folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return join(folder, program);
}
