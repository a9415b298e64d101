import type { AuditEntry } from '../../models/audit/audit.ts';
import { time } from '../frame/times.ts';
import type { components } from '../generated/types.gen.ts';

export function presentAuditEntry(entry: AuditEntry): components['schemas']['AuditEntry'] {
  const { id, action, target, userId, credentialId, address, at } = entry;
  return { id, action, target, userId, credentialId, address, at: time(at) };
}
