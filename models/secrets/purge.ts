import type { AreaPurge } from '../areaPurge.ts';

export const secretsPurge: AreaPurge = { ofSpace: ['secrets', 'dynamic_secrets'] };
