import type { CatalogueModel } from '../../integrations/chat/catalogue.ts';
import { type AnswerOf, answer } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { modelUnknown } from './refusals.ts';

/** The catalogue knows no dates, and clients want one. */
const created = Date.UTC(2026, 0, 1) / 1_000;

export function modelRoutes({ catalogue }: RouteDeps) {
  const router = createRouter();

  router.get('/v1/models', (_req, res) => {
    answer<'listOpenAiModels'>(res, 200, { object: 'list', data: catalogue.list().map(presentModel) });
  });

  router.get('/v1/models/:modelId', (req, res) => {
    const { modelId } = pathOf<'getOpenAiModel'>(req);
    // Models for embeddings are in no list: programs would offer them for chats.
    const model = catalogue.find(modelId) ?? catalogue.embeddings.find(({ id }) => id === modelId);
    if (model === undefined) throw modelUnknown(catalogue, modelId);
    answer<'getOpenAiModel'>(res, 200, presentModel(model));
  });

  return router;
}

function presentModel({ id, provider }: Pick<CatalogueModel, 'id' | 'provider'>): AnswerOf<'getOpenAiModel'> {
  return { id, object: 'model', created, owned_by: provider };
}
