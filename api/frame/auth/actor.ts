import type { Request } from 'express';
import type { Actor } from '../../../models/audit/audit.ts';
import { type Caller, callerOf } from './caller.ts';

/**
 * Who makes the request, as the audit log writes it: the caller, its credential, and its address as far as proxies
 * vouch for it.
 */
export function actorOf(req: Request): Actor & { userId: string } {
  const caller = callerOf(req);
  return { userId: caller.userId, credentialId: credentialOf(caller), address: req.ip ?? null };
}

function credentialOf(caller: Caller): string {
  return caller.via === 'session' ? caller.sessionId : caller.keyId;
}
