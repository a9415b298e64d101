import { DomainError } from '../../base/errors.ts';
import { reservedNames } from './reservedNames.ts';

/** Throws 422 `RESERVED_SECRET_NAME`. The contract has already checked the form of the name. */
export function assertNotReserved(name: string): void {
  const why = reservedBecause(name);
  if (why === undefined) return;
  throw new DomainError('unprocessable', 'RESERVED_SECRET_NAME', `${why} Choose another name.`, {
    errors: [{ pointer: 'name', detail: 'is reserved' }],
  });
}

export function isReservedName(name: string): boolean {
  return reservedBecause(name) !== undefined;
}

/** A sentence that says why no secret can have this name. Undefined when one can. */
export function reservedBecause(name: string): string | undefined {
  const group = reservedNames.find(
    ({ names, patterns }) => names.has(name) || patterns.some((pattern) => pattern.test(name)),
  );
  return group && `${name} ${group.why}.`;
}
