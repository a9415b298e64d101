import { type Actor, type AuditAction, appendAudit, operator } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import type { Caps } from './caps.ts';
import { lockSettings } from './setup.ts';

/** Buys credits automatically when few are left. Money is in the currency's smallest unit. */
export interface AutoTopUp {
  enabled: boolean;
  /** In micro-credits. */
  threshold: number | null;
  amountMinor: number | null;
  monthlyLimitMinor: number | null;
  /** When the last charge was refused. No more charges until a person saves this setting again. */
  failedAt: Date | null;
}

export interface BillingSettings {
  caps: Caps;
  autoTopUp: AutoTopUp;
}

interface Row {
  perTurn: number | null;
  perDay: number | null;
  perMemberPerDay: number | null;
  enabled: number;
  threshold: number | null;
  amountMinor: number | null;
  monthlyLimitMinor: number | null;
  failedAt: Date | null;
}

export async function readSettings(database: Database, spaceId: string): Promise<BillingSettings> {
  const sql = `SELECT cap_per_turn AS perTurn, cap_per_day AS perDay, cap_per_member_per_day AS perMemberPerDay,
            auto_enabled AS enabled, auto_threshold AS threshold, auto_amount_minor AS amountMinor,
            auto_monthly_limit_minor AS monthlyLimitMinor, auto_failed_at AS failedAt
       FROM billing_settings WHERE space_id = ?`;
  const [row] = await select<Row>(database.pool, sql, [spaceId]);
  return {
    caps: {
      perTurn: row?.perTurn ?? null,
      perDay: row?.perDay ?? null,
      perMemberPerDay: row?.perMemberPerDay ?? null,
    },
    autoTopUp: {
      enabled: row?.enabled === 1,
      threshold: row?.threshold ?? null,
      amountMinor: row?.amountMinor ?? null,
      monthlyLimitMinor: row?.monthlyLimitMinor ?? null,
      failedAt: row?.failedAt ?? null,
    },
  };
}

export async function saveCaps(
  database: Database,
  spaceId: string,
  caps: Caps,
  actor: Actor = operator,
): Promise<void> {
  await save(database, spaceId, actor, 'spending-caps.changed', {
    capPerTurn: caps.perTurn,
    capPerDay: caps.perDay,
    capPerMemberPerDay: caps.perMemberPerDay,
  });
}

export async function saveAutoTopUp(
  database: Database,
  spaceId: string,
  actor: Actor & { userId: string },
  auto: Omit<AutoTopUp, 'failedAt'>,
): Promise<void> {
  await save(database, spaceId, actor, 'auto-top-up.changed', {
    autoEnabled: Number(auto.enabled),
    autoThreshold: auto.threshold,
    autoAmountMinor: auto.amountMinor,
    autoMonthlyLimitMinor: auto.monthlyLimitMinor,
    autoUserId: actor.userId,
    autoFailedAt: null,
  });
}

async function save(
  database: Database,
  spaceId: string,
  actor: Actor,
  action: AuditAction,
  values: Record<string, unknown>,
): Promise<void> {
  await transaction(database, async (tx) => {
    await lockSettings(tx, spaceId);
    await execute(tx, 'UPDATE billing_settings SET ? WHERE space_id = ?', [values, spaceId]);
    await appendAudit(tx, spaceId, actor, action, null);
  });
}
