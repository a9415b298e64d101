import { modelsOf } from '../database/bound.ts';
import { defineMessage } from './message.ts';
import { defineModelCall } from './modelCall.ts';
import { defineThreadSummary } from './summary.ts';
import { defineThread, defineThreadAlias } from './thread.ts';
import { defineToolCall } from './toolCall.ts';
import { defineTurn } from './turn.ts';

export const chatModels = modelsOf((sequelize) => ({
  Thread: defineThread(sequelize),
  ThreadAlias: defineThreadAlias(sequelize),
  Turn: defineTurn(sequelize),
  Message: defineMessage(sequelize),
  ModelCall: defineModelCall(sequelize),
  ThreadSummary: defineThreadSummary(sequelize),
  ToolCall: defineToolCall(sequelize),
}));
