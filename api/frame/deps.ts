import type { Registry } from 'prom-client';
import type { Config } from '../../config/index.ts';
import type { AppManifests } from '../../integrations/apps/manifests.ts';
import type { Payments } from '../../integrations/billing/index.ts';
import type { Catalogue } from '../../integrations/chat/catalogue.ts';
import type { Embedder } from '../../integrations/chat/embeddings.ts';
import type { HostOf, LiveComputers } from '../../integrations/computers/liveComputers.ts';
import type { TenantServer } from '../../integrations/databases/tenantServer.ts';
import type { EgressGuard } from '../../integrations/egress/guard.ts';
import type { GitTrees } from '../../integrations/git/treeTypes.ts';
import type { GitHosting } from '../../integrations/gitHosting/index.ts';
import type { ProvenPerson } from '../../integrations/gitHosting/provider.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { AppSecrets } from '../../models/apps/webhookSecrets.ts';
import type { AutomationSecrets } from '../../models/automations/webhookSecrets.ts';
import type { TurnFeed } from '../../models/chat/turnLog/feed.ts';
import type { TurnLog } from '../../models/chat/turnLog/turnLog.ts';
import type { ComputerSecrets } from '../../models/computers/computerSecrets.ts';
import type { Computers } from '../../models/computers/computers.ts';
import type { PortLinks } from '../../models/computers/portLinks.ts';
import type { Database } from '../../models/database/database.ts';
import type { SpaceDatabases } from '../../models/databases/index.ts';
import type { EgressRules } from '../../models/egress/egressRules.ts';
import type { SealedLogs } from '../../models/environments/builds/sealedLogs.ts';
import type { GitConnections } from '../../models/git/connections.ts';
import type { GitCredentials } from '../../models/git/credentials.ts';
import type { Identity } from '../../models/identity/index.ts';
import type { McpServers } from '../../models/mcp/mcpServers.ts';
import type { PushStore } from '../../models/push/index.ts';
import type { SecretStore } from '../../models/secrets/index.ts';
import type { WebhookEndpoints } from '../../models/webhooks/endpoints.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Meters } from '../../telemetry/meters.ts';
import type { Launcher } from '../../temporal/launcher.ts';
import type { Contract } from './contract.ts';
import type { RateLimits } from './middleware/rateLimits.ts';

/** A part that must answer before this process is ready for traffic. MySQL is always one. */
export interface ReadinessCheck {
  /** Shown by /readyz and in its problem: `temporal`, `storage`. */
  name: string;
  /**
   * Set when the process is still useful without this part. Says what continues and what waits while the part is away.
   * The process then stays ready and reports itself as degraded.
   */
  without?: string;
  /** What is wrong when the check fails. The default is that the part does not answer. */
  fault?: string;
  /** Rejects when the part does not answer. */
  check(): Promise<void>;
}

/** The API's dependencies. An area that needs more adds a field here. */
export interface ApiDeps {
  config: Config;
  database: Database;
  logger: Logger;
  meters: Meters;
  identity: Identity;
  secrets: SecretStore;
  computers: Computers;
  computerSecrets: ComputerSecrets;
  hostOf: HostOf;
  liveComputers: LiveComputers;
  portLinks: PortLinks;
  sealedLogs: SealedLogs;
  catalogue: Catalogue;
  embedder: Embedder;
  storage: ObjectStore;
  egressGuard: EgressGuard;
  egressRules: EgressRules;
  mcpServers: McpServers;
  appSecrets: AppSecrets;
  automationSecrets: AutomationSecrets;
  webhookEndpoints: WebhookEndpoints;
  gitCredentials: GitCredentials;
  gitTrees: GitTrees;
  appManifests: AppManifests;
  spaceDatabases: SpaceDatabases;
  /** Undefined when none is configured. */
  tenantServer: TenantServer | undefined;
  gitHosting: GitHosting;
  gitConnections: GitConnections<ProvenPerson>;
  launcher: Launcher;
  payments: Payments;
  push: PushStore;
  turnLog: TurnLog;
  feed: TurnFeed;
  /** Readiness checks besides MySQL. */
  checks: readonly ReadinessCheck[];
  /** Aborted when a stop is requested: the server reports not ready but still answers requests. */
  draining: AbortSignal;
  /** Aborted when the server begins to close. Streams end at their next event, and their clients resume elsewhere. */
  closing: AbortSignal;
}

/** What routes get: `ApiDeps`, and what the frame itself makes. */
export interface RouteDeps extends ApiDeps {
  contract: Contract;
  metrics: Pick<Registry, 'contentType' | 'metrics'>;
  limits: RateLimits;
}
