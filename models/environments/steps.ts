import { createHash } from 'node:crypto';
import { posix } from 'node:path';

/** What one step of an environment does. */
export type EnvironmentStep = WorkStep | { env: Record<string, string> };

/** A step that changes files. */
export type WorkStep =
  | { run: string }
  | { copy: { from: string; to: string; owner?: string } }
  /** The folder is made. */
  | { workdir: string }
  /** The user gets the home. For root, there is nothing to do. */
  | { user: string };

/** How a step runs, and in the end how the processes of a computer do. */
export interface Setting {
  env: Record<string, string>;
  /** Null: the home of a computer, and `/` for a step. */
  workdir: string | null;
  /** Null: root. */
  user: string | null;
}

export const noSetting: Setting = { env: {}, workdir: null, user: null };

/** A step that changes files. */
export interface Plan {
  step: WorkStep | BaseStep;
  setting: Setting;
}

/** The step before all others: makes a new root file system, which the environments of a space share. */
interface BaseStep {
  base: 'debian' | 'image';
}

export const baseStep = (base: BaseStep['base']): PlannedStep => ({ number: 0, step: { base }, setting: noSetting });

/** The same, with its place among all steps. Those of an environment count from 1. */
export type PlannedStep = Plan & { number: number };

/** The files that a step copies, by their paths below the copied folder. A single file is `./` and its name. */
export type CopiedFiles = Record<string, { objectKey: string; sha256: string }>;

/** The steps that change files, and the setting behind all steps. Paths become absolute. */
export function planOf(begin: Setting, steps: readonly EnvironmentStep[]): { work: PlannedStep[]; end: Setting } {
  const work: PlannedStep[] = [];
  let setting = begin;
  for (const [index, step] of steps.entries()) {
    const below = (path: string) => posix.resolve('/', setting.workdir ?? '/', path);
    if ('env' in step) setting = { ...setting, env: { ...setting.env, ...step.env } };
    else if (isRoot(step)) setting = { ...setting, user: null };
    else {
      const absolute = withPaths(step, below);
      if ('workdir' in absolute) setting = { ...setting, workdir: absolute.workdir };
      if ('user' in absolute) setting = { ...setting, user: absolute.user };
      work.push({ number: index + 1, step: absolute, setting });
    }
  }
  return { work, end: setting };
}

function isRoot(step: WorkStep): boolean {
  return 'user' in step && /^(root|0)(:(root|0))?$/.test(step.user);
}

function withPaths(step: WorkStep, below: (path: string) => string): WorkStep {
  if ('workdir' in step) return { workdir: below(step.workdir) };
  if (!('copy' in step)) return step;
  const { to } = step.copy;
  const isFolder = /(^|\/)\.{0,2}$/.test(to);
  return { copy: { ...step.copy, to: isFolder && below(to) !== '/' ? `${below(to)}/` : below(to) } };
}

/**
 * For each of these steps, a digest of everything that its result depends on: what it begins with, the steps before it,
 * how it runs, and the content of what it copies. `origin` names what the first one begins with.
 */
export function digestsOf(
  origin: string,
  work: readonly PlannedStep[],
  filesOf: (from: string) => CopiedFiles,
): string[] {
  let before = origin;
  return work.map(({ step, setting }) => {
    const files = 'copy' in step ? contentOf(filesOf(step.copy.from)) : null;
    const { env, workdir, user } = setting;
    const said = JSON.stringify([before, step, files, Object.entries(env).toSorted(), workdir, user]);
    before = createHash('sha256').update(said).digest('hex');
    return before;
  });
}

function contentOf(files: CopiedFiles): [string, string][] {
  return Object.entries(files)
    .map(([path, { sha256 }]): [string, string] => [path, sha256])
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
}

const longestTitle = 200;

/** The step in one line, for people. */
export function titleOf(step: WorkStep): string {
  const line = textOf(step).replace(/\s*\n[\s\S]*$/, ' …');
  return line.length > longestTitle ? `${line.slice(0, longestTitle)}…` : line;
}

/** What a Dockerfile's `ARG`s put before a command. */
const exported = /^(?:export \w+=(?:'[^']*'(?:\\''[^']*')*)\n)+(?=.)/s;

function textOf(step: WorkStep): string {
  if ('run' in step) return `run ${step.run.replace(exported, '')}`;
  if ('copy' in step) return `copy ${step.copy.from} to ${step.copy.to}`;
  return 'user' in step ? `user ${step.user}` : `workdir ${step.workdir}`;
}
