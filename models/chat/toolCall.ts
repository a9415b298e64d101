import type { RowDataPacket } from 'mysql2';
import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { jsonText } from '../../base/jsonText.ts';
import type { Database } from '../database/database.ts';
import type { Scope } from '../identity/scopes.ts';
import { sweepPageSize } from '../sweeping/oldestFirst.ts';

export type ToolCallStatus = 'pending' | 'succeeded' | 'failed';
/** What a call needs before it has a result: a run on the server, the client's answer, or approval to run. */
export type WaitsFor = 'nothing' | 'client' | 'approval';

/**
 * Whether a call was in control of a screen that people use too: it had it to the end, lost it to a person, or never got
 * it since somebody else had it.
 */
export interface ControlOfCall {
  surface: 'desktop' | 'browser';
  sessionId: string;
  outcome: 'held' | 'lost' | 'refused';
  from: string;
  until: string;
}

/** A tool call that a model made. Its result is in the turn's log; this row says whether it is there yet. */
export type ToolCall = InstanceType<ReturnType<typeof defineToolCall>>;

/** What happened with a call, and when. */
export type ToolCallTimes = Pick<
  ToolCall,
  | 'id'
  | 'toolName'
  | 'step'
  | 'status'
  | 'waitsFor'
  | 'decision'
  | 'deadlineAt'
  | 'answeredAt'
  | 'createdAt'
  | 'begunAt'
  | 'endedAt'
  | 'control'
>;

