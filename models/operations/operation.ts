import { DataTypes, Model, type Sequelize, type Transaction } from 'sequelize';
import { idBound, newId } from '../../base/ids.ts';
import { jsonText } from '../../base/text.ts';
import { deleteInBatches } from '../database/batches.ts';
import { modelsOf } from '../database/bound.ts';
import type { Database } from '../database/database.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';

/**
 * The kinds of operations; temporal/operations/ says what each one does. The names are stored in rows and in workflow
 * ids.
 */
export type OperationKind =
  | 'deleteThread'
  | 'deleteSpace'
  | 'purgeItem'
  | 'emptyTrash'
  | 'completeUpload'
  | 'wakeComputer'
  | 'stopComputer'
  | 'pauseComputer'
  | 'recoverComputer'
  | 'forkComputer'
  | 'snapshotComputer'
  | 'restoreComputer'
  | 'deleteComputer'
  | 'buildEnvironment'
  | 'cloneRepository'
  | 'retryClone'
  | 'fillRepository'
  | 'createBranch'
  | 'commitChanges'
  | 'checkoutBranch'
  | 'pushRepository'
  | 'pullRepository'
  | 'createDraft'
  | 'saveDraft'
  | 'commitDraft'
  | 'mergeDraft'
  | 'discardDraft'
  | 'setUpBilling'
  | 'topUp'
  | 'autoTopUp'
  | 'createDatabase'
  | 'deleteDatabase'
  | 'restoreDatabase'
  | 'purgeDatabase'
  | 'rotateDatabase'
  | 'compactDatabase'
  | 'connectApp'
  | 'disconnectApp';

export type OperationStatus = 'running' | 'succeeded' | 'failed' | 'cancelled';

export type OperationEnd =
  | { status: 'succeeded'; result?: Record<string, unknown> }
  | { status: 'failed'; code: string; detail: string }
  | { status: 'cancelled' };

/**
 * A request of several steps: the intent that a workflow fulfils, and the answer, which outlives Temporal's retention.
 * `kind` says what to do and `subjectId` with which object. If the object has no workflow of its own, `kind` and `id`
 * name the operation's workflow.
 */
export type Operation = InstanceType<ReturnType<typeof defineOperation>>;

function defineOperation(sequelize: Sequelize) {
  class Operation extends Model {
    declare id: string;
    declare kind: string;
    declare spaceId: string | null;
    declare userId: string;
    declare subjectId: string;
    declare status: OperationStatus;
    declare result: Record<string, unknown> | null;
    declare errorCode: string | null;
    declare errorDetail: string | null;
    declare cancelRequestedAt: Date | null;
    declare createdAt: Date;
    declare endedAt: Date | null;

    /** Writes the intent. The caller's transaction also changes the subject. */
    static async begin(
      fields: { kind: OperationKind; spaceId: string | null; userId: string; subjectId: string; id?: string },
      tx?: Transaction,
    ): Promise<Operation> {
      const { id = newId('operation'), ...rest } = fields;
      return Operation.create({ ...rest, id, status: 'running', createdAt: new Date() }, { transaction: tx });
    }

    /** Ends the operation. False if it had ended before. */
    static async end(id: string, end: OperationEnd, tx: Transaction): Promise<boolean> {
      const operation = await Operation.findOne({
        where: { id, status: 'running' },
        transaction: tx,
        lock: tx.LOCK.UPDATE,
      });
      if (operation === null) return false;
      await operation.update(
        {
          status: end.status,
          endedAt: new Date(),
          result: end.status === 'succeeded' ? (end.result ?? {}) : null,
          errorCode: end.status === 'failed' ? end.code : null,
          errorDetail: end.status === 'failed' ? end.detail : null,
        },
        { transaction: tx },
      );
      return true;
    }
  }

  Operation.init(
    {
      id: { type: DataTypes.STRING(40), primaryKey: true },
      kind: DataTypes.STRING(60),
      spaceId: DataTypes.STRING(40),
      userId: DataTypes.STRING(40),
      subjectId: DataTypes.STRING(40),
      status: DataTypes.STRING(20),
      result: jsonText('result'),
      errorCode: DataTypes.STRING(80),
      errorDetail: DataTypes.STRING(500),
      cancelRequestedAt: DataTypes.DATE(3),
      createdAt: DataTypes.DATE(3),
      endedAt: DataTypes.DATE(3),
    },
    { sequelize, tableName: 'operations', timestamps: false, underscored: true },
  );
  return Operation;
}

export const operationModels = modelsOf((sequelize) => ({ Operation: defineOperation(sequelize) }));

/** Removes operations that were begun before `before` and have ended. */
export function purgeOldOperations(database: Database, before: Date, onBatch: () => void): Promise<number> {
  const statement = "DELETE FROM operations WHERE id < ? AND status <> 'running' ORDER BY id LIMIT ?";
  return deleteInBatches(database, statement, [idBound('operation', before)], onBatch);
}

/** The columns of an operation that the sweep needs. */
export type UnendedOperation = Waiting &
  Pick<Operation, 'kind' | 'spaceId' | 'userId' | 'subjectId' | 'cancelRequestedAt'>;

export const unendedOperations = waitingIn<UnendedOperation>({
  table: 'operations',
  index: 'operations_sweep',
  columns: ['kind', 'space_id', 'user_id', 'subject_id', 'cancel_requested_at'],
  where: "status = 'running'",
  time: 'created_at',
});
