import type { Request } from 'express';
import type { Actor } from '../../../models/audit/audit.ts';
import { type Caller, callerOf } from './caller.ts';

/** The request's actor for the audit log: the user, the credential, and the address as trusted proxies report it. */
export function actorOf(req: Request): Actor & { userId: string } {
  const caller = callerOf(req);
  return { userId: caller.userId, credentialId: credentialOf(caller), address: req.ip ?? null };
}

function credentialOf(caller: Caller): string {
  return caller.via === 'session' ? caller.sessionId : caller.keyId;
}
