import type { OperationKind } from '../../models/operations/operation.ts';
import { billingOperations } from './billing.ts';
import { chatOperations } from './chat.ts';
import { computerOperations } from './computers.ts';
import { databaseOperations } from './databases.ts';
import { driveOperations } from './drive.ts';
import { environmentOperations } from './environments.ts';
import { gitOperations } from './git.ts';
import { identityOperations } from './identity.ts';
import type { OperationDefinition } from './operation.ts';

/** Every kind of operation. An area adds its own in a file beside this one and a line here. */
const operations: Readonly<Record<OperationKind, OperationDefinition>> = {
  ...chatOperations,
  ...computerOperations,
  ...databaseOperations,
  ...driveOperations,
  ...environmentOperations,
  ...gitOperations,
  ...billingOperations,
  ...identityOperations,
};

/** Undefined for a kind that this version does not know, because a newer version wrote the row. */
export function findDefinition(kind: string): OperationDefinition | undefined {
  return Object.hasOwn(operations, kind) ? operations[kind as OperationKind] : undefined;
}

/** Whether the workflow of the subject does operations of this kind. */
export function isOfObject(kind: string): boolean {
  const definition = findDefinition(kind);
  return definition !== undefined && 'object' in definition;
}
