import { DomainError } from '../../base/errors.ts';
import type { EgressGuard, EgressOwner } from './guard.ts';

/** The address at which somebody wants to be told of something by us; undefined for what is no address of the web. */
export function readEndpoint(endpoint: string): URL | undefined {
  const url = URL.parse(endpoint);
  return url !== null && /^https?:$/.test(url.protocol) ? url : undefined;
}

/**
 * Why nothing is sent there: it may not be reached, or it has no TLS and the operator has made no exception. A name that is
 * unknown now may become known later.
 */
export async function endpointFault(
  guard: EgressGuard,
  owner: EgressOwner,
  url: URL,
): Promise<'refused' | 'insecure' | undefined> {
  const isSecure = url.protocol === 'https:';
  const to = { host: url.hostname, port: Number(url.port || (isSecure ? 443 : 80)) };
  let isException = false;
  try {
    ({ isException } = await guard.admit(to, owner));
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    if (error.code === 'EGRESS_REFUSED') return 'refused';
  }
  return isSecure || isException ? undefined : 'insecure';
}
