import { DataTypes, Model, Op, type Sequelize, type Transaction } from 'sequelize';
import { jsonText } from '../../base/text.ts';
import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';
import type { Scope } from '../identity/scopes.ts';
import { sweepPageSize } from '../sweeping/oldestFirst.ts';

export type ToolCallStatus = 'pending' | 'succeeded' | 'failed';
/** Who has to act before a call has a result: the server, the client, or a person who approves it. */
export type WaitsFor = 'nothing' | 'client' | 'approval';

/**
 * Whether a call controlled a screen that people use too: it held control to the end, lost it to a person, or was
 * refused because another user or call held it.
 */
export interface ControlOfCall {
  surface: 'desktop' | 'browser';
  sessionId: string;
  outcome: 'held' | 'lost' | 'refused';
  from: string;
  until: string;
}

/** The object that a call acts on, beyond the call's name and input. */
export interface TargetOfCall {
  /** Changes when a different object takes the same name. */
  identity: string;
  /** The host, with its port, of the server that the call goes to; missing if the call stays in Atrium. */
  host?: string;
}

/** A tool call that a model made. Its result is in the turn's log; this row says whether the result is there. */
export type ToolCall = InstanceType<ReturnType<typeof defineToolCall>>;

/** The events of a call, with their times. */
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
  | 'target'
>;

export function defineToolCall(sequelize: Sequelize) {
  class ToolCall extends Model {
    declare id: string;
    declare turnId: string;
    declare step: number;
    declare toolName: string;
    declare input: unknown;
    /** The scopes that a key needs to approve the call; null for every scope. */
    declare scopes: readonly Scope[] | null;
    /** The call's target when it was recorded. The call runs only if its target is still the same. */
    declare target: TargetOfCall | null;
    declare status: ToolCallStatus;
    declare waitsFor: WaitsFor;
    /** The time by which the client or a person must answer. */
    declare deadlineAt: Date | null;
    /** The last chunk of the response that asked for the answer. Answering returns what follows it. */
    declare askedSeq: number | null;
    declare decision: 'approved' | 'denied' | null;
    declare answeredAt: Date | null;
    /** When the call first ran. Its external effects may have happened since. */
    declare begunAt: Date | null;
    /** The recorded effect, written in the transaction that had it; null until then. */
    declare effect: { result: unknown } | null;
    /** Its control of the screen that it typed on; null for all other calls. */
    declare control: ControlOfCall | null;
    declare createdAt: Date;
    declare endedAt: Date | null;

    static async ofStep(turnId: string, step: number, tx?: Transaction): Promise<ToolCall[]> {
      return ToolCall.findAll({ where: { turnId, step }, order: [['id', 'ASC']], transaction: tx });
    }

    /** A turn's calls in their order, without inputs and results. */
    static async timesOf(turnId: string, limit: number): Promise<ToolCallTimes[]> {
      const attributes = ['id', 'toolName', 'step', 'status', 'waitsFor', 'decision', 'deadlineAt', 'answeredAt'];
      const order: [string, string][] = [
        ['step', 'ASC'],
        ['id', 'ASC'],
      ];
      const times = ['createdAt', 'begunAt', 'endedAt', 'control', 'target'];
      const where = { turnId };
      const calls = await ToolCall.findAll({ where, attributes: [...attributes, ...times], order, limit });
      return calls.map((call) => call.get());
    }

    /** A turn's calls without a result. */
    static async pendingOf(turnId: string, tx?: Transaction): Promise<ToolCall[]> {
      return ToolCall.findAll({ where: { turnId, status: 'pending' }, order: [['id', 'ASC']], transaction: tx });
    }

    /** Calls that were running when their turn ended. The end of the turn failed them. */
    static async cutOf(turnId: string): Promise<ToolCall[]> {
      return ToolCall.findAll({
        where: { turnId, status: 'failed', begunAt: { [Op.not]: null } },
        order: [['id', 'ASC']],
      });
    }

    /** Turns that continue because of an answer older than `before` and have not begun their next step. */
    static async turnsAnsweredUnheard(
      database: Pick<Database, 'pool'>,
      before: Date,
      after: string,
    ): Promise<string[]> {
      const sql = `SELECT DISTINCT c.turn_id FROM turns t JOIN tool_calls c ON c.turn_id = t.id
        WHERE t.terminal = 0 AND t.status IN ('running', 'waiting') AND c.answered_at < ?
          AND NOT EXISTS (SELECT 1 FROM model_calls m WHERE m.turn_id = c.turn_id AND m.step > c.step)
          AND (t.status = 'running' OR c.status = 'pending')
          AND c.turn_id > ? ORDER BY c.turn_id LIMIT ${sweepPageSize}`;
      const rows = await select(database.pool, sql, [before, after]);
      return rows.map(({ turnId }) => String(turnId));
    }

    /** The calls of these turns that a client or a person still has to answer. */
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

    /** Marks the call as running; false if an earlier run did so. */
    static async begin(id: string): Promise<boolean> {
      const [changed] = await ToolCall.update({ begunAt: new Date() }, { where: { id, begunAt: null } });
      return changed === 1;
    }

    /**
     * Records a call's effect in the transaction that has it, so that both happen or neither. False if the call has
     * ended or has recorded its effect already: the caller must then roll back.
     */
    static async recordEffect(id: string, result: unknown, tx: Transaction): Promise<boolean> {
      const [changed] = await ToolCall.update(
        { effect: { result } },
        { where: { id, status: 'pending', effect: null }, transaction: tx },
      );
      return changed === 1;
    }

    static async noteControl(id: string, control: ControlOfCall): Promise<void> {
      await ToolCall.update({ control }, { where: { id } });
    }

    /** Marks the call as done; false if another run has already done so. */
    static async settle(id: string, status: 'succeeded' | 'failed', tx: Transaction): Promise<boolean> {
      const [changed] = await ToolCall.update(
        { status, endedAt: new Date() },
        { where: { id, status: 'pending' }, transaction: tx },
      );
      return changed === 1;
    }

    /** Marks all remaining calls as failed when the turn ends. From here on none of them can record an effect. */
    static async settleRest(turnId: string, tx: Transaction): Promise<void> {
      await ToolCall.update(
        { status: 'failed', endedAt: new Date() },
        { where: { turnId, status: 'pending' }, transaction: tx },
      );
    }

    /** Records an answer. `seq` is the last chunk before it: a repeated answer gets what follows. */
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

    /** Whether the call expired before anything else ended it. */
    get isExpired(): boolean {
      return this.decision === null && this.deadlineAt !== null && this.deadlineAt <= (this.endedAt ?? new Date());
    }

    /** Whether the call may run now: it needs no answer, or was approved. */
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
      target: jsonText('target'),
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
