import { readFileSync } from 'node:fs';
import { type ImageName, imageNameOf } from '../../../../base/imageNames.ts';
import { findSystemProgram } from '../../system/programs.ts';
import { HostError } from '../hostErrors.ts';

/** The registries that an operator allows. */
export interface RegistryOptions {
  /** By host and port. */
  allowed: readonly string[];
  /** Those that may be used over plain HTTP, or with a certificate that is not verified. */
  insecure: readonly string[];
  /** A file with credentials, in the form of Docker's config.json. */
  authFile?: string | undefined;
  /** The most that an image may have, packed and unpacked together. */
  mostMiB: number;
}

export interface ImagePrograms {
  skopeo: string;
  umoci: string;
}

/** Finds the programs that images need, or says what is missing. */
export function findImagePrograms(): ImagePrograms | { missing: string } {
  const [skopeo, umoci] = ['skopeo', 'umoci'].map(findSystemProgram);
  if (skopeo !== undefined && umoci !== undefined) return { skopeo, umoci };
  const names = [...(skopeo === undefined ? ['skopeo'] : []), ...(umoci === undefined ? ['umoci'] : [])];
  return {
    missing: `${names.join(' and ')} missing; install it (Debian and Ubuntu: apt-get install ${names.join(' ')})`,
  };
}

/** Reads the name of an image. Throws `IMAGES_OFF` unless this host may take it from its registry. */
export function requireAllowed(image: string, registries: RegistryOptions | undefined): ImageName {
  const name = imageNameOf(image);
  if (name !== undefined && registries?.allowed.includes(name.registry)) return name;
  throw new HostError('IMAGES_OFF', `this host takes no images from ${name?.registry ?? image}`);
}

interface AuthFile {
  auths?: Record<string, { auth?: string; username?: string; password?: string; identitytoken?: string }>;
}

/** Names under which Docker stores the credentials of a registry. */
const storedAs = ({ registry }: ImageName) =>
  registry === 'docker.io'
    ? ['docker.io', 'https://index.docker.io/v1/', 'index.docker.io']
    : [registry, `https://${registry}`, `http://${registry}`];

/** The credentials for one registry, as a file of that form, or undefined if there are none. Throws `IMAGES_OFF`. */
export function credentialsFor(name: ImageName, { authFile }: RegistryOptions): string | undefined {
  if (authFile === undefined) return undefined;
  const { auths = {} } = readAuthFile(authFile);
  const found = storedAs(name).flatMap((key) => auths[key] ?? [])[0];
  return found && JSON.stringify({ auths: { [name.registry]: found } });
}

function readAuthFile(path: string): AuthFile {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as AuthFile;
  } catch (error) {
    // The message of a JSON error has a part of the file.
    const reason = error instanceof SyntaxError ? 'it is not JSON' : (error as Error).message;
    throw new HostError('IMAGES_OFF', `the file of ATRIUM_IMAGE_REGISTRY_AUTH_FILE cannot be read: ${reason}`);
  }
}
