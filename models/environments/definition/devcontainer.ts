import { DomainError } from '../../../base/errors.ts';
import type { EnvironmentStep } from '../steps.ts';
import type { Definition } from './definition.ts';
import { baseOf, type DockerfileOptions, fromDockerfile } from './dockerfile.ts';
import { commandOf } from './words.ts';

type Command = string | string[] | Record<string, string | string[]>;

/** The parts of a `devcontainer.json` that are read. */
export interface Devcontainer {
  image?: string;
  build?: { args?: Record<string, string> };
  containerEnv?: Record<string, string>;
  remoteUser?: string;
  onCreateCommand?: Command;
  updateContentCommand?: Command;
  postCreateCommand?: Command;
  [other: string]: unknown;
}

const commands = ['onCreateCommand', 'updateContentCommand', 'postCreateCommand'] as const;
const known = new Set<string>([
  '$schema',
  'name',
  'image',
  'build',
  'containerEnv',
  'features',
  'remoteUser',
  ...commands,
]);

/**
 * An environment that a `devcontainer.json` describes. Its commands run once, when the environment is built. Throws 422
 * `DEVCONTAINER_INVALID`, `DEVCONTAINER_FEATURES_REFUSED` or `DOCKERFILE_INVALID`.
 */
export function fromDevcontainer(
  devcontainer: Devcontainer,
  dockerfile: string | undefined,
  options: Pick<DockerfileOptions, 'context'> = {},
): Definition {
  const { features, build, containerEnv, remoteUser } = devcontainer;
  if (typeof features === 'object' && features !== null && Object.keys(features).length > 0) {
    const detail = 'Features of devcontainers are not supported. Install what they have by steps.';
    throw new DomainError('unprocessable', 'DEVCONTAINER_FEATURES_REFUSED', detail, {
      errors: [{ pointer: '/devcontainer/features', detail: 'are not supported' }],
    });
  }
  const { base, steps: first, warnings } = beginOf(devcontainer, dockerfile, { ...options, args: build?.args });
  const steps: EnvironmentStep[] = [...first];
  if (containerEnv !== undefined) {
    for (const [name, value] of Object.entries(containerEnv)) {
      if (value.includes('${')) throw invalid(`/containerEnv/${name}`, 'variables of editors are not known here');
    }
    steps.push({ env: containerEnv });
  }
  if (remoteUser !== undefined) steps.push(...userSteps(remoteUser));
  for (const name of commands) steps.push(...runsOf(name, devcontainer[name]));
  const ignored = Object.keys(devcontainer).filter((name) => !known.has(name));
  return { base, steps, warnings: [...warnings, ...ignored.map((name) => `${name} has no meaning here.`)] };
}

/** Images for editors have such a user already. */
function userSteps(name: string): EnvironmentStep[] {
  const isPlain = /^[a-z_][a-z0-9_-]*$/.test(name) && name !== 'root';
  const make = { run: `id -u ${name} > /dev/null 2>&1 || useradd --create-home --shell /bin/bash ${name}` };
  return [...(isPlain ? [make] : []), { user: name }];
}

function beginOf(
  { image, build }: Devcontainer,
  dockerfile: string | undefined,
  options: DockerfileOptions,
): Definition {
  if (dockerfile !== undefined) return fromDockerfile(dockerfile, options);
  if (build !== undefined) throw invalid('/build', 'give the text of its Dockerfile as dockerfile');
  if (image === undefined) throw invalid('/image', 'is missing');
  return { base: baseOf(image), steps: [], warnings: [] };
}

/** The commands of an object run side by side in an editor, and one after the other here. */
function runsOf(name: string, command: unknown): EnvironmentStep[] {
  if (command === undefined) return [];
  const all =
    typeof command === 'object' && command !== null && !Array.isArray(command) ? Object.values(command) : [command];
  return all.map((each: unknown) => {
    if (typeof each === 'string' && each !== '') return { run: each };
    if (Array.isArray(each) && each.length > 0 && each.every((word) => typeof word === 'string')) {
      return { run: commandOf(each) };
    }
    throw invalid(`/${name}`, 'is not a command');
  });
}

function invalid(pointer: string, detail: string): DomainError {
  const text = `The devcontainer cannot be built: ${pointer.slice(1)} ${detail}.`;
  return new DomainError('unprocessable', 'DEVCONTAINER_INVALID', text, {
    errors: [{ pointer: `/devcontainer${pointer}`, detail }],
  });
}
