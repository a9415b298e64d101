import { DomainError } from '../../../base/errors.ts';
import { requireNoLoading } from '../../../base/loadingVariables.ts';
import type { EnvironmentStep } from '../steps.ts';
import { type Devcontainer, fromDevcontainer } from './devcontainer.ts';
import { fromDockerfile } from './dockerfile.ts';

/** What an environment begins with, and the steps from there. */
export interface Definition {
  /** `debian`, `agents`, or the id or the name of an environment. */
  base: string;
  steps: EnvironmentStep[];
  /** What was left out, for people. */
  warnings: string[];
}

/** A definition in one of its forms. */
export interface GivenDefinition {
  base?: string | undefined;
  steps?: EnvironmentStep[] | undefined;
  dockerfile?: string | undefined;
  devcontainer?: Devcontainer | undefined;
}

const mostSteps = 200;
const mostWarnings = 200;
const mostLetters = 500;
const mostEnvBytes = 32_768;

/** Reads a definition. `context` is the path of the folder whose files a Dockerfile copies. Throws 422. */
export function definitionOf(given: GivenDefinition, context?: string): Definition {
  const { base = 'debian', steps = [], dockerfile, devcontainer } = given;
  requireOneForm(given, context);
  const read =
    devcontainer !== undefined
      ? fromDevcontainer(devcontainer, dockerfile, { context })
      : dockerfile !== undefined
        ? fromDockerfile(dockerfile, { context })
        : { base, steps, warnings: [] };
  requireBuildable(read.steps);
  return { ...read, warnings: read.warnings.slice(0, mostWarnings).map((text) => text.slice(0, mostLetters)) };
}

function requireOneForm({ base, steps, dockerfile, devcontainer }: GivenDefinition, context: string | undefined): void {
  const isText = dockerfile !== undefined || devcontainer !== undefined;
  if (isText && (base !== undefined || steps !== undefined)) {
    throw invalid('give base and steps, or a dockerfile, or a devcontainer with or without a dockerfile');
  }
  if (context !== undefined && dockerfile === undefined) {
    throw invalid('contextFolderId is for a dockerfile, which must be given with it');
  }
}

/** Checks what the contract cannot say, or says only of steps that are given as such. */
function requireBuildable(steps: readonly EnvironmentStep[]): void {
  if (steps.length > mostSteps) throw invalid(`it has more than ${mostSteps} steps`);
  let bytes = 0;
  for (const step of steps) {
    if (textsOf(step).some((text) => !text.isWellFormed() || text.includes('\0'))) {
      throw invalid('it has characters that a command cannot have');
    }
    if (!('env' in step)) continue;
    requireNoLoading(step.env);
    for (const [name, value] of Object.entries(step.env)) bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  }
  if (bytes > mostEnvBytes) throw invalid(`its variables have more than ${mostEnvBytes} bytes together`);
}

/** All texts in a step. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

function invalid(detail: string): DomainError {
  return new DomainError('unprocessable', 'ENVIRONMENT_INVALID', `The environment cannot be built: ${detail}.`);
}
