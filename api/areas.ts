import { apps } from './apps/index.ts';
import { automations } from './automations/index.ts';
import { billing } from './billing/index.ts';
import { browsers } from './browsers/index.ts';
import { chat } from './chat/index.ts';
import { computers } from './computers/index.ts';
import { databases } from './databases/index.ts';
import { desktops } from './desktops/index.ts';
import { drive } from './drive/index.ts';
import { egress } from './egress/index.ts';
import { type Area, tableOf } from './frame/area.ts';
import type { Access, OperationId } from './frame/auth/access.ts';
import { git } from './git/index.ts';
import { identity } from './identity/index.ts';
import { mcp } from './mcp/index.ts';
import { openai } from './openai/index.ts';
import { operations } from './operations/index.ts';
import { push } from './push/index.ts';
import { secrets } from './secrets/index.ts';
import { service } from './service/index.ts';
import { webhooks } from './webhooks/index.ts';

/** Every area of the API. To add one, add its folder, its contract file and a line here. */
export const areas = [
  service,
  identity,
  secrets,
  chat,
  openai,
  automations,
  push,
  egress,
  mcp,
  drive,
  computers,
  desktops,
  browsers,
  git,
  apps,
  databases,
  webhooks,
  operations,
  billing,
] as const satisfies readonly Area[];

/**
 * Who may call each operation: the areas' rows as one table. The compiler rejects an operation with no row or with two,
 * and a row for no operation. test/api/frame/roles.test.ts calls every operation as every kind of caller and compares.
 */
export const accessTable = tableOf(areas) satisfies Record<OperationId, Access>;
