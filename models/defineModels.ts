import type { Sequelize } from 'sequelize';
import { defineMessages } from './chat/message.ts';
import { defineModelCalls } from './chat/modelCall.ts';
import { defineThreads } from './chat/thread.ts';
import { defineToolCalls } from './chat/toolCall.ts';
import { defineTurns } from './chat/turn.ts';
import { defineIdempotency } from './idempotency.ts';
import { defineOperations } from './operation.ts';

/** Binds the model classes to a connection. A process has one database, so the classes have one too. */
export function defineModels(sequelize: Sequelize): void {
  defineThreads(sequelize);
  defineTurns(sequelize);
  defineMessages(sequelize);
  defineModelCalls(sequelize);
  defineToolCalls(sequelize);
  defineOperations(sequelize);
  defineIdempotency(sequelize);
}
