import type { AreaPurge } from '../database/areaPurge.ts';

export const secretsPurge: AreaPurge = { ofSpace: ['secrets', 'dynamic_secrets'] };
