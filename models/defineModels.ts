import type { Sequelize } from 'sequelize';
import { defineMessages } from './chat/message.ts';
import { defineModelCalls } from './chat/modelCall.ts';
import { defineThreadSummaries } from './chat/summary.ts';
import { defineThreads } from './chat/thread.ts';
import { defineToolCalls } from './chat/toolCall.ts';
import { defineTurns } from './chat/turn.ts';
import { defineDrives } from './drive/drive.ts';
import { defineDriveItems } from './drive/driveItem.ts';
import { defineDriveObjects } from './drive/driveObject.ts';
import { defineDriveUploads } from './drive/driveUpload.ts';
import { defineDriveVersions } from './drive/driveVersion.ts';
import { defineIdempotency } from './idempotency.ts';
import { defineOperations } from './operation.ts';

/** Binds the model classes to a connection. A process has one database, so the classes have one too. */
export function defineModels(sequelize: Sequelize): void {
  defineThreads(sequelize);
  defineTurns(sequelize);
  defineMessages(sequelize);
  defineThreadSummaries(sequelize);
  defineModelCalls(sequelize);
  defineToolCalls(sequelize);
  defineOperations(sequelize);
  defineIdempotency(sequelize);
  defineDrives(sequelize);
  defineDriveItems(sequelize);
  defineDriveObjects(sequelize);
  defineDriveUploads(sequelize);
  defineDriveVersions(sequelize);
}
