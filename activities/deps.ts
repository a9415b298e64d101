import type { Config } from '../config/index.ts';
import type { Catalogue } from '../integrations/llm/catalogue.ts';
import type { ModelRunner } from '../integrations/llm/modelCall.ts';
import type { Mailer } from '../integrations/mail/smtp.ts';
import type { Payments } from '../integrations/payments/index.ts';
import type { PushSender } from '../integrations/push/pushSender.ts';
import type { ObjectStore } from '../integrations/storage/objectStore.ts';
import type { Turn } from '../models/chat/turn.ts';
import type { Database } from '../models/database.ts';
import type { EgressRules } from '../models/egress/egressRules.ts';
import type { Identity } from '../models/identity/index.ts';
import type { Mails } from '../models/mail/mails.ts';
import type { Operation } from '../models/operation.ts';
import type { PushStore } from '../models/push/index.ts';
import type { SecretStore } from '../models/secrets/index.ts';
import type { TurnLog } from '../models/turnLog/turnLog.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { AttachmentReader } from './chat/context/attachmentReader.ts';
import type { HeadStarts } from './chat/headStarts.ts';
import type { Metering } from './chat/metering.ts';
import type { StopWatch } from './chat/stopWatch.ts';
import type { ToolRegistry } from './tools/registry.ts';

/** What activities need of the launcher (temporal/client.ts): to go on with a thread, and to look after what was lost. */
export interface WorkflowStarter {
  startTurn(turn: Turn): Promise<void>;
  stopTurn(turnId: string): Promise<void>;
  toolsAnswered(turnId: string): Promise<void>;
  startOperation(operation: Operation): Promise<void>;
  startSettlement(eventId: string): Promise<void>;
  checkoutChanged(checkout: { kind: string; operationId: string }): Promise<void>;
  /** `absent`: Temporal knows of none, since it was never started or is past its retention. */
  describeTurn(turnId: string): Promise<'running' | 'closed' | 'absent'>;
  startMail(mailId: string): Promise<void>;
  describeMail(mailId: string): Promise<'running' | 'closed' | 'absent'>;
  describeOperation(kind: string, operationId: string): Promise<'running' | 'closed' | 'absent'>;
}

/** Everything activities touch the world with, made once per worker. */
export interface ActivityDeps {
  config: Config;
  database: Database;
  turnLog: TurnLog;
  modelRunner: ModelRunner;
  catalogue: Catalogue;
  storage: ObjectStore;
  metering: Metering;
  payments: Payments;
  stopWatch: StopWatch;
  headStarts: HeadStarts;
  tools: ToolRegistry;
  mails: Mails;
  /** Absent where no mail server is configured. */
  mailer: Mailer | undefined;
  /** Attached files, for prompts. */
  attachments: AttachmentReader;
  egressRules: EgressRules;
  secrets: Pick<SecretStore, 'dynamic' | 'redactors'>;
  /** Who may see what; asked again before anything leaves the house. */
  members: Pick<Identity['members'], 'access'>;
  arrivals: Pick<Identity['arrivals'], 'mayArrive'>;
  push: PushStore;
  pushSender: PushSender;
  workflows: WorkflowStarter;
  logger: Logger;
}
