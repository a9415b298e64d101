import { posix } from 'node:path';
import { DomainError } from '../../base/errors.ts';
import { type ImageName, imageNameOf, pinnedImage } from '../../base/imageNames.ts';
import { isLoadingVariable } from '../../base/loadingVariables.ts';
import type { Config } from '../../config/index.ts';
import type { EnvironmentStep } from './steps.ts';

type Settings = Pick<Config, 'environments'>;

/**
 * The image of a registry that a base names, or undefined if the base is none. Throws 422 `IMAGE_REGISTRY_NOT_ALLOWED`
 * for an image of a registry that the operator does not allow.
 */
export function imageOf(base: string, { environments }: Settings): ImageName | undefined {
  const name = imageNameOf(base);
  if (name === undefined) return undefined;
  const { registries } = environments.images;
  if (registries.includes(name.registry)) return name;
  const which = registries.length === 0 ? 'none is allowed' : `allowed are ${registries.join(', ')}`;
  const detail = `${name.registry} is not a registry that the operator allows by ATRIUM_IMAGE_REGISTRIES; ${which}`;
  throw new DomainError('unprocessable', 'IMAGE_REGISTRY_NOT_ALLOWED', `The environment has no base: ${detail}.`, {
    errors: [{ pointer: '/base', detail }],
  });
}

/** What a registry says of an image. */
export interface ResolvedImage {
  digest: string;
  config: { env: readonly string[]; workdir: string; user: string; starts: readonly string[] };
}

/** How an environment begins with an image: its name by its digest, the steps before all others, and warnings. */
export interface ImageBegin {
  image: string;
  /** Names the content, for digests. */
  origin: string;
  steps: EnvironmentStep[];
  warnings: string[];
}

const mostEnvBytes = 32_768;
const mostLetters = 500;
const longestPath = 1_024;
const userForm = /^[a-z_0-9][a-z0-9_-]{0,31}(:[a-z_0-9][a-z0-9_-]{0,31})?$/;

/** Variables, folder and user of an image become the first steps. What an environment cannot have is left out. */
export function beginWith(name: ImageName, { digest, config }: ResolvedImage): ImageBegin {
  const warnings = config.starts.map((instruction) => `The image’s ${instruction} has no meaning here.`);
  const leaveOut = (what: string) =>
    void warnings.push(`The image’s ${what}, so it is left out.`.slice(0, mostLetters));
  const env = variablesOf(config.env, leaveOut);
  const steps: EnvironmentStep[] = Object.keys(env).length === 0 ? [] : [{ env }];
  const workdir = posix.resolve('/', config.workdir);
  if (workdir.length > longestPath || !isPlain(workdir)) leaveOut('WORKDIR is no path that an environment can have');
  else if (workdir !== '/') steps.push({ workdir });
  if (userForm.test(config.user)) steps.push({ user: config.user });
  else if (config.user !== '') leaveOut(`USER ${config.user} is no name that an environment can have`);
  return { image: pinnedImage(name, digest), origin: `image ${digest}`, steps, warnings };
}

const isPlain = (text: string) => text.isWellFormed() && !/[\0\n]/.test(text);

function variablesOf(given: readonly string[], leaveOut: (what: string) => void): Record<string, string> {
  const env: Record<string, string> = {};
  let bytes = 0;
  for (const text of given) {
    const [, name = '', value = ''] = /^([A-Za-z_]\w{0,127})=(.*)$/s.exec(text) ?? [];
    if (name === '' || !value.isWellFormed() || value.includes('\0')) leaveOut('ENV has a variable of another form');
    else if (isLoadingVariable(name)) leaveOut(`ENV ${name} can make programs load other code`);
    else if (bytes + Buffer.byteLength(text) > mostEnvBytes) leaveOut(`ENV ${name} is one variable too many`);
    else {
      env[name] = value;
      bytes += Buffer.byteLength(text);
    }
  }
  return env;
}
