import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { keyFileNames } from '../../backup/make/keysPart.ts';
import type { LaunchConfig } from '../../config/launch.ts';

/** The first file of a present or former installation on this machine. Undefined where everything is empty. */
export function findInstallation({ dataDir, computersDir }: Pick<LaunchConfig, 'dataDir' | 'computersDir'>) {
  const services = join(dataDir, 'services');
  return [
    ...keyFileNames.map((name) => join(dataDir, name)),
    ...(existsSync(services) ? readdirSync(services).map((name) => join(services, name)) : []),
    join(computersDir, '.host.json'),
  ].find((path) => existsSync(path));
}
