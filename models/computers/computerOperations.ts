import type { Transaction } from 'sequelize';
import { type Operation, type OperationEnd, type OperationKind, operationModels } from '../operations/operation.ts';
import type { Computer } from './computer.ts';
import { detailOf } from './reasons.ts';

/** Requests on a computer that take more than one step. */
export type ComputerOperationKind = Extract<
  OperationKind,
  | 'wakeComputer'
  | 'stopComputer'
  | 'pauseComputer'
  | 'recoverComputer'
  | 'forkComputer'
  | 'restoreComputer'
  | 'deleteComputer'
>;

/** The user's running operation of this kind for the computer. Begins one if there is none. */
export async function beginComputerOperation(
  tx: Transaction,
  { id, spaceId }: Pick<Computer, 'id' | 'spaceId'>,
  kind: ComputerOperationKind,
  userId: string,
  operationId?: string,
): Promise<Operation> {
  const { Operation } = operationModels(tx);
  const known = await Operation.findOne({
    where: { subjectId: id, kind, userId, status: 'running' },
    transaction: tx,
  });
  return (
    known ?? Operation.begin({ kind, spaceId, userId, subjectId: id, ...(operationId && { id: operationId }) }, tx)
  );
}

/** Ends the running operations of these kinds for the computer. */
export async function endComputerOperations(
  tx: Transaction,
  computerId: string,
  kinds: readonly ComputerOperationKind[],
  end: OperationEnd,
): Promise<void> {
  const { Operation } = operationModels(tx);
  const waiting = await Operation.findAll({
    where: { subjectId: computerId, kind: [...kinds], status: 'running' },
    attributes: ['id'],
    transaction: tx,
  });
  for (const { id } of waiting) await Operation.end(id, end, tx);
}

/** Ends operations of these kinds as succeeded. */
export async function succeed(
  tx: Transaction,
  { id }: Pick<Computer, 'id'>,
  kinds: readonly ComputerOperationKind[],
): Promise<void> {
  await endComputerOperations(tx, id, kinds, { status: 'succeeded', result: { ok: true, id } });
}

export function failedWith(code: string, detail = detailOf(code)): OperationEnd {
  return { status: 'failed', code, detail };
}
