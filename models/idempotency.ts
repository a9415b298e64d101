import { DataTypes, Model, Op, type Sequelize, UniqueConstraintError } from 'sequelize';
import { DomainError } from './errors.ts';
import { jsonText } from './jsonText.ts';

const keptDays = 30;
/** After this, a claim without an answer is a process that died: whoever brings the key again takes it over. */
const claimSeconds = 60;

/** What a caller's Idempotency-Key stands for. */
export interface IdempotencyClaim {
  caller: string;
  /** The operationId of the contract. */
  operation: string;
  key: string;
  /** SHA-256 of the request's path and body. */
  requestHash: Buffer;
}

export interface StoredAnswer {
  status: number;
  body: unknown;
}

/**
 * One row per (caller, operation, key). The id of what the request makes is chosen with the claim, so that a request taken over
 * after a crash makes the same object and not a second one.
 */
export class Idempotency extends Model {
  declare caller: string;
  declare operation: string;
  declare idempotencyKey: string;
  declare requestHash: Buffer;
  declare objectId: string;
  declare responseStatus: number | null;
  declare responseBody: unknown;
  declare claimedAt: Date;
  declare createdAt: Date;

  /** Claims the key, or gives the answer that it has already. 422 for another body, 409 while the first one runs. */
  static async claim(
    claim: IdempotencyClaim,
    makeObjectId: () => string,
  ): Promise<{ row: Idempotency; answer: StoredAnswer | undefined }> {
    const now = new Date();
    const key = { caller: claim.caller, operation: claim.operation, idempotencyKey: claim.key };
    try {
      const row = await Idempotency.create({
        ...key,
        requestHash: claim.requestHash,
        objectId: makeObjectId(),
        claimedAt: now,
        createdAt: now,
      });
      return { row, answer: undefined };
    } catch (error) {
      if (!(error instanceof UniqueConstraintError)) throw error;
    }
    const row = await Idempotency.findOne({ where: key, rejectOnEmpty: true });
    if (!row.requestHash.equals(claim.requestHash)) {
      throw new DomainError(
        'unprocessable',
        'IDEMPOTENCY_KEY_REUSED',
        'This Idempotency-Key was used for another request.',
      );
    }
    if (row.responseStatus !== null) return { row, answer: { status: row.responseStatus, body: row.responseBody } };
    const [taken] = await Idempotency.update(
      { claimedAt: now },
      {
        where: { ...key, responseStatus: null, claimedAt: { [Op.lt]: new Date(now.getTime() - claimSeconds * 1_000) } },
      },
    );
    if (taken === 1) return { row, answer: undefined };
    throw new DomainError(
      'conflict',
      'IDEMPOTENCY_KEY_IN_FLIGHT',
      'The first request with this key is still running.',
      {
        retryAfterSeconds: 1,
      },
    );
  }

  async answer(status: number, body: unknown): Promise<void> {
    await this.update({ responseStatus: status, responseBody: body });
  }

  /** Gives the key up, since the request failed and did nothing. */
  async release(): Promise<void> {
    await this.destroy();
  }

  static async purge(): Promise<number> {
    return Idempotency.destroy({ where: { createdAt: { [Op.lt]: new Date(Date.now() - keptDays * 86_400_000) } } });
  }
}

export function defineIdempotency(sequelize: Sequelize): void {
  Idempotency.init(
    {
      caller: { type: DataTypes.STRING(40), primaryKey: true },
      operation: { type: DataTypes.STRING(80), primaryKey: true },
      idempotencyKey: { type: DataTypes.STRING(200), primaryKey: true },
      requestHash: DataTypes.BLOB,
      objectId: DataTypes.STRING(40),
      responseStatus: DataTypes.INTEGER,
      responseBody: jsonText('responseBody'),
      claimedAt: DataTypes.DATE(3),
      createdAt: DataTypes.DATE(3),
    },
    { sequelize, tableName: 'idempotency_keys', timestamps: false, underscored: true },
  );
}
