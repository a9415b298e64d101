import { DataTypes, Model, Op, type Sequelize, type Transaction, UniqueConstraintError } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { jsonText } from '../../base/text.ts';
import { deleteInBatches } from '../database/batches.ts';
import { modelsOf } from '../database/bound.ts';
import type { Database } from '../database/database.ts';

const keptMs = 30 * 86_400_000;
/**
 * The age of a claim without an answer at which its process counts as dead: the next request with the key takes it
 * over.
 */
const claimSeconds = 60;

/** A caller's Idempotency-Key. */
export interface IdempotencyKey {
  caller: string;
  /** The operationId of the contract. */
  operation: string;
  key: string;
}

/** A key, and the request that was sent with it. */
export interface IdempotencyClaim extends IdempotencyKey {
  /** SHA-256 of the request's path and body. */
  requestHash: Buffer;
}

export interface StoredAnswer {
  status: number;
  body: unknown;
}

/**
 * One row per (caller, operation, key). The id of the new object is chosen with the claim, so that a request that is
 * taken over after a crash makes the same object and not a second one.
 */
export type Idempotency = InstanceType<ReturnType<typeof defineIdempotency>>;

function defineIdempotency(sequelize: Sequelize) {
  class Idempotency extends Model {
    declare caller: string;
    declare operation: string;
    declare idempotencyKey: string;
    declare requestHash: Buffer;
    declare objectId: string;
    declare responseStatus: number | null;
    declare responseBody: unknown;
    declare claimedAt: Date;
    declare createdAt: Date;

    /**
     * Claims the key, or returns its stored answer. 422 for another body, 409 while the first request runs. If the
     * claim is not the first, the object may already exist.
     */
    static async claim(
      claim: IdempotencyClaim,
      makeObjectId: () => string,
    ): Promise<{ row: Idempotency; isFirst: boolean; answer: StoredAnswer | undefined }> {
      const now = new Date();
      const key = columnsOf(claim);
      const made = Idempotency.build({
        ...key,
        requestHash: claim.requestHash,
        objectId: makeObjectId(),
        claimedAt: now,
        createdAt: now,
      });
      try {
        return { row: await made.save(), isFirst: true, answer: undefined };
      } catch (error) {
        if (!(error instanceof UniqueConstraintError)) {
          // The row may have been written all the same. Reopen it, so that a retry need not wait for the claim to grow
          // old.
          await made.reopen().catch(() => undefined);
          throw error;
        }
      }
      const row = await Idempotency.findOne({ where: key, rejectOnEmpty: true });
      row.requireSame(claim.requestHash);
      if (row.responseStatus !== null) {
        return { row, isFirst: false, answer: { status: row.responseStatus, body: row.responseBody } };
      }
      const [taken] = await Idempotency.update(
        { claimedAt: now },
        {
          where: {
            ...key,
            responseStatus: null,
            claimedAt: { [Op.lt]: new Date(now.getTime() - claimSeconds * 1_000) },
          },
        },
      );
      if (taken !== 1) throw keyInFlight();
      row.claimedAt = now;
      return { row, isFirst: false, answer: undefined };
    }

    /**
     * The row of a key whose request is a stream. Its hash is known only after reading, so such a key is not claimed:
     * its row is written together with the request's effect.
     */
    static async answered(key: IdempotencyKey): Promise<Idempotency | null> {
      return Idempotency.findOne({ where: columnsOf(key) });
    }

    /**
     * Stores a stream's answer in the transaction of its effect. Rejects if the same request came twice and the other
     * one was faster.
     */
    static async keep(claim: IdempotencyClaim, objectId: string, answer: StoredAnswer, tx: Transaction): Promise<void> {
      const now = new Date();
      const { status: responseStatus, body: responseBody } = answer;
      const { requestHash } = claim;
      await Idempotency.create(
        { ...columnsOf(claim), requestHash, objectId, responseStatus, responseBody, claimedAt: now, createdAt: now },
        { transaction: tx },
      );
    }

    /** Throws 422 if the key was first used for another request. */
    requireSame(requestHash: Buffer): void {
      if (this.requestHash.equals(requestHash)) return;
      throw new DomainError(
        'unprocessable',
        'IDEMPOTENCY_KEY_REUSED',
        'This Idempotency-Key was already used for a different request. Use a new key.',
      );
    }

    async answer(status: number, body: unknown): Promise<void> {
      await this.update({ responseStatus: status, responseBody: body });
    }

    /** Releases the key, since the request was refused and has made nothing. */
    async release(): Promise<void> {
      await Idempotency.destroy({ where: this.unanswered() });
    }

    /** Lets the next attempt begin at once and make the same object. */
    async reopen(): Promise<void> {
      await Idempotency.update({ claimedAt: new Date(0) }, { where: this.unanswered() });
    }

    /** Matches the row while this claim holds it, and not after another request has taken it over or answered. */
    private unanswered() {
      const { caller, operation, idempotencyKey, objectId, claimedAt } = this;
      return { caller, operation, idempotencyKey, objectId, claimedAt, responseStatus: null };
    }
  }

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
  return Idempotency;
}

function columnsOf({ caller, operation, key }: IdempotencyKey) {
  return { caller, operation, idempotencyKey: key };
}

export function keyInFlight(): DomainError {
  return new DomainError(
    'conflict',
    'IDEMPOTENCY_KEY_IN_FLIGHT',
    'The first request with this Idempotency-Key is still running. Try again in a moment.',
    {
      retryAfterSeconds: 1,
    },
  );
}

export const idempotencyModels = modelsOf((sequelize) => ({ Idempotency: defineIdempotency(sequelize) }));

/** Removes keys older than 30 days. */
export function purgeIdempotencyKeys(database: Database, now: Date, onBatch: () => void): Promise<number> {
  const before = new Date(now.getTime() - keptMs);
  return deleteInBatches(database, 'DELETE FROM idempotency_keys WHERE created_at < ? LIMIT ?', [before], onBatch);
}
