import { z } from 'zod';
import { getFromEndpoint, wrong } from './endpoint.ts';
import type { Reach } from './tabs.ts';

const text = z.string().max(1_000);

/** What clients of the DevTools protocol ask before they connect; the address that they are given is somebody else’s to say. */
const version = z.object({
  Browser: text,
  'Protocol-Version': text,
  'User-Agent': text,
  'V8-Version': text,
  'WebKit-Version': text,
});
export type BrowserVersion = z.infer<typeof version>;

export async function readVersion({ client, endpoint, signal }: Reach): Promise<BrowserVersion> {
  const parsed = version.safeParse(await getFromEndpoint(client, endpoint, '/json/version', signal));
  if (!parsed.success) throw wrong(parsed.error);
  return parsed.data;
}
