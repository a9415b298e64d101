import { DataTypes, Model, type Sequelize, type Transaction } from 'sequelize';
import { jsonText } from '../jsonText.ts';

/** A tool call that a model made. Its result is in the turn's log; this row says whether it is there yet. */
export class ToolCall extends Model {
  declare id: string;
  declare turnId: string;
  declare step: number;
  declare toolName: string;
  declare input: unknown;
  declare status: 'pending' | 'succeeded' | 'failed';
  declare createdAt: Date;
  declare endedAt: Date | null;

  static async ofStep(turnId: string, step: number): Promise<ToolCall[]> {
    return ToolCall.findAll({ where: { turnId, step }, order: [['id', 'ASC']] });
  }

  /** Marks it done; false when another run of it was first. */
  static async settle(id: string, status: 'succeeded' | 'failed', tx: Transaction): Promise<boolean> {
    const [changed] = await ToolCall.update(
      { status, endedAt: new Date() },
      { where: { id, status: 'pending' }, transaction: tx },
    );
    return changed === 1;
  }
}

export function defineToolCalls(sequelize: Sequelize): void {
  ToolCall.init(
    {
      id: { type: DataTypes.STRING(40), primaryKey: true },
      turnId: DataTypes.STRING(40),
      step: DataTypes.INTEGER.UNSIGNED,
      toolName: DataTypes.STRING(200),
      input: jsonText('input'),
      status: DataTypes.STRING(20),
      createdAt: DataTypes.DATE(3),
      endedAt: DataTypes.DATE(3),
    },
    { sequelize, tableName: 'tool_calls', timestamps: false, underscored: true },
  );
}
