import { col, DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { execute } from '../database/sql.ts';
import { holdEnd } from './callHolds.ts';
import type { FinishReason, Usage } from './turnLog/chunks.ts';

/**
 * Model calls beside the turn's steps: summaries that make room, and the thread's title. They get step numbers from
 * here on, so that they are metered like steps. The title does not count towards the turn's usage.
 */
const firstSummaryStep = 1_000_000;
export const titleStep = 2_000_000;

/** Whether the call is a summary or a title, not one of the turn's steps. */
export function isAside(step: number): boolean {
  return step >= firstSummaryStep;
}

/** The step number of a turn's summary; `index` counts from 0. */
export function summaryStep(index: number): number {
  return firstSummaryStep + index;
}

/** Codes for an answer that ended because there were no more credits. */
const outOfCredits = ['CREDITS_EXHAUSTED', 'SPENDING_CAP_REACHED'] as const;
export type OutOfCredits = (typeof outOfCredits)[number];

export function isOutOfCredits(code: unknown): code is OutOfCredits {
  return (outOfCredits as readonly unknown[]).includes(code);
}

/** The attempt that begins, and the state that earlier attempts left. */
export type BegunCall = Pick<ModelCall, 'attempts' | 'status' | 'firstSeq' | 'cuts' | 'failedAttempt'>;

/** The model call of one step of a turn. It is one row however often it was tried, so its usage counts once. */
export type ModelCall = InstanceType<ReturnType<typeof defineModelCall>>;

export function defineModelCall(sequelize: Sequelize) {
  class ModelCall extends Model {
    declare turnId: string;
    declare step: number;
    declare attempts: number;
    /** How many attempts were cut off after the model began to speak. */
    declare cuts: number;
    /** The number of the last attempt that failed by itself. */
    declare failedAttempt: number;
    /** The step's first chunk in the log. Output of earlier attempts begins here. */
    declare firstSeq: number;
    declare modelId: string;
    declare status: 'started' | 'completed' | 'stopped';
    /** The provider's finish reason, or the code of what ended the call. */
    declare finishReason: FinishReason | OutOfCredits | null;
    declare inputTokens: number;
    declare cachedInputTokens: number;
    declare outputTokens: number;
    declare reasoningTokens: number;
    declare startedAt: Date;
    declare endedAt: Date | null;
    /** The result of the turn's head start, left for the process that takes the step over. */
    declare leftAs: object | null;

    /**
     * Records that an attempt begins. Returns its number, and where in the log the first attempt began. With `holdMs`
     * the attempt is a head start: it runs outside an activity, where Temporal does not watch over it, so the row keeps
     * other processes from the step.
     */
    static async begin(
      tx: Transaction,
      call: Pick<ModelCall, 'turnId' | 'step' | 'modelId' | 'firstSeq'> & { holdMs?: number },
    ): Promise<BegunCall> {
      const { turnId, step, modelId, firstSeq, holdMs } = call;
      const inserted = await execute(
        tx,
        `INSERT INTO model_calls (turn_id, step, attempts, first_seq, model_id, status, started_at, held_until)
          VALUES (?, ?, 1, ?, ?, 'started', ?, ${holdMs === undefined ? 'NULL' : holdEnd})
          ON DUPLICATE KEY UPDATE attempts = attempts + 1, model_id = VALUES(model_id), held_until = VALUES(held_until),
            left_as = NULL`,
        [turnId, step, firstSeq, modelId, new Date(), ...(holdMs === undefined ? [] : [holdMs])],
      );
      // MySQL counts an insert as one row, and an update in its place as two.
      if (inserted.affectedRows === 1) return { attempts: 1, status: 'started', firstSeq, cuts: 0, failedAttempt: 0 };
      return ModelCall.findOne({ where: { turnId, step }, transaction: tx, rejectOnEmpty: true });
    }

    /** Records that the earlier attempt was cut off while the model spoke. */
    static async noteCut(tx: Transaction, { turnId, step }: Pick<ModelCall, 'turnId' | 'step'>): Promise<void> {
      await ModelCall.increment('cuts', { where: { turnId, step }, transaction: tx });
    }

    /** Records that an attempt failed by itself and was not cut off. */
    static async noteFailure(call: Pick<ModelCall, 'turnId' | 'step'>, attempt: number): Promise<void> {
      await ModelCall.update({ failedAttempt: attempt }, { where: { turnId: call.turnId, step: call.step } });
    }

    /** The calls of a turn that were cut off: their rows have no end. */
    static cutOf(turnId: string): Promise<Pick<ModelCall, 'step' | 'modelId'>[]> {
      const isCut = { [Op.lt]: col('attempts') };
      const where = { turnId, status: 'started', failedAttempt: isCut };
      return ModelCall.findAll({ attributes: ['step', 'modelId'], where, raw: true });
    }

    /** Records how the call ended, and which model answered. */
    static async end(
      tx: Transaction,
      { turnId, step, modelId }: Pick<ModelCall, 'turnId' | 'step' | 'modelId'>,
      end: { status: 'completed' | 'stopped'; finishReason?: FinishReason | OutOfCredits; usage: Usage | undefined },
    ): Promise<void> {
      const { status, finishReason = null, usage } = end;
      await ModelCall.update(
        { status, modelId, finishReason, endedAt: new Date(), ...usage },
        { where: { turnId, step }, transaction: tx },
      );
    }

    /** The turn's usage so far. `afterSeq` leaves out calls that began before that chunk. */
    static async usageOf(turnId: string, options: { afterSeq?: number; tx?: Transaction } = {}): Promise<Usage> {
      const { afterSeq = 0, tx } = options;
      const where = { turnId, firstSeq: { [Op.gte]: afterSeq }, ...ofTurns };
      return sum(await ModelCall.findAll({ where, raw: true, transaction: tx }));
    }

    /** The usage of many turns, read by one query. */
    static async usageOfMany(turnIds: string[]): Promise<(turnId: string) => Usage> {
      const calls = await ModelCall.findAll({ where: { turnId: turnIds, ...ofTurns }, raw: true });
      const byTurn = Map.groupBy(calls, ({ turnId }) => turnId);
      return (turnId) => sum(byTurn.get(turnId) ?? []);
    }
  }

  ModelCall.init(
    {
      turnId: { type: DataTypes.STRING(40), primaryKey: true },
      step: { type: DataTypes.INTEGER.UNSIGNED, primaryKey: true },
      attempts: DataTypes.INTEGER.UNSIGNED,
      cuts: DataTypes.INTEGER.UNSIGNED,
      failedAttempt: DataTypes.INTEGER.UNSIGNED,
      firstSeq: DataTypes.INTEGER.UNSIGNED,
      modelId: DataTypes.STRING(200),
      status: DataTypes.STRING(20),
      finishReason: DataTypes.STRING(20),
      inputTokens: DataTypes.INTEGER.UNSIGNED,
      cachedInputTokens: DataTypes.INTEGER.UNSIGNED,
      outputTokens: DataTypes.INTEGER.UNSIGNED,
      reasoningTokens: DataTypes.INTEGER.UNSIGNED,
      startedAt: DataTypes.DATE(3),
      endedAt: DataTypes.DATE(3),
      leftAs: DataTypes.JSON,
    },
    { sequelize, tableName: 'model_calls', timestamps: false, underscored: true },
  );
  return ModelCall;
}

const ofTurns = { step: { [Op.lt]: titleStep } };

function sum(calls: readonly Usage[]): Usage {
  const total = (pick: (call: Usage) => number) => calls.reduce((sofar, call) => sofar + pick(call), 0);
  return {
    inputTokens: total((call) => call.inputTokens),
    cachedInputTokens: total((call) => call.cachedInputTokens),
    outputTokens: total((call) => call.outputTokens),
    reasoningTokens: total((call) => call.reasoningTokens),
  };
}
