import type { Catalogue } from '../../integrations/chat/catalogue.ts';
import type { ModelRunner } from '../../integrations/chat/modelCall.ts';
import type { ObjectStore } from '../../integrations/storage/objectStore.ts';
import type { TurnLog } from '../../models/chat/turnLog/turnLog.ts';
import type { SecretStore } from '../../models/secrets/index.ts';
import type { CommonDeps } from '../deps.ts';
import type { PushDeps } from '../push/deps.ts';
import type { ToolRegistry } from '../tools/registry.ts';
import type { AttachmentReader } from './context/attachmentReader.ts';
import type { Metering } from './metering.ts';
import type { StepHolds } from './stepHolds.ts';
import type { StopWatch } from './stopWatch.ts';

export interface ChatDeps extends CommonDeps, PushDeps {
  turnLog: TurnLog;
  modelRunner: ModelRunner;
  catalogue: Catalogue;
  metering: Metering;
  stopWatch: StopWatch;
  stepHolds: StepHolds;
  /** For tool results that are too large for a row. */
  storage: ObjectStore;
  tools: ToolRegistry;
  /** Attached files, for prompts. */
  attachments: AttachmentReader;
  secrets: Pick<SecretStore, 'dynamic' | 'redactors'>;
}
