import type { HostClient } from '../computers/hostClient.ts';
import { Desktop } from '../desktops/desktop.ts';

interface Shown {
  desktopSessionId: string | null;
  display: number | null;
  width: number;
  height: number;
}

/** Whether the X server runs on which a browser is shown; true for one that is not shown. */
export async function isDisplayAlive(client: HostClient, session: Shown): Promise<boolean> {
  const { desktopSessionId: id, display, width, height } = session;
  if (id === null || display === null) return true;
  return new Desktop(client, { id, display, width, height }).isAlive();
}
