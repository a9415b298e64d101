import { type ChatSettings, putChatSettings, readChatSettings } from '../../models/chat/settings.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';

/** The system prompt, default model and limits of a space's chats. */
export function chatSettingsRoutes({ database, catalogue }: RouteDeps) {
  const router = createRouter();

  router.get('/api/spaces/:spaceId/chat-settings', async (req, res) => {
    const { spaceId } = pathOf<'getChatSettings'>(req);
    answer<'getChatSettings'>(res, 200, presentChatSettings(await readChatSettings(database, spaceId)));
  });

  router.put('/api/spaces/:spaceId/chat-settings', async (req, res) => {
    const { spaceId } = pathOf<'putChatSettings'>(req);
    const { systemPrompt, defaultModelId, limits } = bodyOf<'putChatSettings'>(req);
    if (typeof defaultModelId === 'string') catalogue.resolve({ modelId: defaultModelId });
    const change = {
      systemPrompt: systemPrompt || null,
      defaultModelId: defaultModelId ?? null,
      maxStepsPerTurn: limits?.maxStepsPerTurn ?? null,
      maxOutputTokens: limits?.maxOutputTokens ?? null,
      maxContextTokens: limits?.maxContextTokens ?? null,
    };
    answer<'putChatSettings'>(
      res,
      200,
      presentChatSettings(await putChatSettings(database, spaceId, change, actorOf(req))),
    );
  });

  return router;
}

function presentChatSettings(settings: ChatSettings) {
  const { systemPrompt, defaultModelId, maxStepsPerTurn, maxOutputTokens, maxContextTokens } = settings;
  return {
    systemPrompt,
    defaultModelId,
    limits: { maxStepsPerTurn, maxOutputTokens, maxContextTokens },
    updatedBy: settings.updatedBy,
    updatedAt: settings.updatedAt?.toISOString() ?? null,
  };
}
