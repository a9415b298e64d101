import { identity } from './0001-identity.ts';
import { chat } from './0002-chat.ts';
import { drive } from './0003-drive.ts';
import { billing } from './0004-billing.ts';
import { secretsAndPeople } from './0005-secrets-people.ts';
import { chatTools } from './0006-chat-tools.ts';
import { signIn } from './0007-sign-in.ts';
import { chatContext } from './0009-chat-context.ts';
import { egressAndMcp } from './0010-egress-mcp.ts';
import { mcpFailures } from './0011-mcp-failures.ts';
import { mispaidCheckouts } from './0012-mispaid-checkouts.ts';
import { mcpFormSecrets } from './0013-mcp-form-secrets.ts';
import { holds } from './0014-holds.ts';
import { longAnswers } from './0016-long-answers.ts';
import { cutAttempts } from './0018-cut-attempts.ts';
import { retention } from './0019-retention.ts';
import { authority } from './0020-authority.ts';
import { binaryText } from './0021-binary-text.ts';
import { listIndexes } from './0022-list-indexes.ts';
import { outboxHash } from './0023-outbox-hash.ts';
import { computers } from './0024-computers.ts';
import { sweepIndexes } from './0025-sweep-indexes.ts';
import { computerSecrets } from './0026-computer-secrets.ts';
import { portLinks } from './0026-port-links.ts';
import { gitCredentials } from './0027-git-credentials.ts';
import { portLinkAskers } from './0027-port-link-askers.ts';
import { computerSecretHeaders } from './0028-computer-secret-headers.ts';
import { gitRepositories } from './0029-git-repositories.ts';
import { gitInstallations } from './0030-git-installations.ts';
import { gitDrafts } from './0031-git-drafts.ts';
import { apps } from './0034-apps.ts';
import { appRuns } from './0034b-app-runs.ts';
import { automations } from './0035-automations.ts';
import { databases } from './0036-databases.ts';
import { appTriggers } from './0037-app-triggers.ts';
import { appAttempts } from './0038-app-attempts.ts';
import { desktops } from './0039-desktops.ts';
import { browsers } from './0040-browsers.ts';
import { databaseSizes } from './0041-database-sizes.ts';
import { databaseBackups } from './0041b-database-backups.ts';
import { appPreviews } from './0042-app-previews.ts';
import { appLimits } from './0042b-app-limits.ts';
import { toolCallControl } from './0043-tool-call-control.ts';
import { desktopRecordings } from './0044-desktop-recordings.ts';
import { chatSearch } from './0045-chat-search.ts';
import { threadShares } from './0045b-thread-shares.ts';
import { threadForks } from './0045c-thread-forks.ts';
import { returnUrls } from './0045d-return-urls.ts';
import { databaseGuards } from './0046-database-guards.ts';
import { browserLinks } from './0047-browser-links.ts';
import { databaseLeftOut } from './0048-database-left-out.ts';
import { browserFirstPage } from './0050-browser-first-page.ts';
import { completions } from './0053-completions.ts';
import { modelCallHolds } from './0054-model-call-holds.ts';
import { webhookEndpoints } from './0055-webhook-endpoints.ts';
import { webhookDeliveries } from './0056-webhook-deliveries.ts';
import { webhookRounds } from './0057-webhook-rounds.ts';
import { webhookRevisions } from './0058-webhook-revisions.ts';
import { contentFindings } from './0062-content-findings.ts';
import { installation } from './0066-installation.ts';
import { roundsAndVersions } from './0068-rounds-and-versions.ts';
import { browserLinkSessions } from './0069-browser-link-sessions.ts';
import { appVersions } from './0070-app-versions.ts';
import type { Migration } from './migrate.ts';

/** Every step of the schema, in order. A step that has been released is never changed: add another. */
export const migrations: Migration[] = [
  identity,
  chat,
  drive,
  billing,
  secretsAndPeople,
  chatTools,
  signIn,
  chatContext,
  egressAndMcp,
  mcpFailures,
  mispaidCheckouts,
  mcpFormSecrets,
  holds,
  longAnswers,
  cutAttempts,
  retention,
  authority,
  binaryText,
  listIndexes,
  outboxHash,
  computers,
  sweepIndexes,
  computerSecrets,
  portLinks,
  gitCredentials,
  portLinkAskers,
  computerSecretHeaders,
  gitRepositories,
  gitInstallations,
  gitDrafts,
  apps,
  appRuns,
  automations,
  databases,
  appTriggers,
  appAttempts,
  desktops,
  browsers,
  databaseSizes,
  databaseBackups,
  appPreviews,
  appLimits,
  toolCallControl,
  desktopRecordings,
  chatSearch,
  threadShares,
  threadForks,
  returnUrls,
  databaseGuards,
  browserLinks,
  databaseLeftOut,
  browserFirstPage,
  completions,
  webhookEndpoints,
  webhookDeliveries,
  webhookRounds,
  webhookRevisions,
  modelCallHolds,
  contentFindings,
  installation,
  roundsAndVersions,
  browserLinkSessions,
  appVersions,
];
