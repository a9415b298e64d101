import { DomainError } from '../../base/errors.ts';
import type { EgressGuard, EgressOwner } from './guard.ts';
import { defaultPort } from './hostName.ts';

/** Parses an endpoint that gets notifications from Atrium; undefined unless it is an http or https URL. */
export function readEndpoint(endpoint: string): URL | undefined {
  const url = URL.parse(endpoint);
  return url !== null && /^https?:$/.test(url.protocol) ? url : undefined;
}

/**
 * Why nothing may be sent to an endpoint: the guard refuses it, or it has no TLS and is not among the operator's
 * exceptions. An unknown name is not refused, because it may become known later.
 */
export async function endpointFault(
  guard: EgressGuard,
  owner: EgressOwner,
  url: URL,
): Promise<'refused' | 'insecure' | undefined> {
  const to = { host: url.hostname, port: Number(url.port || defaultPort(url.protocol)) };
  let isException = false;
  try {
    ({ isException } = await guard.admit(to, owner));
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    if (error.code === 'EGRESS_REFUSED') return 'refused';
  }
  return url.protocol === 'https:' || isException ? undefined : 'insecure';
}
