import { DomainError } from '../../../base/errors.ts';
import { idPrefixes } from '../../../base/ids.ts';

/** Atrium starts these processes itself, under ids that can be known before. */
const reserved = [idPrefixes.run, idPrefixes.toolCall].map((prefix) => `${prefix}_`);

/** Throws 422 `PROCESS_ID_RESERVED` for an id under which a caller could pass a process off as one of Atrium's own. */
export function requireFreeId(processId: string | undefined): void {
  if (processId === undefined || !reserved.some((prefix) => processId.startsWith(prefix))) return;
  const detail = `Ids that begin with ${reserved.join(' or ')} are Atrium's own. Choose another.`;
  throw new DomainError('unprocessable', 'PROCESS_ID_RESERVED', detail);
}
