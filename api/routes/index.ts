import type { Router } from 'express';
import type { RouteDeps } from '../deps.ts';
import { approvalRoutes } from './approvals.ts';
import { auditRoutes } from './audit.ts';
import { authRoutes } from './auth.ts';
import { billingRoutes } from './billing.ts';
import { billingEntryRoutes } from './billingEntries.ts';
import { billingPageRoutes } from './billingPages.ts';
import { chatRoutes } from './chat.ts';
import { chatSettingsRoutes } from './chatSettings.ts';
import { docsRoutes } from './docs.ts';
import { driveRoutes } from './drive.ts';
import { driveContentRoutes } from './driveContent.ts';
import { driveFindRoutes } from './driveFind.ts';
import { driveItemRoutes } from './driveItems.ts';
import { drivePartRoutes } from './driveParts.ts';
import { driveTrashRoutes } from './driveTrash.ts';
import { driveUploadRoutes } from './driveUpload.ts';
import { dynamicUiRoutes } from './dynamicUi.ts';
import { egressRoutes } from './egress.ts';
import { invitationRoutes } from './invitations.ts';
import { keyRoutes } from './keys.ts';
import { mailLinkRoutes } from './mailLinks.ts';
import { mcpServerRoutes } from './mcpServers.ts';
import { meRoutes } from './me.ts';
import { memberRoutes } from './members.ts';
import { operationRoutes } from './operations.ts';
import { paymentWebhookRoutes } from './paymentWebhooks.ts';
import { pushRoutes } from './push.ts';
import { secretRoutes } from './secrets.ts';
import { serviceRoutes } from './service.ts';
import { signInRoutes } from './signIn.ts';
import { spaceRoutes } from './spaces.ts';
import { threadFileRoutes } from './threadFiles.ts';
import { threadRoutes } from './threads.ts';

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
