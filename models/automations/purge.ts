import type { AreaPurge } from '../database/areaPurge.ts';

/** Automations come first, since a run is only added while its automation exists. */
export const automationsPurge: AreaPurge = { ofSpace: ['automations', 'automation_runs'] };
