import type { Area } from '../frame/area.ts';
import { access } from './access.ts';
import { completionRoutes } from './completionRoutes.ts';
import { embeddingRoutes } from './embeddingRoutes.ts';
import { fileRoutes } from './fileRoutes.ts';
import { modelRoutes } from './modelRoutes.ts';
import { presentError, presentErrorOutside } from './presentError.ts';

/** The part of OpenAI's API that chat clients and agents use. */
export const openai = {
  access,
  routes: [modelRoutes, completionRoutes, embeddingRoutes, fileRoutes],
  errors: { '/v1': presentError, '/models': presentErrorOutside, '/chat/completions': presentErrorOutside },
} as const satisfies Area;
