import type { AreaPurge } from '../areaPurge.ts';

export const appsPurge: AreaPurge = { ofSpace: ['app_runs', 'apps'] };
