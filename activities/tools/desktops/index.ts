import type { Tool } from '../tool.ts';
import { desktopInputTools } from './input.ts';
import { desktopLookTools } from './look.ts';
import type { DesktopToolDeps } from './place.ts';

/** Tools over the desktops of the space’s computers. */
export function desktopTools(deps: DesktopToolDeps): Tool[] {
  return [...desktopLookTools(deps), ...desktopInputTools(deps)];
}