export function defineToolCall(sequelize: Sequelize) {
  class ToolCall extends Model {
    declare id: string;
    declare turnId: string;
    declare step: number;
    declare toolName: string;
    declare input: unknown;
    /** The scope that a key needs to approve it; null for older calls: every scope. */
    declare scopes: readonly Scope[] | null;
    declare status: ToolCallStatus;
    declare waitsFor: WaitsFor;
    /** Until when a client or a person may answer. */
    declare deadlineAt: Date | null;
    /** The last chunk of the response that asked for the answer; whoever answers gets what follows. */
    declare askedSeq: number | null;
    declare decision: 'approved' | 'denied' | null;
    declare answeredAt: Date | null;
    /** When it was first run: its external effects may have happened since. */
    declare begunAt: Date | null;
    /** Its recorded effect, written in the transaction that had it; null until then. */
    declare effect: { result: unknown } | null;
    /** Of the screen that it typed on; null where it did not. */
    declare control: ControlOfCall | null;
    declare createdAt: Date;
    declare endedAt: Date | null;

    static async ofStep(turnId: string, step: number, tx?: Transaction): Promise<ToolCall[]> {
      return ToolCall.findAll({ where: { turnId, step }, order: [['id', 'ASC']], transaction: tx });
    }

    /** Those of a turn in their order, without what they were given and what came of it. */
    static async timesOf(turnId: string, limit: number): Promise<ToolCallTimes[]> {
      const attributes = ['id', 'toolName', 'step', 'status', 'waitsFor', 'decision', 'deadlineAt', 'answeredAt'];
      const order: [string, string][] = [
        ['step', 'ASC'],
        ['id', 'ASC'],
      ];
      const times = ['createdAt', 'begunAt', 'endedAt', 'control'];
      const where = { turnId };
      const calls = await ToolCall.findAll({ where, attributes: [...attributes, ...times], order, limit });
      return calls.map((call) => call.get());
    }

    /** Those of a turn that have no result yet. */
    static async pendingOf(turnId: string, tx?: Transaction): Promise<ToolCall[]> {
      return ToolCall.findAll({ where: { turnId, status: 'pending' }, order: [['id', 'ASC']], transaction: tx });
    }

    /** Those that had begun to run when their turn ended, and have no result of their own. */
    static async cutOf(turnId: string): Promise<ToolCall[]> {
      return ToolCall.findAll({
        where: { turnId, status: 'failed', begunAt: { [Op.not]: null } },
        order: [['id', 'ASC']],
      });
    }

    /** Turns that go on because of an answer given before `before`, and have not begun their next step since. */
    static async turnsAnsweredUnheard(
      database: Pick<Database, 'pool'>,
      before: Date,
      after: string,
    ): Promise<string[]> {
      const [rows] = await database.pool.query<RowDataPacket[]>(
        `SELECT DISTINCT c.turn_id AS turnId FROM turns t JOIN tool_calls c ON c.turn_id = t.id
        WHERE t.terminal = 0 AND t.status IN ('running', 'waiting') AND c.answered_at < ?
          AND NOT EXISTS (SELECT 1 FROM model_calls m WHERE m.turn_id = c.turn_id AND m.step > c.step)
          AND (t.status = 'running' OR c.status = 'pending')
          AND c.turn_id > ? ORDER BY c.turn_id LIMIT ${sweepPageSize}`,
        [before, after],
      );
      return rows.map(({ turnId }) => String(turnId));
    }

    /** The calls of these turns that a client or a person has not yet answered. */
    static async openOf(turnIds: readonly string[]): Promise<ToolCall[]> {
      if (turnIds.length === 0) return [];
      const calls = await ToolCall.findAll({
        where: { turnId: [...turnIds], status: 'pending', waitsFor: ['client', 'approval'], decision: null },
        order: [['id', 'ASC']],
      });
      return calls;
    }

    static async countOf(turnId: string): Promise<number> {
      return ToolCall.count({ where: { turnId } });
    }

    /** The calls of a turn's steps from `fromStep` on, by step. */
    static async since(turnId: string, fromStep: number): Promise<Map<number, ToolCall[]>> {
      const calls = await ToolCall.findAll({
        where: { turnId, step: { [Op.gte]: fromStep } },
        order: [
          ['step', 'ASC'],
          ['id', 'ASC'],
        ],
      });
      return Map.groupBy(calls, ({ step }) => step);
    }

    /** Marks it as about to run; false when an earlier run already did. */
    static async begin(id: string): Promise<boolean> {
      const [changed] = await ToolCall.update({ begunAt: new Date() }, { where: { id, begunAt: null } });
      return changed === 1;
    }

    /**
     * Writes what a call has done, in the transaction that does it: both are there, or neither. False when the call has
     * ended, or has been done before: the transaction must then be rolled back.
     */
    static async recordEffect(id: string, result: unknown, tx: Transaction): Promise<boolean> {
      const [changed] = await ToolCall.update(
        { effect: { result } },
        { where: { id, status: 'pending', effect: null }, transaction: tx },
      );
      return changed === 1;
    }

    /** Notes whether it was in control of a screen. */
    static async noteControl(id: string, control: ControlOfCall): Promise<void> {
      await ToolCall.update({ control }, { where: { id } });
    }

    /** Marks it done; false when another run of it was first. */
    static async settle(id: string, status: 'succeeded' | 'failed', tx: Transaction): Promise<boolean> {
      const [changed] = await ToolCall.update(
        { status, endedAt: new Date() },
        { where: { id, status: 'pending' }, transaction: tx },
      );
      return changed === 1;
    }

    /** The same for all that are left when a turn ends. From here on none of them can have an effect any more. */
    static async settleRest(turnId: string, tx: Transaction): Promise<void> {
      await ToolCall.update(
        { status: 'failed', endedAt: new Date() },
        { where: { turnId, status: 'pending' }, transaction: tx },
      );
    }

    /** Writes an answer down. `seq` is the last chunk before it: whoever answers again hears what follows. */
    async answer(
      change: { status: ToolCallStatus; decision?: 'approved' | 'denied' },
      seq: number,
      tx: Transaction,
    ): Promise<void> {
      const now = new Date();
      const ended = change.status === 'pending' ? {} : { endedAt: now };
      await this.update({ ...change, ...ended, answeredAt: now, askedSeq: seq }, { transaction: tx });
    }

    /** Whether a client or a person still has to answer it. */
    get isOpen(): boolean {
      return this.status === 'pending' && this.waitsFor !== 'nothing' && this.decision === null;
    }

    /** Whether it timed out before anything else ended it. */
    get isExpired(): boolean {
      return this.decision === null && this.deadlineAt !== null && this.deadlineAt <= (this.endedAt ?? new Date());
    }

    /** Whether it may run now: it waits for nobody, or was approved. */
    get mayRun(): boolean {
      return this.waitsFor === 'nothing' || (this.waitsFor === 'approval' && this.decision === 'approved');
    }
  }

  ToolCall.init(
    {
      id: { type: DataTypes.STRING(40), primaryKey: true },
      turnId: DataTypes.STRING(40),
      step: DataTypes.INTEGER.UNSIGNED,
      toolName: DataTypes.STRING(200),
      input: jsonText('input'),
      scopes: jsonText('scopes'),
      status: DataTypes.STRING(20),
      waitsFor: DataTypes.STRING(20),
      deadlineAt: DataTypes.DATE(3),
      askedSeq: DataTypes.INTEGER.UNSIGNED,
      decision: DataTypes.STRING(10),
      answeredAt: DataTypes.DATE(3),
      begunAt: DataTypes.DATE(3),
      effect: jsonText('effect'),
      control: jsonText('control'),
      createdAt: DataTypes.DATE(3),
      endedAt: DataTypes.DATE(3),
    },
    { sequelize, tableName: 'tool_calls', timestamps: false, underscored: true },
  );
  return ToolCall;
}
