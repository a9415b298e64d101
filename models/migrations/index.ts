import { apps } from './initial/apps.ts';
import { automations } from './initial/automations.ts';
import { billing } from './initial/billing.ts';
import { browsers } from './initial/browsers.ts';
import { chat } from './initial/chat.ts';
import { computers } from './initial/computers.ts';
import { databases } from './initial/databases.ts';
import { desktops } from './initial/desktops.ts';
import { drive } from './initial/drive.ts';
import { egress } from './initial/egress.ts';
import { git } from './initial/git.ts';
import { identity } from './initial/identity.ts';
import { mcp } from './initial/mcp.ts';
import { push } from './initial/push.ts';
import { secrets } from './initial/secrets.ts';
import { shared } from './initial/shared.ts';
import { webhooks } from './initial/webhooks.ts';
import type { Migration } from './migration.ts';

/**
 * Every step of the schema, in order. The steps in `initial/` make a new database, one for each area. A later change is
 * a further step: a released step is never changed.
 */
export const migrations: Migration[] = [
  shared,
  identity,
  chat,
  drive,
  billing,
  secrets,
  push,
  egress,
  mcp,
  computers,
  git,
  apps,
  automations,
  databases,
  desktops,
  browsers,
  webhooks,
];
