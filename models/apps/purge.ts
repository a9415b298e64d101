import type { AreaPurge } from '../areaPurge.ts';

export const appsPurge: AreaPurge = { ofSpace: ['apps'] };
