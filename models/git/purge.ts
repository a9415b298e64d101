import type { AreaPurge } from '../areaPurge.ts';

export const gitPurge: AreaPurge = { ofSpace: ['git_credentials'] };
