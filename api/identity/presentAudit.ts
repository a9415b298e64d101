import type { AuditEntry } from '../../models/audit.ts';
import { time } from '../frame/times.ts';
import type { components } from '../types.gen.ts';

export function presentAuditEntry(entry: AuditEntry): components['schemas']['AuditEntry'] {
  const { id, action, target, userId, credentialId, address, at } = entry;
  return { id, action, target, userId, credentialId, address, at: time(at) };
}
