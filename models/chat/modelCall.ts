import { col, DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { asRow, execute, select } from '../database/sql.ts';
import { holdEnd } from './callHolds.ts';
import type { FinishReason, Usage } from './turnLog/chunks.ts';

/**
 * Model calls beside a turn's steps have numbers of their own, so that they are metered like any step: the summaries
 * that make room, and the thread's title, which does not count towards the turn.
 */
const firstSummaryStep = 1_000_000;
export const titleStep = 2_000_000;

/** Whether it is a call beside the turn's steps. */
export function isAside(step: number): boolean {
  return step >= firstSummaryStep;
}

/** The number under which a turn's summary is metered, from 0. */
export function summaryStep(index: number): number {
  return firstSummaryStep + index;
}

/** Codes for an answer that ended because there were no more credits. */
export const outOfCredits = ['CREDITS_EXHAUSTED', 'SPENDING_CAP_REACHED'] as const;
export type OutOfCredits = (typeof outOfCredits)[number];

export function isOutOfCredits(code: unknown): code is OutOfCredits {
  return (outOfCredits as readonly unknown[]).includes(code);
}

/** Which attempt at a step begins, and what is known of those before it. */
export type BegunCall = Pick<ModelCall, 'attempts' | 'status' | 'firstSeq' | 'cuts' | 'failedAttempt'>;

/** The model call of one step of a turn. One row however often it was tried, so its usage counts once. */
export type ModelCall = InstanceType<ReturnType<typeof defineModelCall>>;

export function defineModelCall(sequelize: Sequelize) {
  class ModelCall extends Model {
    declare turnId: string;
    declare step: number;
    declare attempts: number;
    /** How many of them had begun to speak when their process, or its connections, ended. */
    declare cuts: number;
    /** The last attempt that ended by itself, with a failure. */
    declare failedAttempt: number;
    /** Where in the log the step begins: what an earlier attempt said stands from here on. */
    declare firstSeq: number;
    declare modelId: string;
    declare status: 'started' | 'completed' | 'stopped';
    /** Why it ended: its provider's reason, or the code of what ended it. */
    declare finishReason: FinishReason | OutOfCredits | null;
    declare inputTokens: number;
    declare cachedInputTokens: number;
    declare outputTokens: number;
    declare reasoningTokens: number;
    declare startedAt: Date;
    declare endedAt: Date | null;
    /** How its first attempt ended, for whoever takes it over from the process that made it. */
    declare leftAs: object | null;

    /**
     * Records that a call begins, or begins again: which attempt it is, and where in the log the first one began. For
     * `holdMs` it is held by whoever begins it, if that is no activity: those are Temporal's to watch.
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
      // MySQL counts an insert as one row and an update in its place as two.
      if (inserted.affectedRows === 1) return { attempts: 1, status: 'started', firstSeq, cuts: 0, failedAttempt: 0 };
      return ModelCall.findOne({ where: { turnId, step }, transaction: tx, rejectOnEmpty: true });
    }

    /** Writes down that the attempt before was cut off in the middle of what it said. */
    static async noteCut(tx: Transaction, { turnId, step }: Pick<ModelCall, 'turnId' | 'step'>): Promise<void> {
      await execute(tx, 'UPDATE model_calls SET cuts = cuts + 1 WHERE turn_id = ? AND step = ?', [turnId, step]);
    }

    /** Writes down that an attempt has failed by itself: it was not cut. */
    static async noteFailure(call: Pick<ModelCall, 'turnId' | 'step'>, attempt: number): Promise<void> {
      await ModelCall.update({ failedAttempt: attempt }, { where: { turnId: call.turnId, step: call.step } });
    }

    /** The calls of a turn that were cut off: none of them says how it has ended. */
    static cutOf(turnId: string): Promise<Pick<ModelCall, 'step' | 'modelId'>[]> {
      const isCut = { [Op.lt]: col('attempts') };
      const where = { turnId, status: 'started', failedAttempt: isCut };
      return ModelCall.findAll({ attributes: ['step', 'modelId'], where, raw: true });
    }

    /** Writes down how it ended, and by which model. */
    static async end(
      tx: Transaction,
      { turnId, step, modelId }: Pick<ModelCall, 'turnId' | 'step' | 'modelId'>,
      end: { status: 'completed' | 'stopped'; finishReason?: FinishReason | OutOfCredits; usage: Usage | undefined },
    ): Promise<void> {
      const { status, finishReason = null, usage } = end;
      await execute(tx, 'UPDATE model_calls SET ? WHERE turn_id = ? AND step = ?', [
        {
          status,
          model_id: modelId,
          finish_reason: finishReason,
          ended_at: new Date(),
          ...(usage && asRow(usageColumns, usage)),
        },
        turnId,
        step,
      ]);
    }

    /** What the turn has used, over the calls that ended; `afterSeq` leaves out those that were made before it. */
    static async usageOf(turnId: string, { afterSeq = 0 } = {}): Promise<Usage> {
      return sum(
        await ModelCall.findAll({ where: { turnId, firstSeq: { [Op.gte]: afterSeq }, ...ofTurns }, raw: true }),
      );
    }

    /** All that the turn has used, as the transaction sees it. */
    static async usageWithin(tx: Transaction, turnId: string): Promise<Usage> {
      const columns = Object.entries(usageColumns).map(([field, column]) => `${column} AS ${field}`);
      const calls = `SELECT ${columns.join(', ')} FROM model_calls WHERE turn_id = ? AND step < ?`;
      return sum(await select<Usage>(tx, calls, [turnId, titleStep]));
    }

    /** The same for many turns, by one query. */
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

const usageColumns: Record<keyof Usage, string> = {
  inputTokens: 'input_tokens',
  cachedInputTokens: 'cached_input_tokens',
  outputTokens: 'output_tokens',
  reasoningTokens: 'reasoning_tokens',
};

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
