import type { ChatSettings } from '../../models/chat/settings.ts';

export function presentChatSettings(settings: ChatSettings) {
  const { systemPrompt, defaultModelId, maxStepsPerTurn, maxOutputTokens, maxContextTokens } = settings;
  return {
    systemPrompt,
    defaultModelId,
    limits: { maxStepsPerTurn, maxOutputTokens, maxContextTokens },
    updatedBy: settings.updatedBy,
    updatedAt: settings.updatedAt?.toISOString() ?? null,
  };
}
