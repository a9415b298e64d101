import type { Tool } from '../tool.ts';
import { browserInputTools } from './input.ts';
import { browserLookTools } from './look.ts';
import { browserOpenTool } from './open.ts';
import type { BrowserToolDeps } from './place.ts';
import { browserTabsTool } from './tabs.ts';

/** Tools over the browsers of the space’s computers. */
export function browserTools(deps: BrowserToolDeps): Tool[] {
  return [browserOpenTool(deps), ...browserLookTools(deps), ...browserInputTools(deps), browserTabsTool(deps)];
}
