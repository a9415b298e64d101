import { z } from 'zod';

export const portsSettings = z.object({
  ATRIUM_PORTS_DOMAIN: z
    .string()
    .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'a domain in lower case, without a port')
    .default('localhost'),
});

const localNames = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Links to ports of computers. Each link has a host name of its own below the domain. */
export function portsConfig(env: z.infer<typeof portsSettings>, publicUrl: string) {
  const { protocol, port, hostname } = new URL(publicUrl);
  const domain = env.ATRIUM_PORTS_DOMAIN;
  const originOf = (label: string) => `${protocol}//${label}.${domain}${port === '' ? '' : `:${port}`}`;
  return Object.freeze({
    domain,
    isSecure: protocol === 'https:',
    /** The host of the desktops' page. No link has this name. */
    desktopHost: `desktop.${domain}`,
    desktopOrigin: originOf('desktop'),
    /** Names below `localhost` mean the browser’s own machine. */
    isReachable: domain !== 'localhost' || localNames.has(hostname),
    originOf,
  });
}
