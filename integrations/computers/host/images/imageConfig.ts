import type { ImageConfig } from '../../types.ts';
import { HostError } from '../hostErrors.ts';

/** What images call the architecture of this machine. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** What an image may say of itself (OCI image configuration). */
interface GivenConfig {
  architecture?: unknown;
  os?: unknown;
  config?: {
    Env?: string[] | null;
    WorkingDir?: string;
    User?: string;
    Cmd?: string[] | null;
    Entrypoint?: string[] | null;
  } | null;
}

/** Reads the configuration of an image. Throws `IMAGE_UNSUPPORTED` if it is for other machines. */
export function readConfig(text: string): ImageConfig {
  const { architecture, os, config } = JSON.parse(text) as GivenConfig;
  const own = architectures[process.arch];
  if (architecture !== own || os !== 'linux') {
    throw new HostError(
      'IMAGE_UNSUPPORTED',
      `the image is for ${String(os)}/${String(architecture)}, not linux/${own}`,
    );
  }
  const starts = [config?.Entrypoint, config?.Cmd].map((words) => Array.isArray(words) && words.length > 0);
  return {
    env: textsOf(config?.Env),
    workdir: textOf(config?.WorkingDir),
    user: textOf(config?.User),
    starts: ['ENTRYPOINT', 'CMD'].filter((_, index) => starts[index]),
  };
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '');
const textsOf = (value: unknown) => (Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []);
