import type { GitPhase, GitProgress } from '../types.ts';

const phases: [prefix: string, phase: GitPhase][] = [
  ['Enumerating objects', 'counting'],
  ['Counting objects', 'counting'],
  ['Compressing objects', 'counting'],
  ['Finding sources', 'counting'],
  ['Receiving objects', 'receiving'],
  ['Unpacking objects', 'receiving'],
  ['Indexing objects', 'resolving'],
  ['Resolving deltas', 'resolving'],
  ['Checking connectivity', 'resolving'],
  ['Writing objects', 'sending'],
];

/** What a line of git's says about how far it is; undefined for every other line. */
export function parseProgress(
  line: string,
): Pick<GitProgress, 'phase' | 'percent' | 'objects' | 'totalObjects'> | undefined {
  const match = /^(?:remote: )?([A-Z][a-z]+ [a-z]+): +(?:(\d{1,3})% \((\d+)\/(\d+)\)|(\d+))/.exec(line);
  const phase = phases.find(([prefix]) => prefix === match?.[1])?.[1];
  if (match === null || phase === undefined) return undefined;
  const [, , percent, objects, total, sum] = match;
  if (percent === undefined) return { phase, percent: null, objects: Number(sum), totalObjects: null };
  return { phase, percent: Math.min(100, Number(percent)), objects: Number(objects), totalObjects: Number(total) };
}
