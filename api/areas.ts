import type { Router } from 'express';
import { billingEntryRoutes } from './billing/entryRoutes.ts';
import { billingPageRoutes } from './billing/pageRoutes.ts';
import { billingRoutes } from './billing/routes.ts';
import { paymentWebhookRoutes } from './billing/webhookRoutes.ts';
import { approvalRoutes } from './chat/approvalRoutes.ts';
import { chatRoutes } from './chat/routes.ts';
import { chatSettingsRoutes } from './chat/settingsRoutes.ts';
import { threadRoutes } from './chat/threadRoutes.ts';
import { driveContentRoutes } from './drive/contentRoutes.ts';
import { driveFindRoutes } from './drive/findRoutes.ts';
import { driveItemRoutes } from './drive/itemRoutes.ts';
import { drivePartRoutes } from './drive/partRoutes.ts';
import { driveRoutes } from './drive/routes.ts';
import { threadFileRoutes } from './drive/threadFileRoutes.ts';
import { driveTrashRoutes } from './drive/trashRoutes.ts';
import { driveUploadRoutes } from './drive/uploadRoutes.ts';
import { egressRoutes } from './egress/routes.ts';
import type { RouteDeps } from './frame/deps.ts';
import { auditRoutes } from './identity/auditRoutes.ts';
import { authRoutes } from './identity/authRoutes.ts';
import { invitationRoutes } from './identity/invitationRoutes.ts';
import { keyRoutes } from './identity/keyRoutes.ts';
import { mailLinkRoutes } from './identity/mailLinkRoutes.ts';
import { memberRoutes } from './identity/memberRoutes.ts';
import { meRoutes } from './identity/meRoutes.ts';
import { signInRoutes } from './identity/signInRoutes.ts';
import { spaceRoutes } from './identity/spaceRoutes.ts';
import { mcpServerRoutes } from './mcp/routes.ts';
import { operationRoutes } from './operations/routes.ts';
import { pushRoutes } from './push/routes.ts';
import { dynamicUiRoutes } from './secrets/dynamicUiRoutes.ts';
import { secretRoutes } from './secrets/routes.ts';
import { docsRoutes } from './service/referenceRoutes.ts';
import { serviceRoutes } from './service/routes.ts';

/** Every area's routes. A new area is a file in this folder and a line here; literal paths come before those with parameters. */
export const routes: readonly ((deps: RouteDeps) => Router)[] = [
  serviceRoutes,
  docsRoutes,
  authRoutes,
  signInRoutes,
  mailLinkRoutes,
  meRoutes,
  keyRoutes,
  spaceRoutes,
  memberRoutes,
  invitationRoutes,
  secretRoutes,
  dynamicUiRoutes,
  auditRoutes,
  chatRoutes,
  chatSettingsRoutes,
  pushRoutes,
  approvalRoutes,
  egressRoutes,
  mcpServerRoutes,
  threadRoutes,
  driveRoutes,
  driveUploadRoutes,
  drivePartRoutes,
  driveFindRoutes,
  driveTrashRoutes,
  driveItemRoutes,
  driveContentRoutes,
  threadFileRoutes,
  operationRoutes,
  billingPageRoutes,
  billingEntryRoutes,
  billingRoutes,
  paymentWebhookRoutes,
];
