import type { Tool } from '../tool.ts';
import { gitChangeTools } from './change.ts';
import { gitLookTools } from './look.ts';
import type { GitToolDeps } from './place.ts';

/** Tools over the repositories of a turn’s space. */
export function gitTools(deps: GitToolDeps): Tool[] {
  return [...gitLookTools(deps), ...gitChangeTools(deps)];
}
